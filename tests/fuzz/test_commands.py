"""Random command lines of every command: an exit code that the help knows, a message, and inputs as they were."""

from __future__ import annotations

import itertools
import os
import subprocess
import time
import warnings

import numpy as np
import pytest
import tally
import typer
from cli_helpers import environment, words
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from pyedmcl.cli.app import app
from pyedmcl.cli.output import HELP
from pyedmcl.recurrence.arguments import METRICS

KIND = "command lines"
_SECONDS = 100
_INT = st.integers(-1, 3).map(str)
_SERIES = st.sampled_from(["a", "b", "0", "1"])
_SEVERAL = st.sampled_from(["a", "a,b", "0,1", "all"])
_RANGES = st.sampled_from(["0:40", "0:20,30:50"])
_TABLES, _PICTURES = st.sampled_from(["t.csv", "t.tsv", "t.json"]), st.sampled_from(["p.png", "p.svg", "p.pdf"])
_DRAWN = {"--plot": _PICTURES, "--plot-coefficients": _PICTURES, "--lines": _PICTURES, "--network": _PICTURES}

#: Words that an option or argument takes, by its name, or by command and name where commands differ.
LEGAL = {
    "input": st.sampled_from(["good.csv", "good.npz"]), "result": st.just("map.zarr"), "files": st.just("db.jsonl"),
    "results": st.just("map.zarr"),
    "kernels": st.sampled_from(["knn", "lookup"]), "kernel": st.just("knn"), "numbers": st.sampled_from(["1", "2"]),
    "parameters": st.sampled_from(["unroll=4", "wg=64,tile=256"]), "--why": st.just("wrong"), "--output": _TABLES,
    "xmap --output": st.just("m"),
    "ccm-matrix --output": st.just("c"), "demo --output": st.just("d"), "recurrence-plot --output": _PICTURES,
    "plot --output": _PICTURES, "report --output": st.sampled_from(["r.html", "r.htm"]), "--pair": st.just("a,b"),
    "export --output": st.sampled_from(["m.csv", "m.npy", "m.npz", "m.h5", "m.parquet", "m.json"]),
    "db export --output": st.just("out.jsonl"), "--pairs": _TABLES, "--E": st.sampled_from(["1", "2"]),
    "--E-max": st.just("2"), "--E-rule": st.sampled_from(["best", "one-se", "0.02", "all"]),
    "--tau": _INT, "--Tp": _INT, "--exclusion-radius": _INT, "--knn": _INT, "--columns": _SEVERAL, "--column": _SERIES,
    "--missing": st.sampled_from(["-9999", "ND,<"]), "--decimal": st.sampled_from([".", ","]),
    "--thousands": st.sampled_from([",", "'"]), "--time-format": st.sampled_from(["number", "%Y-%m-%d"]),
    "--header": st.sampled_from(["1", "none"]), "--skip-rows": st.sampled_from(["0", "2:3"]), "--comment": st.just("#"),
    "--names": st.just("names.txt"), "--errors": st.sampled_from(["nan", "raise"]),
    "--tune": st.sampled_from(["never", "cached"]), "--recurrence": st.just("0.2"), "--tile": st.just("32"),
    "--purpose": st.sampled_from(["maps", "recurrence"]),
    "--time-column": st.just("t"), "--dataset": st.just("values"), "--edges": _INT,
    "xmap-grid --output": st.just("g"), "xmap-grid --E": st.sampled_from(["1", "1:2"]),
    "xmap-grid --tau": st.sampled_from(["1", "1,2"]), "xmap-grid --Tp": st.sampled_from(["0", "-1:0"]),
    "--saturation": st.just("0.1"), "--table": _TABLES,
    "--folds": st.sampled_from(["2", "3"]),
    "--targets": st.sampled_from(["a", "1", "good.npz", "none.csv"]),
    "--keep": st.sampled_from(["all", "top:1", "top:1:target", "rho>0.5"]),
    "--neighbors": st.sampled_from(["exact", "auto", "kdtree"]), "--recall": st.just("0.9"),
    "--precision": st.sampled_from(["full", "compact"]),
    "--dtype": st.sampled_from(["float32", "float64"]), "--device": st.just("cpu"), "--client": st.just("nowhere"),
    "--target": _SERIES,
    "--lib": _RANGES, "--valid-lib": st.sampled_from(["a", "t"]),
    "--pred": _RANGES, "--theta": st.sampled_from(["0", "1,2"]), "ccm --theta": st.just("1"),
    "xmap --theta": st.just("1"), "--ridge": st.sampled_from(["0", "0.5"]),
    "--solver": st.sampled_from(["svd", "ridge"]), "--alpha": st.just("0.1"), "--generate": _INT, "--D": _INT,
    "--views": _INT,
    "--x": _SERIES, "--y": _SERIES, "--lib-sizes": st.sampled_from(["20", "10,30", "10:40:10"]), "--sample": _INT,
    "--lib-size": _INT,
    "--seed": _INT, "--part": st.sampled_from(["1/2", "2/2"]),
    "--checkpoint": st.just("run.npz"),
    "--method": st.sampled_from(["simplex", "smap"]),
    "surrogate-test --surrogate": st.sampled_from(["phase", "shuffle", "seasonal", "auto"]),
    "network --exclusion-radius": st.sampled_from(["auto", "0", "2"]),
    "network --surrogate": st.sampled_from(["phase", "auto", "none"]),
    "network --output": st.sampled_from(["n.csv", "n.json", "n.graphml", "n"]), "--text": st.just("t.txt"),
    "--season": st.sampled_from(["remove", "keep"]),
    "--lags": st.sampled_from(["none", "-1:1", "-2,0"]), "--latest": _INT, "network --budget": st.just("20"),
    "surrogate-test --budget": st.just("20"), "--partial-surrogates": st.just("3"),
    "--n": _INT, "--period": st.just("5"), "--rate": st.just("0.1"), "--radius": st.sampled_from(["0.3", "0.1,0.5"]),
    "--against": _SERIES, "--m": _INT, "--metric": st.sampled_from(list(METRICS)), "--theiler": _INT,
    "--convention": st.sampled_from(["pyrqa", "crqa"]),
    "--threshold": st.sampled_from(["fixed", "recurrence_rate", "corridor"]),
    "embedding-scan --E": st.sampled_from(["1", "1:2"]), "embedding-scan --tau": st.sampled_from(["1", "1,2"]),
    "embedding-scan --Tp": st.sampled_from(["1", "0:1"]), "--tolerance": st.just("0.1"),
    "--information": st.sampled_from(["binned", "kraskov"]),
    "--windows": st.sampled_from(["30,10", "20,5"]), "--skill": st.sampled_from(["pearson", "rmse"]),
    "--layout": st.sampled_from(["circle", "force"]), "--clusters": st.sampled_from(["auto", "A=a;B=b"]),
    "--draw": st.sampled_from(["rows", "groups"]), "--groups": st.sampled_from(["t", "a,b"]),
    "--exclude": st.sampled_from(["a", "b"]),
    "--regular": st.sampled_from(["insert", "ignore"]),
    "--normalize": st.sampled_from(["zscore", "range"]),
    "--radius-unit": st.sampled_from(["data", "std", "range", "max_distance"]),
    "--lmin": _INT, "--vmin": _INT, "--wmin": _INT, "--pixels": st.just("9"), "--black": st.just("0.5"),
    "--title": st.just("T"),
    "--dpi": st.just("40"), "--top": st.just("3"), "--mode": st.sampled_from(["quick", "normal"]),
    "--budget": st.just("1s"),
    "--older-than": _INT,
    "kernel --E": st.sampled_from(["3", "1:2"]), "--k": _INT, "--set": st.sampled_from(["emit=weights", "masked=true"]),
    "kernel --target": st.sampled_from(["gfx942", "nvidia", "cpu"]), "kernel --output": st.just("k"),
    "doctor --output": st.just("r.md"), "--seconds": st.just("0.01"),
    "topic": st.sampled_from(["terms", "files", "cli", "xmap"]), **_DRAWN,
}  # fmt: skip
ODD = st.sampled_from([
    "", " ", "-1", "0", "1.5", "1e400", "nan", "inf", "-inf", "2147483648", "9" * 30, "a,b", "a:b", "1:2:3", ":", ",",
    "--", "-", "\x1b[31m",
    "ä", "x" * 300, "x" * 300 + ".csv", "$\\frac{$", "=1", "nowhere/x.csv", "good.csv", "./good.csv", "folder",
    "folder.csv", "damaged.npz", "empty.csv", "header.csv", "odd.csv", "5:2", "0:999", "\udcff.csv", "auto", "all",
    "None", "t",
])  # fmt: skip
_EXITS = {0, *(int(part.split()[0]) for part in HELP.split(";")[1:-1])} - {1}
#: Words that keep a command from running for minutes.
_ALWAYS = {"tune": ["--explain"], "demo": ["--device", "nothing-of-the-kind"], "doctor": ["--seconds", "0.01"]}


