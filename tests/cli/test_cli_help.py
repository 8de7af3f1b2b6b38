"""``pyedmcl help``, completion, ``--version`` with devices, and pictures in a window."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import pyedmcl
from pyedmcl.cli import start as pages
from pyedmcl.cli.app import app
from pyedmcl.cli.output import HELP, has_display
from pyedmcl.errors import InputError

ROOT = Path(__file__).resolve().parents[2]


def run(*words, code=0):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == code, done.output
    return done


@pytest.mark.parametrize("topic", ["conventions", "exit-codes", "devices", "files", "glossary", *pages.SECTIONS])
def test_a_topic_is_text_of_the_documentation(topic):
    text = run("help", topic).output
    assert len(text) > 300 and text.startswith("#")
    page, heading = pages.SECTIONS.get(topic, (topic, None))
    source = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8") if (ROOT / "docs").is_dir() else text
    assert heading is None or text.startswith(f"## {heading}\n")
    assert len(set(text.splitlines()) & set(source.splitlines())) > 3


def test_without_a_topic_all_are_listed():
    listed = {line.split()[0] for line in run("help").output.splitlines()[1:]}
    assert listed == set(pages.topics()) and {"python", "cli", "recurrence"} <= listed
    if (ROOT / "docs").is_dir():
        assert {page.stem for page in (ROOT / "docs").glob("*.md")} <= listed


def test_exit_codes_of_the_page_are_those_of_the_help():
    told = {int(code) for code in re.findall(r"^\| (\d+) \|", run("help", "exit-codes").output, re.MULTILINE)}
    assert told == {0, *(int(part.split()[0]) for part in HELP.split(";")[1:])}


def test_links_say_how_to_read_on():
    text = pages.text_of("cli")
    assert "('pyedmcl help scale')" in text and "](" not in re.sub(r"```.*?```", "", text, flags=re.DOTALL)


def test_signs_of_code_are_no_headings():
    assert pages.section("## A\n```\n## B\n```\nend\n## B\nrest\n", "A") == "## A\n```\n## B\n```\nend\n"


def test_a_command_is_a_topic_and_what_is_unknown_is_refused():
    assert "Usage: " in run("help", "xmap").output and "--E-max" in run("help", "xmap").output
    text = " ".join(run("help", "conventoins", code=2).output.replace("│", " ").split())
    assert "did you mean 'conventions'?" in text


def test_what_a_shell_completes():
    own = {**os.environ, "_PYEDMCL_COMPLETE": "complete_bash", "COMP_CWORD": "1"}
    for line, number, wanted in (("pyedmcl xm", 1, {"xmap", "xmap-grid"}), ("pyedmcl help ter", 2, {"terms"}),
                                 ("pyedmcl xmap --device g", 3, {"gpu", "gpus"})):  # fmt: skip
        own |= {"COMP_WORDS": line, "COMP_CWORD": str(number)}
        done = subprocess.run([sys.executable, "-m", "pyedmcl"], env=own, capture_output=True, text=True, check=False)
        assert done.returncode == 0 and set(done.stdout.split()) == wanted, done.stderr


def test_the_version_tells_of_devices(one_device):
    first, second, *devices = run("--version").output.splitlines()
    assert first == f"pyedmcl {pyedmcl.__version__}" and second.startswith("Python 3.") and "pyopencl" in second
    assert any(line[2:].startswith(f"{one_device} ") for line in devices)
    assert sum(line.startswith("* ") for line in devices) == 1


def test_the_version_is_told_without_a_device(monkeypatch):
    from pyedmcl.device import select
    from pyedmcl.errors import DeviceNotFoundError

    def nothing():
        raise DeviceNotFoundError("there is no OpenCL")

    monkeypatch.setattr(select, "discover_every", nothing)
    lines = run("--version").output.splitlines()
    assert lines[0] == f"pyedmcl {pyedmcl.__version__}" and lines[2] == "no device: there is no OpenCL"


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "data.csv"
    values = np.random.default_rng(1).standard_normal((80, 2))
    np.savetxt(path, values, delimiter=",", header="a,b", comments="")
    return path


def test_a_picture_is_shown_where_there_is_a_display(table, tmp_path, one_device, monkeypatch):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib; pip install 'pyedmcl[plot]'")
    opened = []
    monkeypatch.setattr("pyedmcl.cli.output.has_display", lambda: True)
    monkeypatch.setattr(typer, "launch", lambda path: opened.append(Path(path).read_bytes()[:4]) or 0)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    run("embed-dimension", table, "--E-max", 2, "--plot", "show", "--device", one_device)
    run("xmap", table, "-o", tmp_path / "map", "--E", 1, "--device", one_device)
    run("plot", tmp_path / "map")
    assert opened == [b"\x89PNG"] * 2
    monkeypatch.setattr(typer, "launch", lambda path: 1)
    assert "No viewer" in run("plot", tmp_path / "map", "-o", "show").output


def test_without_a_display_a_file_is_asked_for(table, one_device, monkeypatch):
    monkeypatch.setattr("pyedmcl.cli.output.has_display", lambda: False)
    text = run("embed-dimension", table, "--plot", "show", "--device", one_device, code=5).output
    assert "--plot show: there is no display" in text


@pytest.mark.parametrize(("words", "option"), [
    (["multiview", "--target", "a", "--D", "2", "--views", "99"], "--views 99"),
    (["smap", "--column", "a", "--E", "2", "--generate", "-1"], "--generate -1"),
    (["smap", "--column", "a", "--E", "2", "--generate", "3", "--Tp", "2"], "--generate 3"),
    (["simplex", "--column", "a", "--E", "2", "--lib", "5:2"], "--lib:"),
    (["embed-dimension", "--E-max", "90"], "use a smaller --E-max or --tau, or longer series"),
    (["rqa", "--column", "a", "--m", "90", "--radius", "1"], "use a smaller --m or --tau, or a longer series"),
])  # fmt: skip
def test_errors_name_options(words, option, table, one_device):
    text = " ".join(run(words[0], table, *words[1:], "--device", one_device, code=3).output.split())
    assert option in text and not re.search(r"\b\w+=", text), text


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="there is always a display")
def test_displays_are_those_of_the_environment(monkeypatch):
    assert not has_display()
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    assert has_display()


@pytest.mark.parametrize("words", [
    ["smap", "--column", "a", "--E", "2", "--theta", "0,1"], ["predict-nonlinear", "--column", "a", "--E", "2"],
    ["multiview", "--target", "a", "--D", "2"], ["predict-interval", "--column", "a", "--E", "2"], ["check"],
])  # fmt: skip
def test_the_command_hands_its_progress_on(words, table, monkeypatch):
    handed = []
    assert typer.main.get_command(app).commands[words[0]].params  # made of the function that is replaced below

    def function(*arguments, progress=None, **options):
        handed.append(progress)
        raise InputError("seen")

    monkeypatch.setattr(pyedmcl, words[0].replace("-", "_"), function)
    run(words[0], table, *words[1:], "--progress", code=3)
    run(words[0], table, *words[1:], "--no-progress", code=3)
    assert callable(handed[0]) and handed[1] is None


def test_every_command_that_computes_shows_progress():
    """Those that do not: they look at tables or files, or tell of their work in lines of their own."""
    without = {"status", "tune", "kernel", "devices", "doctor", "help"}
    commands = {name: one for name, one in typer.main.get_command(app).commands.items() if not hasattr(one, "commands")}
    silent = {name for name, one in commands.items() if not any("--progress" in p.opts for p in one.params)}
    assert silent == without
