"""``pyedmcl db``: show, best, export, import, prune and doctor."""

from __future__ import annotations

import json
import os
import sqlite3
from dataclasses import replace

import pytest
from device_helpers import INTEL, NVIDIA
from tuning_helpers import key, run
from typer.testing import CliRunner

from pyedmcl.cli.app import app
from pyedmcl.errors import StoreError
from pyedmcl.kernels import spec
from pyedmcl.tuning import database as connection
from pyedmcl.tuning import knowledge
from pyedmcl.tuning.database import Database
from pyedmcl.tuning.parameters import ParameterChoice, keeping, source
from pyedmcl.tuning.records import Entry

pytestmark = pytest.mark.usefixtures("data_dir")


def db(*words):
    return CliRunner().invoke(app, ["db", *map(str, words)])


def document(*words):
    done = db(*words, "--json")
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.fixture
def filled():
    database = Database()
    run(database, key(rows=1000), {"wg": 64}, 0.002)
    run(database, key(rows=1000), {"wg": 32}, 0.003)
    run(database, key(rows=1000), {"wg": 128}, None, status="wrong")
    run(database, key(info=INTEL), {"wg": 16}, 0.5)
    run(database, replace(key(), digest="0" * 16), {"wg": 1}, 0.1)
    return database


def test_show_counts_trials_by_their_end(filled):
    found = document("show")["trials"]
    (nvidia,) = [r for r in found if r["device"] == "NVIDIA H200" and r["current"]]
    assert (nvidia["ok"], nvidia["wrong"], nvidia["hung"]) == (2, 1, 0)
    assert sum(not r["current"] for r in found) == 1 and len(found) == 3
    assert len(document("show", "--device", "epyc")["trials"]) == 1
    assert "NVIDIA H200" in db("show", "predict").stdout
    assert document("show", "knn")["trials"] == []


def test_show_without_a_database_says_how_to_get_one():
    done = db("show")
    assert done.exit_code == 0 and "no trials; 'pyedmcl tune' makes some" in done.stdout


def test_a_change_that_cannot_be_kept_is_an_error(filled, tmp_path, monkeypatch):
    file, connect = tmp_path / "wisdom.jsonl", sqlite3.connect
    db("export", "-o", file)
    Database().remove([trial.id for trial in filled.trials() if trial.key.device.name == "NVIDIA H200"])
    left = len(filled.trials())

    def read_only(name, **options):
        return connect(name.replace("mode=rwc", "mode=ro") if isinstance(name, str) else name, **options)

    with monkeypatch.context() as patch:
        patch.setattr(sqlite3, "connect", read_only)
        for words, said in ((("prune", "--all"), "no trials were removed"), (("import", file), "was not taken in")):
            done = db(*words)
            assert done.exit_code == 5 and said in done.output and "PYEDMCL_DATA_DIR" in done.output
    connection._files.clear()  # what was kept in memory ends with its process
    assert len(Database().trials()) == left


def test_an_unknown_kernel_is_named(filled):
    done = db("best", "kknn")
    assert done.exit_code == 3 and "KERNEL='kknn'" in done.output and "knn" in done.output


def test_best_shows_one_configuration_for_each_key(filled):
    found = document("best")
    assert sorted((r["parameters"]["wg"], r["seconds"]) for r in found) == [(16, 0.5), (64, 0.002)]
    words = db("best", "predict", "--device", "h200").stdout
    assert "rows=1024" in words and "wg=64" in words and "EPYC" not in words