def leaves(command, path=()):
    """(words, command) of each command."""
    if hasattr(command, "commands"):
        return [leaf for name, one in command.commands.items() for leaf in leaves(one, (*path, name))]
    return [(" ".join(path), command)]


COMMANDS = dict(leaves(typer.main.get_command(app)))


def is_flag(parameter):
    return getattr(parameter, "is_flag", False)


def legal(command, parameter):
    name = parameter.opts[0]
    return LEGAL.get(f"{command} {name}", LEGAL.get(name))


@st.composite
def lines(draw, command):
    """Words after ``pyedmcl``."""
    parameters = COMMANDS[command].params
    required = [p for p in parameters if p.required]
    places = [p for p in parameters if not p.required and p.param_type_name == "argument"]
    required += places[: draw(st.integers(0, len(places)))]
    optional = [p for p in parameters if not p.required and p.param_type_name == "option"]
    some = [p for p in optional if p.opts[0] not in ("--help", "--device")]
    chosen = [*required, *draw(st.lists(st.sampled_from(some), unique_by=id, max_size=5))]
    odd = draw(st.lists(st.sampled_from(chosen), unique_by=id, max_size=2)) if chosen else []
    line = [*command.split(), *_ALWAYS.get(command, [])]
    for parameter in chosen:
        name = parameter.opts[0]
        if is_flag(parameter):
            line.append(draw(st.sampled_from([*parameter.opts, *parameter.secondary_opts])))
            continue
        word = draw(ODD if any(parameter is one for one in odd) else legal(command, parameter))
        line += [word] if parameter.param_type_name == "argument" else [name, word]
    return [*line, *draw(st.sampled_from([[], [], [], ["--nothing"], ["more"], ["--help"]]))]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory, one_device):
    """A folder with all inputs that lines name."""
    folder = tmp_path_factory.mktemp("inputs")
    values = np.random.default_rng(0).random((50, 2))
    rows = "\n".join(f"{t},{a},{b}" for t, (a, b) in enumerate(values.tolist()))
    (folder / "good.csv").write_text(f"t,a,b\n{rows}\n")
    np.savez(folder / "good.npz", values=values, names=np.array(["a", "b"]))
    (folder / "damaged.npz").write_bytes((folder / "good.npz").read_bytes()[:-30])
    (folder / "empty.csv").touch()
    (folder / "header.csv").write_text("a,b\n")
    (folder / "odd.csv").write_text("$\\frac{$,\x1b[31m\n" + "\n".join(f"{a},{b}" for a, b in values.tolist()))
    (folder / "folder").mkdir()
    (folder / "folder" / "own.txt").write_text("no result is written here")  # as it may be into an empty folder
    (folder / "folder.csv").mkdir()
    (folder / "db.jsonl").write_text("")
    line = ["xmap", folder / "good.csv", "--columns", "a,b", "--E", 1, "-o", folder / "map.zarr"]
    done = CliRunner().invoke(app, list(map(str, line)))
    assert done.exit_code == 0, done.output
    return folder


