"""The command line: what it prints and where, what it writes, and what each exit code means."""

from __future__ import annotations

import csv
import json
import subprocess
import sys

import numpy as np
import pytest
from cli_helpers import environment, inside
from store_helpers import make_manifest
from typer.testing import CliRunner

import pyedmcl
from pyedmcl import errors
from pyedmcl.cli.app import app
from pyedmcl.cli.options import parse_columns
from pyedmcl.cli.output import plain
from pyedmcl.jobs import XmapStore, open_store
from pyedmcl.parameters import DIMENSIONS

N = 6


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def finished(tmp_path):
    """A finished result of six series that no device had to compute: (path, rho, E)."""
    rho = np.random.default_rng(0).uniform(-0.1, 1, (N, N)).astype(np.float32)
    with XmapStore.create_or_resume(tmp_path / "map.zarr", make_manifest(N, 4)) as store:
        store.set_E(np.arange(1, N + 1))
        for block in store.pending():
            store.write(block, rho[slice(*store.rows(block))])
    return tmp_path / "map.zarr", rho, list(range(1, N + 1))


@pytest.fixture
def begun(tmp_path):
    """A result of which only the first block is there."""
    with XmapStore.create_or_resume(tmp_path / "begun.zarr", make_manifest(N, 4)) as store:
        store.set_E(np.full(N, 2))
        store.write(0, np.full((4, N), 0.5, np.float32))
    return tmp_path / "begun.zarr"


# Help and usage


@pytest.mark.parametrize(
    "command", ["", "xmap", "embed-dimension", "simplex", "plot", "export", "status", "devices", "demo"]
)  # fmt: skip
def test_help_explains_the_exit_codes(command):
    result = run(*command.split(), "--help")
    assert result.exit_code == 0
    words = " ".join(result.output.split())
    for part in ("0 ok", "2 wrong usage", "4 no such device", "130 interrupted"):
        assert part in words


def test_help_loads_the_command_line_only():
    """What makes it quick: no room below is loaded, nor a package that they need."""
    code = (
        "import json, sys; from typer.testing import CliRunner; from pyedmcl.cli.app import app;"
        "done = CliRunner().invoke(app, ['--help']); print(json.dumps([done.exit_code, list(sys.modules)]))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True,
                          env=environment())  # fmt: skip
    exit_code, loaded = json.loads(done.stdout)
    assert exit_code == 0
    ours = {".".join(name.split(".")[:2]) for name in loaded if name.partition(".")[0] == "pyedmcl"}
    assert ours == {"pyedmcl", "pyedmcl.cli", "pyedmcl.errors", "pyedmcl.functions", "pyedmcl.parameters"}
    assert not {"numpy", "pyopencl", "matplotlib", "mako"} & set(loaded)


def test_version():
    result = run("--version")
    assert result.exit_code == 0 and result.output.startswith("pyedmcl ")
    assert pyedmcl.__version__ in result.output


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["nonsense"], "nonsense"),
        (["xmap", "x.csv"], "output"),
        (["xmap", "x.csv", "-o", "m.zarr", "--E", "three"], "three"),
        (["xmap", "x.csv", "-o", "m.zarr", "--columns", "a,,b"], "a,,b"),
        (["xmap", "x.csv", "-o", "m.csv"], "m.zarr"),
        (["multiview", "x.csv"], "Missing option '--target'"),
        (["xmap"], "Missing argument 'INPUT'"),
        (["plot"], "Missing argument 'RESULT'"),
        (["rqa", "x.csv"], "Missing option '--radius'"),
        (["export", "m.zarr"], "--edges"),
    ],
)
def test_wrong_usage_is_2(words, part):
    result = run(*words)
    assert result.exit_code == 2 and part in result.output


def test_columns_and_dimensions():
    assert parse_columns(None) is None
    assert parse_columns('a, "b,c" ,3') == ["a", "b,c", "3"]
    assert [DIMENSIONS.read(text) for text in ("auto", "3", "3,4, 5")] == ["auto", 3, [3, 4, 5]]