def test_export_and_import_on_another_machine(filled, tmp_path, monkeypatch):
    file = tmp_path / "wisdom.jsonl"
    assert "2 entries" in db("export", "-o", file).stdout
    assert db("export").stdout == file.read_text()
    file.write_text(file.read_text() + "no JSON\n" + file.read_text().splitlines()[0].replace('"predict"', '"gone"'))
    monkeypatch.setenv("PYEDMCL_DATA_DIR", str(tmp_path / "elsewhere"))
    done = db("import", file)
    assert done.exit_code == 0 and "2 new of 2 entries" in done.stdout
    assert "wisdom.jsonl, line 3: this is no JSON" in done.stderr
    assert "1 entry of the kernel gone belongs" in done.stderr
    (record,) = document("import", file)["files"]
    assert record["new"] == 0 and len(record["problems"]) == 2
    assert len(document("best")) == 2
    assert "2 of 2 trials would be removed" in db("prune", "--imported", "--dry-run").stdout
    assert "2 of 2 trials removed" in db("prune", "--imported").stdout
    assert Database().trials() == []


def test_all_trials_can_be_exported(filled, tmp_path):
    file = tmp_path / "log.jsonl"
    assert "4 trials" in db("export", "predict", "--trials", "--device", "h200", "-o", file).stdout
    records = [json.loads(line) for line in file.read_text().splitlines()]
    of_device = [trial for trial in filled.trials() if trial.key.device.name == "NVIDIA H200"]
    assert [(r["status"], r["parameters"], r["rounds"]) for r in records] == [
        (trial.status, dict(trial.parameters), list(trial.rounds)) for trial in of_device
    ]


def test_a_missing_file_is_an_error_and_nothing_is_taken_in(filled, tmp_path):
    good = tmp_path / "good.jsonl"
    db("export", "-o", good)
    before = len(filled.trials())
    done = db("import", good, tmp_path / "absent.jsonl")
    assert done.exit_code == 3 and "absent.jsonl cannot be read" in done.output
    assert len(filled.trials()) == before
    done = db("export", "-o", tmp_path / "no" / "folder.jsonl")
    assert done.exit_code == 5 and "there is no folder" in done.output


def test_prune_removes_what_is_never_looked_up_again(filled):
    assert "1 of 5 trials removed" in db("prune").stdout
    assert document("prune", "--older-than", 1)["chosen"] == 0
    assert document("prune", "--all")["chosen"] == 4
    assert filled.trials() == []


def test_doctor_says_what_is_wrong(filled, data_dir, caplog):
    filled.set_limit(key().device.digest(), "predict", 32, "predict was refused: INVALID. More")
    filled.start(key(), {"wg": 64}, session="s")
    levels = {finding["what"]: finding["level"] for finding in document("doctor")}
    assert any("trials: 6" in what for what in levels)
    assert any("trials of kernels that have changed, or of rates measured anew: 1" in what for what in levels)
    assert any("predict gets at most 32 work-items" in what for what in levels)
    assert "error" not in levels.values()
    filled.path.write_bytes(b"overwritten" * 1000)
    done = db("doctor")
    assert "error" in done.stdout and "cannot be used (file is not a database)" in done.stdout
    assert "unusable-" in done.stdout and "not there yet" in db("doctor").stdout


def test_doctor_on_a_home_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PYEDMCL_DATA_DIR", str(tmp_path / "file" / "data"))
    assert "cannot be written" in db("doctor").stdout and "set PYEDMCL_DATA_DIR" in db("doctor").stdout


# --- kept away by hand -----------------------------------------------------------------------------------------------


def chosen(**sizes):
    return source.parameters(spec("predict"), {"dtype": "float32"}, NVIDIA, sizes)


