"""Whole commands as a user runs them: results, purity of --json, Ctrl-C, kill -9, a full disk, and continuing."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from cli_helpers import environment, inside, shell
from process_helpers import end_of, wait_until

import pyedmcl
from pyedmcl.jobs import open_store
from pyedmcl.simulate import coupled_maps


@pytest.fixture(scope="module")
def long_job(tmp_path_factory):
    """A file whose map has many blocks."""
    path = tmp_path_factory.mktemp("long") / "long.npy"
    np.save(path, coupled_maps(400, 400, seed=1).values)
    return path


def test_xmap_of_a_csv(table, tmp_path, network, one_device):
    out = tmp_path / "map.zarr"
    done = shell("xmap", table, "-o", out, "--E-max", 4, "--edges", 3, "--device", one_device)
    assert done.returncode == 0, done.stderr
    expected = pyedmcl.xmap(network.values.astype(float), E_max=4, device=one_device)
    store = open_store(out)
    assert store.complete and store.names == network.names
    np.testing.assert_array_equal(np.asarray(store.rho), expected.rho)
    np.testing.assert_array_equal(store.E, expected.E)
    best = expected.edges(top=1)[0]
    assert any(f"map{best.library[1:]}" in line and f"{best.rho:.4f}" in line for line in done.stdout.splitlines())
    again = inside("xmap", table, "-o", out, "--E-max", 4, "--device", one_device)
    assert again.returncode == 0 and "complete already" in again.stderr, "a finished result is simply there"
    assert "complete already" not in done.stderr
    other = inside("xmap", table, "-o", out, "--E-max", 4, "--tau", 2, "--device", one_device)
    assert other.returncode == 5 and "tau" in other.stderr and "Traceback" not in other.stderr
    assert "start again with --no-resume, which removes" in other.stderr, "named once, as an option"
    anew = inside("xmap", table, "-o", out, "--E", 2, "--tau", 2, "--no-resume", "--device", one_device)
    assert anew.returncode == 0 and set(open_store(out).E) == {2}


def test_xmap_json_is_all_of_stdout(table, tmp_path, network, one_device):
    # Positions count the columns of the file, in which the year is the first.
    done = shell("xmap", table, "-o", tmp_path / "m.zarr", "--E", "1,2,3", "--columns", "map2,2,map0", "--json",
                 "--edges", 2, "--progress", "--device", one_device)  # fmt: skip
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["names"] == ["map2", "map1", "map0"]
    assert answer["E"] == [1, 2, 3]
    assert len(answer["edges"]) == 2
    assert list(answer["edges"][0]) == ["cause", "effect", "library", "target", "rho", "E", "E_of"]
    assert "cross mapping" in done.stderr, "progress goes to stderr"
    assert answer["provenance"]["device"]


def test_xmap_quiet_says_nothing(table, tmp_path, one_device):
    done = shell("xmap", table, "-o", tmp_path / "m.zarr", "--E", 2, "--quiet", "--device", one_device)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_constant_series_is_told(tmp_path, network, one_device):
    values = network.values.copy()
    values[:, 2] = 0.5
    np.save(tmp_path / "x.npy", values)
    done = inside("xmap", tmp_path / "x.npy", "-o", tmp_path / "m.zarr", "--E", 2, "--json", "--device", one_device)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["constant"] == ["x2"]
    assert "never change" in done.stderr and "x2" in done.stderr
    assert np.isnan(np.asarray(open_store(tmp_path / "m.zarr").rho)[:, 2]).all()


def test_exit_codes_of_runs(table, tmp_path, one_device):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    out = tmp_path / "m.zarr"
    cases = [
        (["xmap", table, "-o", out, "--E", 0], 3, "E"),
        (["xmap", table, "-o", out, "--E", 400], 3, "rows"),
        (["xmap", table, "-o", out, "--E", 2, "--device", "no such device"], 4, one_device),
        (["xmap", table, "-o", tmp_path / "mine", "--E", 2], 5, "mine"),
        (["xmap", table, "-o", table / "below", "--E", 2], 5, "below"),
        (["embed-dimension", table, "--E-max", 0], 3, "--E-max"),
        (["simplex", table, "--E", 2], 2, "--column"),
        (["simplex", table, "--E", 2, "--column", "absent"], 3, "absent"),
    ]
    for parts, code, part in cases:
        done = inside(*parts)
        assert done.returncode == code and part in done.stderr, f"{parts}: {done.stderr}"
        assert "Traceback" not in done.stderr and not done.stdout
    assert [entry.name for entry in (tmp_path / "mine").iterdir()] == ["notes.txt"]


def test_embed_dimension(table, tmp_path, network, one_device):
    expected = pyedmcl.embed_dimension(network.values.astype(float), E_max=4, device=one_device)
    out = tmp_path / "E.csv"
    done = inside("embed-dimension", table, "--E-max", 4, "-o", out, "--json", "--device", one_device)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["E"] == expected.E.tolist() and answer["names"] == list(network.names)
    np.testing.assert_allclose(answer["rho"], expected.rho, rtol=1e-12)
    with out.open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert [int(row["E"]) for row in rows] == expected.E.tolist()
    np.testing.assert_array_equal([float(row["rho_E3"]) for row in rows], expected.rho[:, 2])
    printed = inside("embed-dimension", table, "--E-max", 4, "--columns", "map4", "--device", one_device)
    assert printed.stdout.split()[-3:-1] == ["map4", str(expected.E[4])]


def test_embed_dimension_plot(table, tmp_path, one_device):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed; pip install 'pyedmcl[plot]' brings it")
    done = inside("embed-dimension", table, "--E-max", 3, "--plot", tmp_path / "E.png", "--device", one_device)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "E.png").read_bytes().startswith(b"\x89PNG")


def test_simplex(table, tmp_path, network, one_device):
    x = network.values.astype(float)
    out = tmp_path / "p.csv"
    done = inside("simplex", table, "--column", "map0", "--target", "map1", "--E", 2, "--Tp", 1, "-o", out, "--json",
                  "--device", one_device)  # fmt: skip
    assert done.returncode == 0, done.stderr
    expected = pyedmcl.simplex(x[:, 0], target=x[:, 1], E=2, Tp=1, device=one_device)
    answer = json.loads(done.stdout)
    assert (answer["columns"], answer["target"]) == (["map0"], "map1")
    assert [answer[name] for name in ("rho", "mae", "rmse")] == [expected.rho, expected.mae, expected.rmse]
    with out.open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    np.testing.assert_array_equal([float(row["predicted"]) for row in rows], expected.predicted)
    assert rows[0]["time"] == str(1700 + expected.time[0])
    assert rows[-1]["time"] == str(1700 + expected.time[-1]), "the last prediction lies beyond the file"
    assert rows[-1]["observed"] == "NaN"


# The command itself, which stops before its fourth block: on a fast device the run would be over before a signal
# could reach it.
WAITING = """
import time
from pyedmcl.jobs import XmapStore
from pyedmcl.cli.app import main
write, done = XmapStore.write, []
def waiting(*words):
    if len(done) == 3:
        time.sleep(600)
    write(*words)
    done.append(words)
