"""Commands that derive from functions: their options are the arguments of these, and what they compute is the same."""

from __future__ import annotations

import inspect
import json

import numpy as np
import pytest
import typer
from test_cli_defaults import module_of
from typer.testing import CliRunner

import pyedmcl
from pyedmcl.cli.app import app
from pyedmcl.cli.methods import Derived
from pyedmcl.functions import COMMANDS
from pyedmcl.parameters import arguments_of

DERIVED = {name: command for name in COMMANDS
           if isinstance(command := getattr(module_of(name), name.replace("-", "_")), Derived)}  # fmt: skip
#: Arguments that a command leaves out, and why.
WITHOUT = dict.fromkeys(
    [("surrogate-test", name) for name in ("resume", "join", "part")], "its --output is a table, and no folder"
)  # fmt: skip


def run(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == 0, done.output
    return done


@pytest.fixture
def table(tmp_path):
    """Two coupled maps, a column that marks four rows of five, and one that names the half."""
    x, y = np.full(120, 0.4), np.full(120, 0.3)
    for t in range(119):
        x[t + 1] = 3.8 * x[t] * (1 - x[t])
        y[t + 1] = 3.7 * y[t] * (1 - y[t] - 0.1 * x[t])
    path = tmp_path / "data.csv"
    lines = [f"{x[t]!r},{y[t]!r},{int(t % 5 > 0)},{'ab'[t > 59]}" for t in range(120)]
    path.write_text("\n".join(["x,y,used,site", *lines]).replace("np.float64(", "").replace(")", "") + "\n")
    return path


@pytest.mark.parametrize("command", DERIVED)
def test_every_argument_with_a_line_of_help_is_an_option(command):
    flags = {flag for one in typer.main.get_command(app).commands[command].params for flag in one.opts}
    rows = [row for name in DERIVED[command].functions for row in arguments_of(getattr(pyedmcl, name)).values()]
    assert {row.name for row in rows if row.help and row.flag not in flags} == {
        name for one, name in WITHOUT if one == command
    }


@pytest.mark.parametrize("command", DERIVED)
def test_what_a_command_takes_itself_is_no_argument_with_a_row(command):
    own = list(inspect.signature(DERIVED[command]._body).parameters)[1:]
    rows = {name for one in DERIVED[command].functions for name in arguments_of(getattr(pyedmcl, one))}
    assert {name for name in own if name in rows} <= {"columns", "target", "targets", "x", "y", "pairs"}


@pytest.mark.parametrize("groups", [False, True], ids=["rows", "groups"])
@pytest.mark.parametrize(("command", "words", "keywords"), [
    ("simplex", ["--column", "x"], {"E": 2}),
    ("smap", ["--column", "x"], {"E": 2, "theta": 1.0}),
    ("predict-interval", ["--column", "x"], {"E": 2, "Tp": [1, 2]}),
    ("predict-nonlinear", ["--column", "x"], {"E": 2, "theta": [0, 1]}),
    ("multiview", ["--columns", "x,y", "--target", "x"], {"D": 2, "E": 2}),
])  # fmt: skip
def test_marked_rows_and_groups_are_those_of_the_function(command, words, keywords, groups, table, one_device):
    x, y, used = np.loadtxt(table, delimiter=",", skiprows=1, usecols=(0, 1, 2)).T
    data = ({"x": x, "y": y}, "x") if command == "multiview" else (x,)
    labels = {"groups": np.repeat(["a", "b"], 60)} if groups else {}
    function = getattr(pyedmcl, command.replace("-", "_"))
    expected = function(*data, **keywords, **labels, valid_lib=used != 0, device=one_device)
    unmarked = function(*data, **keywords, **labels, device=one_device)
    texts = [word for name, value in keywords.items()
             for word in (f"--{name}", ",".join(map(str, np.atleast_1d(value))))]  # fmt: skip
    more = ["--groups", "site"] if groups else []
    done = run(command, table, *words, *texts, *more, "--valid-lib", "used", "--json", "--device", one_device)
    found = json.loads(done.stdout)
    skill = found.get("skill", [found])
    assert [one["rho"] for one in skill] == np.atleast_1d(expected.rho).tolist()
    assert np.any(np.atleast_1d(expected.rho) != np.atleast_1d(unmarked.rho))


def test_a_state_of_several_columns_needs_no_dimension(table, one_device):
    x, y = np.loadtxt(table, delimiter=",", skiprows=1, usecols=(0, 1)).T
    expected = pyedmcl.simplex(np.column_stack([x, y]), target=y, embedded=True, skill="mae", device=one_device)
    done = run("simplex", table, "--column", "x,y", "--target", "y", "--embedded", "--skill", "mae", "--json",
               "--device", one_device)  # fmt: skip
    found = json.loads(done.stdout)
    assert (found["columns"], found["target"], found["E"]) == (["x", "y"], "y", 2)
    assert found["mae"] == float(expected.mae)


def test_predictions_of_groups_are_written_group_by_group(table, tmp_path, one_device):
    path = tmp_path / "predictions.csv"
    run("multiview", table, "--columns", "x,y", "--target", "x", "--D", 2, "--groups", "site", "-o", path,
        "--device", one_device)  # fmt: skip
    header, *lines = path.read_text().splitlines()
    assert header == "group,time,observed,predicted,variance"
    groups = [line[0] for line in lines]
    assert set(groups) == {"a", "b"} and groups == sorted(groups)


@pytest.mark.parametrize("command", ["embed-dimension", "embedding-scan"])
def test_columns_that_name_groups_or_mark_rows_are_no_series(command, table, one_device):
    more = ["--valid-lib", "used"] if command == "embed-dimension" else ["--exclude", "used"]
    keywords = {"E_max": 3} if command == "embed-dimension" else {"E": range(1, 4), "tau": 1}
    texts = ["--E-max", 3] if command == "embed-dimension" else ["--E", "1:3", "--tau", 1]
    x, y, used = np.loadtxt(table, delimiter=",", skiprows=1, usecols=(0, 1, 2)).T
    rows = {"valid_lib": used != 0} if command == "embed-dimension" else {}
    function = getattr(pyedmcl, command.replace("-", "_"))
    expected = function({"x": x, "y": y}, groups=np.repeat(["a", "b"], 60), **keywords, **rows, device=one_device)
    found = json.loads(run(command, table, "--groups", "site", *more, *texts, "--json", "--device", one_device).stdout)
    assert found["names"] == ["x", "y"] and np.array_equal(np.ravel(found["rho"]), np.ravel(expected.rho))


@pytest.mark.parametrize(("words", "option"), [
    (["surrogate-test", "--exclude", "used,site", "--lib-size", "30"], "--lib-size: xmap_significance()"),
    (["recurrence-plot", "--column", "x", "--threshold", "corridor", "-o", "p.png"], "--threshold: distance_plot()"),
])  # fmt: skip
def test_an_option_that_the_function_at_work_lacks_is_refused(words, option, table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command, *rest = words
    done = CliRunner().invoke(app, [command, str(table), *rest], env={"TERMINAL_WIDTH": "200"})
    assert done.exit_code == 2 and option in " ".join(done.output.replace("│", " ").split()), done.output


def test_a_pair_is_tested_with_random_libraries_of_marked_rows(table, one_device):
    x, y, used = np.loadtxt(table, delimiter=",", skiprows=1, usecols=(0, 1, 2)).T
    expected = pyedmcl.ccm_significance(x, y, E=2, n=19, seed=3, lib_size=30, sample=4, surrogate="shuffle",
                                        valid_lib=used != 0, device=one_device)  # fmt: skip
    done = run("surrogate-test", table, "--x", "x", "--y", "y", "--E", 2, "--n", 19, "--seed", 3, "--lib-size", 30,
               "--sample", 4, "--surrogate", "shuffle", "--valid-lib", "used", "--json",
               "--device", one_device)  # fmt: skip
    assert [pair["rho"] for pair in json.loads(done.stdout)["pairs"]] == expected.rho.tolist()


def test_marks_are_read_as_they_are_whatever_is_done_with_series(table, one_device):
    """In units of its standard deviation a mark of 0 would be none."""
    x, used = np.loadtxt(table, delimiter=",", skiprows=1, usecols=(0, 2)).T
    expected = pyedmcl.simplex((x - x.mean()) / x.std(), E=2, valid_lib=used != 0, device=one_device)
    done = run("simplex", table, "--column", "x", "--E", 2, "--valid-lib", "used", "--standardize", "--json",
               "--device", one_device)  # fmt: skip
    assert json.loads(done.stdout)["rho"] == pytest.approx(float(expected.rho), abs=1e-6)
    everything = pyedmcl.simplex((x - x.mean()) / x.std(), E=2, device=one_device)
    assert abs(float(everything.rho) - float(expected.rho)) > 1e-5
