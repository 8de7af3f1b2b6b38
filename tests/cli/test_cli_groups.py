"""Recordings that stand one below the other in a file: which columns hold values, and which say whose rows they are."""

from __future__ import annotations

import numpy as np
import pytest
import typer.main
from cli_helpers import inside

import pyedmcl
from pyedmcl.cli.app import app
from pyedmcl.simulate import coupled_maps

N = 160


@pytest.fixture
def table(tmp_path):
    """Columns site and plot (texts), and three series."""
    values = coupled_maps(n_series=3, n_steps=N, seed=1).values.astype(float)
    rows = [f"s{i // 80},p{i // 40},{','.join(map(repr, row))}" for i, row in enumerate(values.tolist())]
    path = tmp_path / "plots.csv"
    path.write_text("\n".join(["site,plot,a,b,c", *rows]) + "\n")
    return path, values


@pytest.mark.parametrize(("options", "taken"), [
    (["--groups", "site,plot"], [0, 1, 2]), (["--groups", "plot", "--columns=-site"], [0, 1, 2]),
    (["--groups", "plot", "--columns", "a,c"], [0, 2]), (["--groups", "site,plot", "--columns=-b"], [0, 2]),
])  # fmt: skip
def test_values_are_all_columns_but_those_of_groups(table, options, taken, tmp_path, one_device):
    path, values = table
    done = inside("xmap", path, "-o", tmp_path / "m.zarr", "--E", 2, "--device", one_device, *options)
    assert done.returncode == 0, done.stderr
    expected = pyedmcl.xmap(values[:, taken], E=2, groups=np.arange(N) // 40, device=one_device)
    found = pyedmcl.open_xmap(tmp_path / "m.zarr")
    assert found.names == tuple("abc"[i] for i in taken)
    np.testing.assert_array_equal(np.asarray(found.rho), expected.rho)


def test_positions_of_groups_need_columns(table, one_device):
    done = inside("embed-dimension", table[0], "--groups", "0", "--device", one_device)
    assert done.returncode == 2 and "--groups needs" in done.stderr


def test_recordings_one_below_the_other_are_told_of(tmp_path, one_device):
    """A time that begins anew is the time, and no series; unless the groups are named, commands refuse it."""
    path = tmp_path / "long.csv"
    rows = [f"{who},{t},{value}" for who in "abc" for t, value in enumerate(np.random.default_rng(1).random(40))]
    path.write_text("subject,time,x\n" + "\n".join(rows) + "\n")
    for words in (["rqa", path, "--column", "x", "--radius", 0.2], ["embed-dimension", path, "--columns=-subject"]):
        done = inside(*words, "--device", one_device)
        said = " ".join(done.stderr.split())
        assert done.returncode == 3 and said.count("the time goes back 2 times, first in row 40") == 1, done.stderr
        assert ("--groups" in said) is (words[0] != "rqa") and "--regular ignore" in said and "groups=" not in said
        done = inside(*words, "--regular", "ignore", "--device", one_device)
        assert done.returncode == 0 and " ".join(done.stderr.split()).count("the time goes back 2 times") == 1
    done = inside("embed-dimension", path, "--groups", "subject", "--device", one_device)
    assert done.returncode == 0 and "goes back" not in done.stderr, done.stderr
    done = inside("check", path, "--columns=-subject")
    assert "1 series of 120 rows" in done.stdout and done.stdout.count("goes back") == 1, done.stdout


def test_rows_that_are_missing_are_refused_or_told_of(tmp_path, one_device):
    path = tmp_path / "gaps.csv"
    days = [day for day in range(60) if day not in (20, 21, 40)]
    path.write_text("day,x\n" + "\n".join(f"{day},{day * 7 % 11}" for day in days) + "\n")
    words = ["simplex", path, "--column", "x", "--E", 2, "--device", one_device]
    done = inside(*words)
    assert done.returncode == 3 and "3 rows are missing in 2 places, before row 20 (22), 38 (41)" in done.stderr
    for wish, found in (("insert", "put in 3 rows of NaN in 2 places"), ("ignore", "3 rows are missing in 2 places")):
        done = inside(*words, "--regular", wish, "-o", tmp_path / f"{wish}.csv")
        assert done.returncode == 0 and " ".join(done.stderr.split()).count(found) == 1, done.stderr
    assert [(tmp_path / f"{wish}.csv").read_text().count("\n") for wish in ("insert", "ignore")] == [60, 57]
    quiet = inside(*words, "--regular", "ignore", "--quiet")
    assert quiet.returncode == 0 and "missing" not in quiet.stderr


def test_a_flag_is_named_as_in_the_shell(table):
    done = inside("network", table[0], "--columns", "a,b", "--join")
    assert done.returncode == 3 and "--join: processes share a folder; name it by --output" in done.stderr


#: What each command needs beside its input; --device too, but for those that have none.
_NEEDS = {
    "xmap": ["-o", "m.zarr", "--E", 1], "xmap-grid": ["-o", "g.zarr", "--E", 1], "embed-dimension": [],
    "embedding-scan": [], "suggest": [], "simplex": ["--column", "a", "--E", 1], "smap": ["--column", "a", "--E", 1],
    "predict-nonlinear": ["--column", "a", "--E", 1], "predict-interval": ["--column", "a", "--E", 1],
    "multiview": ["--target", "a"], "ccm": ["--E", 1], "ccm-matrix": ["-o", "c.zarr", "--E", 1],
    "surrogate-test": ["--E", 1], "network": ["-o", "n.csv"], "rqa": ["--column", "a", "--radius", 0.1],
    "rqa-batch": ["--radius", 0.1], "recurrence-plot": ["--column", "a", "--radius", 0.1, "-o", "r.png"],
}  # fmt: skip
_READERS = [
    name for name, command in typer.main.get_command(app).commands.items()
    if any(parameter.name == "time_column" for parameter in command.params)
]  # fmt: skip


@pytest.mark.parametrize("command", [name for name in _READERS if name != "check"])
def test_every_command_refuses_rows_that_are_missing(tmp_path, one_device, command):
    values = np.random.default_rng(2).random((61, 2))
    rows = [f"{day},{a},{b}" for day, (a, b) in enumerate(values) if day not in (30, 31)]
    (tmp_path / "gaps.csv").write_text("day,a,b\n" + "\n".join(rows) + "\n")
    done = inside(command, "gaps.csv", *_NEEDS[command], "--device", one_device, cwd=tmp_path)
    said = " ".join(done.stderr.split())
    assert done.returncode == 3 and "2 rows are missing in 1 place, before row 30 (32)" in said, done.stderr
    assert "--regular insert" in said and "regular=" not in said
    assert [path.name for path in tmp_path.iterdir()] == ["gaps.csv"], "nothing was begun"