# Errors


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.InputError("why"), 3),
        (errors.DeviceNotFoundError("why"), 4),
        (errors.StoreForeignError("why"), 5),
        (errors.StoreMismatchError("why"), 5),
        (errors.StoreWriteError("why"), 5),
        (errors.DeviceMemoryError("why"), 6),
        (errors.BuildError("why"), 6),
        (errors.LaunchError("why"), 6),
        (errors.missing_extra("matplotlib", "plot", "why"), 7),
        (errors.Interrupted("why"), 130),
        (KeyboardInterrupt(), 130),
        (MemoryError("why"), 6),
    ],
)
def test_each_error_has_its_code_and_one_message(monkeypatch, error, code):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr("pyedmcl.device.select.discover", fail)
    result = run("devices")
    assert result.exit_code == code
    assert "Traceback" not in result.output
    if not isinstance(error, KeyboardInterrupt) or str(error):
        assert "why" in result.output
    for words in (["--debug", "devices"], ["devices", "--debug"]):
        shown = run(*words)
        assert shown.exit_code == code and "Traceback" in shown.output


def test_bug_is_not_hidden(monkeypatch):
    def fail(*_, **__):
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr("pyedmcl.device.select.discover", fail)
    result = run("devices")
    assert result.exit_code == 1 and isinstance(result.exception, ZeroDivisionError)


def test_input_that_is_not_there_or_not_numeric(tmp_path):
    result = run("embed-dimension", tmp_path / "absent.csv")
    assert result.exit_code == 3 and "absent.csv" in result.output
    (tmp_path / "words.csv").write_text("a,b\n" + "1,north\n2,south\n" * 20)
    result = run("xmap", tmp_path / "words.csv", "-o", tmp_path / "m.zarr")
    assert result.exit_code == 3 and "'b'" in result.output
    assert not (tmp_path / "m.zarr").exists()


def test_result_as_input_is_refused_with_advice(finished, tmp_path):
    result = run("xmap", finished[0], "-o", tmp_path / "other.zarr")
    assert result.exit_code == 3
    words = " ".join(result.output.split())
    assert "pyedmcl plot" in words and "pyedmcl export" in words


@pytest.mark.parametrize("command", ["plot", "export"])
def test_other_folders_and_unfinished_results(tmp_path, begun, command):
    out = tmp_path / ("map.png" if command == "plot" else "map.npy")
    (tmp_path / "folder").mkdir()
    for path in (tmp_path / "folder", tmp_path / "absent.zarr"):
        result = run(command, path, "-o", out)
        assert result.exit_code == 3 and path.name in result.output
    (tmp_path / "net.csv").write_text("cause,effect\na,b\n")
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "pairs.csv").write_text("cause,effect\na,b\n")
    for path in (tmp_path / "net.csv", tmp_path / "net"):
        result = run(command, path, "-o", out)
        said = " ".join(result.output.split())
        assert result.exit_code == 3 and "is no result that this command reads; name the folder" in said
        assert "output path" not in said
    result = run(command, begun, "-o", out)
    assert result.exit_code == 3 and "1 of 2 blocks" in result.output and not out.exists()
    if command == "export":
        assert run(command, begun, "-o", out, "--partial").exit_code == 0
        values = np.load(out)
        assert (values[:4] == 0.5).all() and np.isnan(values[4:]).all()


def test_output_that_cannot_be_written_is_refused_before_the_work(tmp_path, table, monkeypatch):
    def computed(*_, **__):
        raise AssertionError("computed before the path was checked")

    monkeypatch.setitem(vars(pyedmcl), "embed_dimension", computed)
    for words in (["-o", tmp_path / "absent" / "E.csv"], ["-o", tmp_path / "E.xlsx"], ["--plot", tmp_path / "E.doc"]):
        assert run("embed-dimension", table, *words).exit_code == 5


# Export and plot


def test_export_of_the_map(finished, tmp_path):
    path, rho, _ = finished
    assert run("export", path, "-o", tmp_path / "map.npy").exit_code == 0
    np.testing.assert_array_equal(np.load(tmp_path / "map.npy"), rho)
    assert run("export", path, "-o", tmp_path / "map.csv", "--quiet").output == ""
    with (tmp_path / "map.csv").open(newline="") as handle:
        rows = list(csv.reader(handle))
    assert rows[0] == ["library", *open_store(path).names]
    np.testing.assert_array_equal(np.array([row[1:] for row in rows[1:]], np.float32), rho)


