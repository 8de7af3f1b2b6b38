"""The database of trials: what is best, what is barred, several processes, and folders that cannot be written."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from cli_helpers import environment
from device_helpers import NVIDIA
from tuning_helpers import best_of, key, run

from pyedmcl.errors import InputError
from pyedmcl.tuning.database import Database
from pyedmcl.tuning.records import (
    Trial,
    alive,
    bucketed,
    canonical,
    key_as_dict,
    key_from,
    nearest_power,
    process_token,
    rounded,
)

FAST, SLOW = {"wg": 64}, {"wg": 32}


@pytest.fixture
def database(tmp_path):
    return Database(tmp_path / "new" / "folder" / "tuning.sqlite3")


def test_buckets_are_nearest_on_a_logarithmic_scale():
    assert [nearest_power(n) for n in (0, 1, 2, 3, 5, 6, 11, 12, 22, 23)] == [0, 1, 2, 4, 4, 8, 8, 16, 16, 32]
    assert rounded({"rows": 1600, "library": 3780}) == {"rows": 1024, "library": 4096}
    for n in range(1, 5000):
        assert abs(np.log2(nearest_power(n, 2)) - np.log2(n)) <= 1 + 1e-9


def test_a_specialisation_falls_into_its_bucket():
    assert bucketed({"dims": tuple(range(1, 21)), "capacity": 40, "dtype": "float32", "masked": True}) == {
        "dims": {"count": 16, "most": 16}, "dtype": "float32", "masked": True,
    }  # fmt: skip
    assert bucketed({"columns": 300}) == bucketed({"columns": 9000})
    assert canonical({"b": np.int32(3), "a": True}) == '{"a":true,"b":3}' == canonical({"a": True, "b": 3})


def test_a_key_survives_json():
    at = key(rows=1000)
    assert key_from(key_as_dict(at)) == at
    with pytest.raises(ValueError, match="local_bytes"):
        key_from({**key_as_dict(at), "device": {"name": "H200"}})


def test_nothing_is_made_before_the_first_trial(database):
    assert database.trials() == [] and best_of(database, key()) is None and database.barred(key()) == set()
    assert not database.path.parent.exists()


def test_the_fastest_is_best_until_a_tuning_decides(database):
    run(database, key(), SLOW, 2.0)
    run(database, key(), FAST, 1.0)
    best = best_of(database, key())
    assert dict(best.parameters) == FAST and best.median == 1.0 and best.rounds == (1.0,) * 3
    run(database, key(), SLOW, 1.1, final=True)
    assert dict(best_of(database, key()).parameters) == SLOW
    run(database, key(), FAST, 1.2, final=True)
    assert dict(best_of(database, key()).parameters) == FAST


def test_times_of_different_cases_are_not_compared(database):
    run(database, key(), SLOW, 0.1, case="1000 rows")
    run(database, key(), FAST, 0.5, case="1100 rows")
    assert dict(best_of(database, key()).parameters) == FAST
    run(database, key(), SLOW, 0.2, case="1000 rows")
    assert dict(best_of(database, key()).parameters) == FAST
    assert best_of(database, key(rows=5)) is None


def test_what_failed_is_barred_and_never_best(database):
    at, other_size = key(rows=1000), key(rows=64_000)
    run(database, at, FAST, 1.0)
    run(database, at, SLOW, 2.0)
    run(database, other_size, FAST, None, status="wrong")
    for status in ("failed", "hung"):
        run(database, at, {"wg": status}, None, status=status)
    run(database, at, {"wg": "slow"}, 9.0, status="slow")
    # The same kernel is the same text for any size.
    assert database.barred(at) == {'{"wg":64}', '{"wg":"failed"}', '{"wg":"hung"}'} == database.barred(other_size)
    assert database.barred(key(specialisation={"dtype": "float64"})) == set()
    assert dict(best_of(database, at).parameters) == SLOW
    run(database, at, FAST, 0.5, final=True)
    assert dict(best_of(database, at).parameters) == SLOW


def test_a_killed_tuner_loses_nothing_that_was_finished_and_its_configuration_is_skipped(database):
    code = (
        "import os, sys; sys.path.insert(0, 'tests')\n"
        "from pathlib import Path; from pyedmcl.tuning.database import Database; from tuning_helpers import key, run\n"
        "d = Database(Path(sys.argv[1])); run(d, key(), {'wg': 64})\n"
        "d.start(key(), {'wg': 32}, session='s'); os.kill(os.getpid(), 9)"
    )
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run([sys.executable, "-c", code, str(database.path)], cwd=root, env=environment(), check=False)
    assert done.returncode == -9
    assert [trial.status for trial in database.trials()] == ["ok", "started"]
    assert database.barred(key()) == {'{"wg":32}'}
    assert dict(best_of(database, key()).parameters) == {"wg": 64}


def test_a_trial_that_runs_is_not_barred_and_can_be_forgotten(database):
    number = database.start(key(), FAST, session="s")
    assert database.barred(key()) == set()
    database.forget(number)
    assert database.trials() == []


def test_a_writer_killed_within_a_transaction_leaves_what_was_before(database, tmp_path):
    run(database, key(), FAST)
    writer = sqlite3.connect(database.path, isolation_level=None)
    writer.execute("PRAGMA cache_size = 1")  # changed pages reach the file before the transaction ends
    writer.execute("BEGIN IMMEDIATE")
    writer.execute("UPDATE trials SET note = 'half done'")
    for i in range(500):
        writer.execute("INSERT INTO devices VALUES (?, ?)", (f"{i}", "x" * 500))
    # What lies on the disk at this moment is what a kill would leave.
    for file in database.path.parent.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    writer.execute("ROLLBACK")
    writer.close()
    assert (tmp_path / "tuning.sqlite3-journal").exists()
    after = Database(tmp_path / "tuning.sqlite3")
    (trial,) = after.trials()
    assert trial.note == "" and not after.problems and after.check() == "ok"


def test_a_process_is_known_by_more_than_its_number():
    token = process_token()
    host, number, born = token.split(" ")
    assert alive(token, 0.0)
    assert not alive(f"{host} {2**22 + 1} 1", 0.0)
    if born:
        assert not alive(f"{host} {number} 1", 0.0)
    assert not alive(f"elsewhere {number} {born}", 0.0)


def test_misuse_is_named(database):
    number = database.start(key(), FAST, session="s")
    with pytest.raises(InputError, match="status='good'"):
        database.finish(number, status="good")
    with pytest.raises(InputError, match="'ok' has times"):
        database.finish(number, status="ok")
    with pytest.raises(InputError, match="seconds above 0"):
        database.finish(number, status="ok", seconds=[1.0, float("nan")])
    with pytest.raises(InputError, match="trial_id=99"):
        database.finish(99, status="failed")


def test_two_tuners_at_once(database):
    """Two processes with two threads each."""
    code = (
        "import sys, threading; sys.path.insert(0, 'tests')\n"
        "from pathlib import Path; from pyedmcl.tuning.database import Database; from tuning_helpers import key, run\n"
        "def work(name):\n"
        "    d = Database(Path(sys.argv[1]))\n"
        "    for i in range(15): run(d, key(), {'wg': name + str(i)}, 1.0 + i)\n"
        "threads = [threading.Thread(target=work, args=(sys.argv[2] + n,)) for n in 'xy']\n"
        "[t.start() for t in threads]; [t.join() for t in threads]"
    )
    root = Path(__file__).resolve().parents[2]
    both = [
        subprocess.Popen([sys.executable, "-c", code, str(database.path), name], cwd=root, env=environment())
        for name in "ab"
    ]
    assert [process.wait() for process in both] == [0, 0]
    trials = database.trials(status="ok")
    assert len({trial.canonical for trial in trials}) == len(trials) == 60
    assert database.check() == "ok" and not database.problems


def test_a_locked_database_is_waited_for(database):
    run(database, key(), FAST)
    holder = sqlite3.connect(database.path, isolation_level=None, check_same_thread=False)
    holder.execute("BEGIN EXCLUSIVE")
    threading.Timer(0.4, lambda: holder.execute("COMMIT")).start()
    run(database, key(), SLOW)
    assert len(database.trials()) == 2 and not database.in_memory
    holder.close()


def test_where_nothing_can_be_written_memory_serves(tmp_path, caplog):
    (tmp_path / "file").write_text("in the way")
    database = Database(tmp_path / "file" / "tuning.sqlite3")
    run(database, key(), FAST)
    assert database.in_memory and "PYEDMCL_DATA_DIR" in caplog.text
    assert dict(best_of(database, key()).parameters) == FAST
    # The whole process sees it.
    assert len(Database(tmp_path / "file" / "tuning.sqlite3").trials()) == 1


def test_a_read_only_database_is_read_and_continued_in_memory(database, monkeypatch):
    run(database, key(), SLOW, 2.0)
    path = database.path
    connect = sqlite3.connect

    def read_only(name, **options):
        # What a read-only home does to everybody but root, who may run the tests.
        return connect(name.replace("mode=rwc", "mode=ro") if isinstance(name, str) else name, **options)

    monkeypatch.setattr(sqlite3, "connect", read_only)
    run(database, key(), FAST, 1.0)
    assert database.in_memory and "readonly" in database.problems[0]
    assert dict(best_of(database, key()).parameters) == FAST and len(database.trials()) == 2
    monkeypatch.undo()
    with sqlite3.connect(path) as raw:
        assert raw.execute("SELECT count(*) FROM trials").fetchone() == (1,)
    raw.close()


def test_no_write_ahead_log(database):
    run(database, key(), FAST)
    with sqlite3.connect(database.path) as raw:
        assert raw.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    raw.close()
    assert os.listdir(database.path.parent) == [database.path.name]


def test_removed_trials_are_gone(database):
    numbers = [run(database, key(), {"wg": i}) for i in range(3)]
    assert database.remove(numbers[:2]) == 2
    assert [trial.id for trial in database.trials()] == numbers[2:]


def test_a_file_gets_smaller_when_trials_are_removed(database):
    run(database, key(), {"wg": 64})
    least = database.path.stat().st_size
    database.add(Trial(key(), {"wg": wg}, "wrong", note="why" * 100) for wg in range(1000))
    assert database.path.stat().st_size > 5 * least
    assert database.remove(trial.id for trial in database.trials(status="wrong")) == 1000
    assert database.path.stat().st_size < 1.2 * least


def test_a_smaller_limit_stays(database):
    device = key().device.digest()
    database.set_limit(device, "knn", 64, "refused 128")
    database.set_limit(device, "knn", 128, "refused 256")
    assert database.limits() == [(device, "knn", 64, "refused 128")]
    assert database.known("knn", "text").limits == {device: 64}
    assert key(info=NVIDIA).device.digest() == device
