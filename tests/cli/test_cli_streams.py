"""Full, closed and ASCII streams; names that would steer a terminal; results that would replace what is read."""

from __future__ import annotations

import os
import re
import subprocess

import numpy as np
import pytest
from cli_helpers import environment, shell, words
from typer.testing import CliRunner

from pyedmcl.cli.app import app
from pyedmcl.cli.output import printable

ODD = ("a\x1b[31mred", "$\\frac{$", "=1+1", "@sum", "ok")
full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Series with names that nobody can trust."""
    path = tmp_path_factory.mktemp("series") / "good.npz"
    values = np.random.default_rng(0).random((60, len(ODD)))
    np.savez(path, values=values, names=np.array(ODD))
    return path


def run(*parts):
    return CliRunner().invoke(app, [str(part) for part in parts])


def redirected(*parts, how, **options):
    line = ["sh", "-c", f'exec "$@" {how}', "sh", *words(*parts)]
    return subprocess.run(line, capture_output=True, text=True, timeout=120, env=environment(), **options)


def test_a_table_is_aligned_where_signs_are_written_as_escapes(tmp_path):
    path = tmp_path / "series.npz"
    np.savez(path, values=np.random.default_rng(0).random((60, 2)), names=np.array(["grün", "b"]))
    done = subprocess.run(
        words("embed-dimension", path, "--E-max", 1), capture_output=True, text=True, timeout=120,
        env={**environment(), "LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if line.startswith(("gr\\xfcn", "b "))]
    assert len(lines) == 2 and len({re.search(r"\S\s+(?=\d)", line).end() for line in lines}) == 1, done.stdout


@full
@pytest.mark.parametrize("parts", [["--version"], ["--help"], ["devices"], ["devices", "--json"], ["db", "show"]])
def test_a_full_disk_behind_stdout_is_told(parts):
    done = redirected(*parts, how=">/dev/full")
    assert done.returncode == 5 and "No space left" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize("parts", [["--help"], ["devices"], ["devices", "--json"]])
def test_a_pipe_that_its_reader_closed_ends_silently(parts):
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(words(*parts), stdout=write, stderr=subprocess.PIPE, text=True, env=environment())
    os.close(write)
    assert done.returncode == 141 and done.stderr == ""


@pytest.mark.parametrize("how", ["<&- >&- 2>&-", ">&-", pytest.param("2>/dev/full", marks=full)])
def test_closed_streams_and_a_full_stderr_do_not_end_the_work(table, tmp_path, how):
    out = tmp_path / "out.csv"
    done = redirected("embed-dimension", table, "--E-max", 1, "--columns", 4, "-o", out, how=how)
    assert done.returncode == 0 and out.read_text().count("\n") == 2 and "Traceback" not in done.stderr


def test_stdout_that_knows_ascii_only(tmp_path):
    path = tmp_path / "ä.csv"
    path.write_text("ä\n" + "\n".join(map(str, np.random.default_rng(0).random(40))))
    done = shell("embed-dimension", path, "--E-max", 1, env={"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert done.returncode == 0 and done.stdout.isascii() and "\\xe4" in done.stdout


def test_control_sequences_do_not_reach_the_terminal(table, tmp_path):
    assert printable("a\x1b[31m\tb\n\u202ec\ud800") == "a\\x1b[31m\tb\n\\u202ec\\ud800"
    for parts in (
        ["embed-dimension", table, "--E-max", 1], ["simplex", table, "--E", 1], ["rqa", table, "--radius", 1],
        ["xmap", table, "-o", tmp_path / "m", "--E", 1, "--edges", 5], ["export", tmp_path / "m", "--edges"],
        ["embed-dimension", table, "--columns", "absent"],
    ):  # fmt: skip
        done = run(*parts)
        assert done.exit_code in (0, 2, 3) and "\x1b[31m" not in done.output, done.output


def test_names_are_no_formulas_in_tables(table, tmp_path):
    assert run("embed-dimension", table, "--E-max", 1, "-o", tmp_path / "E.csv").exit_code == 0
    assert run("xmap", table, "-o", tmp_path / "m", "--E", 1).exit_code == 0
    for words_ in (["-o", tmp_path / "map.tsv"], ["--edges", "-o", tmp_path / "edges.csv"]):
        assert run("export", tmp_path / "m", *words_).exit_code == 0
    for name in ("E.csv", "map.tsv", "edges.csv"):
        text = (tmp_path / name).read_text()
        assert "'=1+1" in text and "'@sum" in text
        cells = text.replace("\t", ",").replace("\n", ",").split(",")
        assert not [cell for cell in cells if cell.startswith(("=", "@"))]


@pytest.mark.parametrize("name", ["good.csv", "./good.csv", "link.csv", "hard.csv"])
def test_the_input_is_not_replaced(tmp_path, name, monkeypatch):
    monkeypatch.chdir(tmp_path)
    good = tmp_path / "good.csv"
    good.write_text("a\n" + "\n".join(map(str, range(40))))
    (tmp_path / "link.csv").symlink_to(good)
    os.link(good, tmp_path / "hard.csv")
    before = good.read_text()
    done = run("simplex", "good.csv", "--column", "a", "--E", 2, "-o", name)
    assert done.exit_code == 5 and "which is read" in done.output
    assert good.read_text() == before and (tmp_path / "link.csv").is_symlink()


def test_two_results_in_one_place_and_one_within_the_input(tmp_path, table):
    picture = tmp_path / "p.png"
    done = run("smap", table, "--column", "4", "--E", 1, "--plot", picture, "--plot-coefficients", picture)
    assert done.exit_code == 5 and "two results" in done.output and not picture.exists()
    (tmp_path / "in.zarr").mkdir()
    done = run("embed-dimension", tmp_path / "in.zarr", "-o", tmp_path / "in.zarr" / "zarr.json")
    assert done.exit_code == 5 and "which is read" in done.output
    assert run("smap", table, "--column", "4", "--E", 2, "--generate", 2147483648).exit_code == 3


def test_long_names_of_files_are_told(tmp_path):
    done = run("simplex", tmp_path / ("x" * 300 + ".csv"), "--E", 2)
    assert done.exit_code == 3 and "too long" in done.output
    (tmp_path / "folder").mkdir()
    assert run("simplex", tmp_path / "folder", "--E", 2).exit_code == 3
    done = run("demo", "-o", tmp_path / ("x" * 300), "--device", "nothing-of-the-kind")
    assert done.exit_code == 5 and "cannot be created" in done.output


def test_warnings_are_remarks_of_the_command(tmp_path, one_device):
    path = tmp_path / "flat.csv"
    path.write_text("a,k\n" + "".join(f"{(i * 7) % 11},1\n" for i in range(60)))
    line = ["embed-dimension", str(path), "--E-max", "3", "--device", one_device]
    told = CliRunner().invoke(app, line)
    assert "warning: constant series, whose rho is NaN: 'k'" in told.stderr and ".py" not in told.stderr
    assert "warning" not in CliRunner().invoke(app, [*line, "--quiet"]).stderr