def _content(folder):
    return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


_numbers = itertools.count()


@pytest.mark.parametrize("command", COMMANDS)
def test_random_lines(command, inputs, tmp_path, monkeypatch):
    before = _content(inputs)

    @settings(max_examples=max(settings().max_examples // 5, 4))
    @given(lines(command))
    def call(line):
        place = tmp_path / str(next(_numbers))
        place.mkdir()
        for path in inputs.iterdir():
            (place / path.name).symlink_to(path)
        monkeypatch.chdir(place)
        begun = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            done = CliRunner().invoke(app, line)
        tally.count(KIND, f"exit {done.exit_code}")
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        assert done.exit_code in _EXITS, done.output
        assert done.exit_code == 0 or done.output.strip()
        assert "\x1b[31m" not in done.output.replace("error: ", "")
        assert _content(inputs) == before
        assert not [path for path in os.listdir(place) if path.startswith(".")]
        assert time.process_time() - begun < _SECONDS

    call()


def test_every_word_has_legal_values():
    missing = [
        (command, parameter.opts[0]) for command, one in COMMANDS.items() for parameter in one.params
        if not is_flag(parameter) and legal(command, parameter) is None
    ]  # fmt: skip
    assert missing == [], "add a row to LEGAL"


def test_random_lines_in_processes(inputs, tmp_path, monkeypatch):
    for path in inputs.iterdir():
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)

    @settings(max_examples=max(settings().max_examples // 10, 2))
    @given(st.sampled_from(sorted(COMMANDS)).flatmap(lines))
    def call(line):
        done = subprocess.run(words(*line), capture_output=True, timeout=_SECONDS, env=environment())
        tally.count(f"{KIND} in processes", f"exit {done.returncode}")
        assert done.returncode in _EXITS, done.stderr
        assert b"Traceback" not in done.stderr or "--debug" in line

    call()