XmapStore.write = waiting
main()
"""


def interrupted(long_job, out, device, number):
    """Start a long xmap and send it a signal after two blocks: (exit code, stderr).

    The third line of the journal is waited for: a signal while a line is being made durable takes it back.
    """
    command = [sys.executable, "-c", WAITING, "xmap", long_job, "-o", out, "--E", "3", "--device", device]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment())
    journal = out / "rho" / "blocks.jsonl"
    wait_until(lambda: journal.exists() and journal.read_bytes().count(b"\n") >= 3, process, "three blocks")
    process.send_signal(number)
    _, told = end_of(process)
    return process.returncode, told


@pytest.fixture(scope="module")
def uninterrupted(long_job, tmp_path_factory, one_device):
    out = tmp_path_factory.mktemp("whole") / "m.zarr"
    done = inside("xmap", long_job, "-o", out, "--E", 3, "--quiet", "--device", one_device)
    assert done.returncode == 0, done.stderr
    return np.asarray(open_store(out).rho)


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_interrupted_run_continues_to_the_same_bits(long_job, tmp_path, one_device, uninterrupted, number):
    out = tmp_path / "m.zarr"
    code, told = interrupted(long_job, out, one_device, number)
    if number == signal.SIGINT:
        assert code == 130 and "Traceback" not in told
        assert "blocks" in told and "kept" in told and "continue" in told
    else:
        assert code == -signal.SIGKILL
    begun = open_store(out)
    kept = begun.n_blocks - len(begun.pending())
    assert kept >= 2 and not begun.complete
    stamps = {block: (out / "rho" / f"c.{block}.0").stat().st_mtime_ns for block in range(begun.n_blocks)
              if block not in begun.pending()}  # fmt: skip
    done = inside("xmap", long_job, "-o", out, "--E", 3, "--progress", "--device", one_device)
    assert done.returncode == 0, done.stderr
    assert all((out / "rho" / f"c.{block}.0").stat().st_mtime_ns == stamp for block, stamp in stamps.items()), (
        "finished blocks are not computed again")
    np.testing.assert_array_equal(np.asarray(open_store(out).rho), uninterrupted)


@pytest.mark.skipif(sys.platform == "win32", reason="no limit on the size of a file can be set there")
def test_full_disk_is_told_and_continued(table, tmp_path, network, one_device):
    out = tmp_path / "m.zarr"
    values = coupled_maps(200, 200, seed=1).values
    np.save(tmp_path / "x.npy", values)
    limit = "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); " \
            "resource.setrlimit(resource.RLIMIT_FSIZE, (8000, 8000)); from pyedmcl.cli.app import main; main()"
    parts = ["xmap", tmp_path / "x.npy", "-o", out, "--E", "2", "--device", one_device]
    pyedmcl.xmap(values[:, :3], E=2, device=one_device)  # so that compilers need to write no cache under the limit
    done = subprocess.run([sys.executable, "-c", limit, *map(str, parts)], capture_output=True, text=True, timeout=240,
                          env=environment())  # fmt: skip
    assert done.returncode == 5, done.stderr
    assert "Traceback" not in done.stderr and "same command" in done.stderr
    assert inside(*parts).returncode == 0
    np.testing.assert_array_equal(np.asarray(open_store(out).rho), pyedmcl.xmap(values, E=2, device=one_device).rho)


@pytest.mark.parametrize(("command", "options"), [
    ("embed-dimension", ()), ("xmap", ("-o", "m.zarr")), ("ccm-matrix", ("-o", "c.zarr", "--lib-sizes", "50")),
    ("network", ("-o", "n.csv", "--surrogate", "none", "--lags", "none")), ("surrogate-test", ("--n", 9, "--seed", 1)),
    ("ccm", ("--x", "map0", "--y", "map1", "--lib-sizes", "50", "--sample", 5)),
])  # fmt: skip
def test_a_rule_for_E_reaches_the_search(table, tmp_path, one_device, command, options):
    where = [tmp_path / part if str(part).startswith(("m.", "c.", "n.")) else part for part in options]
    found = []
    for rule in ("best", "1.9"):
        place = [f"{part}-{rule}{part.suffix}" if hasattr(part, "suffix") else part for part in where]
        done = inside(command, table, *place, "--E-max", 3, "--E-rule", rule, "--json", "--device", one_device)
        assert done.returncode == 0, done.stderr
        found.append(done.stdout)
    assert found[0] != found[1]
    wrong = inside(command, table, *where, "--E-rule", "all", "--device", one_device)
    assert wrong.returncode == 3 and "--E-rule 'all'" in wrong.stderr
