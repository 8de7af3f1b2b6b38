"""The code on all pages of the site, run as it stands.

Blocks of a page are run in their order, in one namespace and one folder, where the files of ``given`` lie. A block that
cannot be run here says so on the page, in a line right before it (``NOT_RUN``), or the page says it for all its blocks
(``NONE_RUN``).
"""

from __future__ import annotations

import inspect
import re
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest
import typer.main
from cli_helpers import inside

import pyedmcl
from pyedmcl.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
OUTSIDE = ("CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md", "bench/README.md")
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in sorted([*(ROOT / "docs").rglob("*.md"), *(ROOT / name for name in OUTSIDE)])
}

_BLOCK = re.compile(r"(?:^([^\n]+)\n)?^( *)```\{?([\w-]*)\}?\n(.*?)^ *```$", re.DOTALL | re.MULTILINE)
_OUTPUT = re.compile(r"\n```text\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NOT_RUN = re.compile(r"^ *\*Not run in the tests: \w.{10,}\.\*$")
NONE_RUN = re.compile(r"^\*Commands of this page are not run in the tests: \w.{10,}\.\*$", re.MULTILINE)
RUN = {"python", "bash", "sh"}
SHOWN = {"json", "text", "eval-rst"}  # what is shown and not meant to be run

#: Pages whose code another test runs, and looks at what it gives.
ELSEWHERE = {
    "docs/causality.md": "tests/package/test_tutorial.py",
    "docs/pipeline.md": "tests/device/test_callers_queue.py",
}


def blocks(text):
    """(language, code, output) of each block that is meant to be run.

    Before the code are as many empty lines as on the page. Output is what a block of text right below shows of it.
    """
    if NONE_RUN.search(text):
        return []
    found = (match for match in _BLOCK.finditer(text) if match[3] in RUN and not NOT_RUN.match(match[1] or ""))
    return [
        (match[3], "\n" * text.count("\n", 0, match.start(4)) + match[4], shown[1] if shown else None)
        for match in found
        for shown in [_OUTPUT.match(text, match.end())]
    ]


HERE = [name for name, text in PAGES.items() if name not in ELSEWHERE and blocks(text)]


def test_every_block_has_a_language_that_says_whether_it_is_run():
    for name, text in PAGES.items():
        assert text.count("```") == 2 * len(_BLOCK.findall(text)), name
        assert {language for _, _, language, _ in _BLOCK.findall(text)} <= RUN | SHOWN, name


def test_another_test_runs_what_is_not_run_here():
    for name, test in ELSEWHERE.items():
        assert Path(name).name in (ROOT / test).read_text(encoding="utf-8")
        assert blocks(PAGES[name])


@pytest.mark.parametrize("name", ["docs/guide.md", "docs/from-r.md"])
def test_functions_and_commands_of_a_table_exist(name):
    """The guide leads from a question, the page on R from another package's name, to functions and commands of ours."""
    rows = [line.split(" | ")[1:] for line in PAGES[name].splitlines() if line.startswith("| ") and " | " in line]
    named = re.findall(r"`([^`]+)`", " ".join(cell for row in rows for cell in row))
    functions = {match[1] for match in (re.match(r"(?:pyedmcl\.)?([a-z]\w*)(?:\(|$)", word) for word in named) if match}
    assert len(functions) > 15
    arguments = {key for each in pyedmcl.__all__[1:] for key in inspect.signature(getattr(pyedmcl, each)).parameters}
    assert functions <= {*pyedmcl.__all__, *arguments, "x", "data"}, name
    commands = {word.split()[1] for word in named if word.startswith("pyedmcl ")}
    assert commands <= set(typer.main.get_command(app).commands)


def test_a_recipe_is_found_from_the_home_page_and_short():
    page = PAGES["docs/recipes.md"]
    assert "](recipes.md)" in PAGES["docs/index.md"]
    assert page.count("\n## ") >= 7
    for recipe in page.split("\n## ")[1:]:
        assert any(language in RUN for language, _, _ in blocks(recipe)), recipe
        lines = [line for _, code, _ in blocks(recipe) for line in code.splitlines() if line.strip()]
        assert len(lines) <= 10 and max(map(len, lines)) <= 80, recipe


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """The files that readers have: a table, a field, recordings of several subjects, somebody's tuned parameters."""
    needed = dict.fromkeys(("pandas", "xarray", "zarr", "h5netcdf"), "io")
    needed |= {"matplotlib": "plot", "networkx": "graph", "sklearn": "sklearn"}
    for package, extra in needed.items():
        pytest.importorskip(package, reason=f"pages use {package}; pip install 'pyedmcl[{extra}]' brings it")
    import pandas
    import xarray

    from pyedmcl.simulate import coupled_maps

    folder = tmp_path_factory.mktemp("given")
    values = coupled_maps(n_series=6, n_steps=400, seed=2).values
    pandas.DataFrame(values[:, :3], columns=["temperature", "plankton", "anchovy"]).to_csv(
        folder / "data.csv", index=False
    )
    subject, channel = np.divmod(np.arange(800) // 200, 2)
    pandas.DataFrame({"subject": subject, "channel": channel, "uV": values[:, :2].T.ravel()}).to_csv(
        folder / "eeg.csv", index=False
    )
    cells = np.where(np.arange(6) == 4, np.nan, values).reshape(400, 2, 3)
    time = np.arange("1990-01", "2023-05", dtype="datetime64[M]").astype("datetime64[ns]")
    coordinates = {"time": time, "lat": [10.0, 20.0], "lon": [0.0, 5.0, 10.0]}
    xarray.Dataset({"sst": (tuple(coordinates), cells)}, coordinates).to_netcdf(folder / "sst.nc")
    wisdom = next((ROOT / "tuning" / "wisdom").glob("*.jsonl")).read_text(encoding="utf-8")
    (folder / "theirs.jsonl").write_text("\n".join(wisdom.splitlines()[:3]) + "\n", encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", HERE)
def test_the_code_of_a_page(name, given, tmp_path, one_device, monkeypatch, capsys):
    from matplotlib import pyplot

    folder = shutil.copytree(given, tmp_path / "folder")
    monkeypatch.setenv("PYEDMCL_DEVICE", one_device)
    monkeypatch.setenv("PYEDMCL_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.chdir(folder)
    namespace = {"__name__": name}
    for language, code, output in blocks(PAGES[name]):
        capsys.readouterr()
        if language == "python":
            exec(compile(code, name, "exec"), namespace)
            pyplot.close("all")
            assert output is None or capsys.readouterr().out == output
        else:
            for line in code.replace("\\\n", "").splitlines():
                run(line, folder)
    for picture in re.findall(rf"\(images/{Path(name).stem}/([\w.-]+)\)", PAGES[name]):
        assert (folder / picture).is_file(), f"the page shows {picture}, and its code does not make it"


def run(line, folder):
    words = shlex.split(line, comments=True)
    if words:
        assert words[0] == "pyedmcl", f"no other program is run here, and the page has to say so: {line}"
        done = inside(*words[1:], cwd=folder)
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