def test_export_to_hdf5(finished, tmp_path):
    h5py = pytest.importorskip("h5py", reason="h5py is not installed; pip install 'pyedmcl[io]' brings it")
    path, rho, E = finished
    assert run("export", path, "-o", tmp_path / "map.h5").exit_code == 0
    with h5py.File(tmp_path / "map.h5") as file:
        np.testing.assert_array_equal(file["rho"][:], rho)
        assert file["e"][:].tolist() == E


def test_export_of_edges(finished, tmp_path):
    path, rho, E = finished
    off = np.where(np.eye(N, dtype=bool), -9, rho)
    library, target = np.unravel_index(np.argmax(off), off.shape)
    for words in (["-o", tmp_path / "edges.csv"], ["--json"]):
        result = run("export", path, "--edges", "--top", 7, *words)
        assert result.exit_code == 0
    edges = json.loads(result.stdout)["edges"]
    assert len(edges) == 7
    assert edges[0] == {"cause": f"cell {target}", "effect": f"cell {library}", "library": f"cell {library}",
                        "target": f"cell {target}", "rho": float(off.max()), "E": E[target],
                        "E_of": "cause"}  # fmt: skip
    with (tmp_path / "edges.csv").open(newline="") as handle:
        assert [float(row["rho"]) for row in csv.DictReader(handle)] == [edge["rho"] for edge in edges]
    printed = run("export", path, "--edges", "--top", 7)
    assert len([line for line in printed.stdout.splitlines() if "cell" in line]) == 7


def test_plot(finished, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed; pip install 'pyedmcl[plot]' brings it")
    result = run("plot", finished[0], "-o", tmp_path / "map.png", "--title", "six cells")
    assert result.exit_code == 0 and "map.png" in result.output
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")


# Talk and progress


def test_json_has_no_nan():
    value = {"a": np.float32("nan"), "b": np.array([1.5, np.inf]), 3: (np.int64(2), None, True)}
    assert json.loads(json.dumps(plain(value), allow_nan=False)) == {"a": None, "b": [1.5, None], "3": [2, None, True]}


# Devices


def test_devices_lists_and_explains(one_device):
    listed = json.loads(run("devices", "--json").stdout)
    assert one_device in [info["id"] for info in listed["devices"]]
    assert [info["id"] for info in listed["devices"] if info["chosen"]] == [listed["chosen"]]
    shown = run("devices").stdout
    assert all(info["name"] in shown for info in listed["devices"])
    assert f"would be chosen: {listed['chosen']} ({listed['reason']})" in shown
    for info in listed["devices"]:
        assert (info["unusable"] or "") in shown
    doctor = json.loads(run("devices", "--doctor", "--json").stdout)["doctor"]
    assert {"level", "what", "how_to_mend"} == set(doctor[0])
    assert any(finding["level"] == "ok" for finding in doctor)


def test_devices_that_are_not_there(one_device):
    result = run("devices", "--device", "no such device")
    assert result.exit_code == 4 and "no such device" in result.output
    listed = inside("devices", "--device", "no such device", "--json")
    assert listed.returncode == 4 and json.loads(listed.stdout)["chosen"] is None


def test_machine_without_devices(monkeypatch):
    monkeypatch.setattr("pyedmcl.device.select.discover", lambda **_: [])
    result = run("devices")
    assert result.exit_code == 4 and "pyedmcl[cpu]" in result.output
    assert run("devices", "--doctor").exit_code == 4


def test_a_series_is_continued_with_intervals(tmp_path):
    x = np.random.default_rng(1).random(200)
    np.savetxt(tmp_path / "x.csv", x, header="x", comments="")
    done = inside("simplex", "x.csv", "--E", "2", "--generate", "3", "-o", "next.csv", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "next.csv").read_text().splitlines()
    assert lines[0] == "time,observed,predicted,variance,lower,upper" and len(lines) == 4
    steps = json.loads(done.stdout)["steps"]
    assert len(steps) == 3 and all(step["lower"] < step["predicted"] < step["upper"] for step in steps)