def test_a_barred_configuration_is_used_nowhere_until_it_is_unbarred(filled, monkeypatch):
    shipped = Entry(key(rows=1000), {"wg": 128})
    monkeypatch.setattr(knowledge, "shipped", lambda runtime, kernel: (shipped,))
    source.forget()
    Database().remove([trial.id for trial in filled.trials(status="wrong")])
    assert chosen(rows=1000).parameters == {"wg": 64}
    done = db("bar", "predict", "wg=64", "--why", "it crashed")
    assert done.exit_code == 0 and "1: predict wg=64 is kept away" in done.stdout
    with source.mode():
        assert chosen(rows=1000).parameters == {"wg": 32}
    db("bar", "predict", "wg=32", "--device", "h200")
    db("bar", "predict", "wg=128", "--device", "epyc")
    with source.mode():
        assert chosen(rows=1000) == ParameterChoice({"wg": 128}, "shipped")
    db("bar", "predict", "wg=128")
    with source.mode():
        assert chosen(rows=1000).grade == "default"
    listed = document("bar")
    assert [(one["number"], one["parameters"], one["device"]) for one in listed] == [
        (1, {"wg": 64}, ""), (2, {"wg": 32}, "h200"), (3, {"wg": 128}, "epyc"), (4, {"wg": 128}, ""),
    ]  # fmt: skip
    assert "kept away by hand: predict wg=64 (it crashed)" in db("doctor").stdout
    assert document("unbar", 1, 4) == {"removed": [1, 4]}
    with source.mode():
        assert chosen(rows=1000).parameters == {"wg": 64}


def test_a_job_that_began_with_what_is_barred_since_is_refused(data_dir):
    info = NVIDIA
    tuned = {**source.parameters(spec("predict"), {"dtype": "float32"}, info).parameters, "wg": 128}
    answers = {}
    with keeping(answers):
        chosen()
    answers = {question: tuned for question in answers}
    with keeping(answers):
        assert chosen().grade == "recorded"
    db("bar", "predict", "wg=128")
    with source.mode(), keeping(answers), pytest.raises(StoreError, match="'pyedmcl db bar' keeps predict wg=128 away"):
        chosen()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("bar", "nothing", "wg=1"), "there is no such kernel"), (("bar", "predict"), "at least one parameter"),
        (("bar", "predict", "wg"), "is tuned by wg"), (("bar", "predict", "lanes=1"), "is tuned by wg"),
        (("bar", "predict", "wg=63"), "takes one of"), (("unbar", "7"), "no such bar"),
    ],
)  # fmt: skip
def test_what_cannot_be_barred_is_named(words, said):
    done = db(*words)
    assert done.exit_code == 3 and said in done.output


def test_bars_are_listed():
    assert "nothing is kept away by hand" in db("bar").stdout
    assert db("bar", "predict", "wg=1").exit_code == 0 and "predict wg=1" in db("bar").stdout


@pytest.mark.parametrize("kind", ["pipe", "link to a device", "link to a pipe"])
def test_no_device_and_no_pipe_is_replaced_by_a_file(kind, filled, tmp_path):
    place = tmp_path / "out.jsonl"
    if kind != "link to a device":
        os.mkfifo(tmp_path / "pipe")
        place = tmp_path / "pipe"
    if kind.startswith("link"):
        place = tmp_path / "link"
        place.symlink_to(tmp_path / "pipe" if "pipe" in kind else os.devnull)
    before = os.lstat(place)
    done = db("export", "-o", place)
    assert done.exit_code != 0 and "which no file replaces" in str(done.exception) + done.output
    assert (os.lstat(place).st_ino, os.lstat(place).st_mode) == (before.st_ino, before.st_mode)


def test_an_endless_file_is_not_read_to_its_end(filled, monkeypatch):
    monkeypatch.setattr(knowledge, "_MOST_BYTES", 1 << 20)
    done = db("import", "/dev/zero")
    assert done.exit_code != 0 and "is longer than 1 MiB" in str(done.exception) + done.output


@pytest.mark.parametrize("kind", ["pipe", "link to a device"])
def test_a_database_that_is_no_file_is_kept_aside(kind, data_dir, caplog):
    place = data_dir / "tuning.sqlite3"
    data_dir.mkdir(exist_ok=True)
    os.mkfifo(place) if kind == "pipe" else place.symlink_to(os.devnull)
    done = db("show")
    assert done.exit_code == 0 and "it is no file" in caplog.text + done.output
    assert not os.path.lexists(place)
