"""``pyedmcl report``: from the folder of a command to a page, and what is refused before anything is written."""

from __future__ import annotations

import json

import pytest
from reporting_parts import read, xmap_result
from typer.testing import CliRunner

from pyedmcl.cli.app import app

pytest.importorskip("matplotlib", reason="matplotlib is not installed; pip install 'pyedmcl[report]' brings it")


def run(*words, code=0):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exit_code == code, (done.output, done.exception)
    return " ".join(done.output.split())


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    return xmap_result(names=["a", "b,c", "=d"], n=3).save(tmp_path_factory.mktemp("saved") / "map.edm")


def test_a_page_of_a_saved_result(saved, tmp_path):
    page = tmp_path / "r.html"
    assert "report of 1 result" in run("report", saved, "-o", page, "--title", "Mine", "--top", 2)
    found = read(page)
    assert len(found.tables[0]) == 3 and str(saved) in found.text
    told = json.loads(run("report", saved, saved, "-o", page, "--json", "--cluster"))
    assert told["bytes"] == page.stat().st_size and len(read(page).tables) == 2


def test_what_is_refused(saved, tmp_path):
    assert "there is no such file" in run("report", tmp_path / "none.zarr", "-o", tmp_path / "r.html", code=3)
    assert "written as .html" in run("report", saved, "-o", tmp_path / "r.pdf", code=5)
    assert "there is no folder" in run("report", saved, "-o", tmp_path / "none" / "r.html", code=5)
    (tmp_path / "other").mkdir()
    assert "neither" in run("report", tmp_path / "other", "-o", tmp_path / "r.html", code=5)
    assert "the cause and the effect are needed" in run(
        "report", saved, "-o", tmp_path / "r.html", "--pair", "a", code=2
    )
    assert not (tmp_path / "r.html").exists()


def test_progress_of_reading_is_told(saved, tmp_path):
    line = ["report", str(saved), "-o", str(tmp_path / "r.html")]
    assert "reading: 3 of 3 rows" in CliRunner().invoke(app, [*line, "--progress"]).stderr
    assert "rows" not in CliRunner().invoke(app, [*line, "--no-progress"]).stderr
