"""The examples of README.md, run as they stand."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from cli_helpers import inside

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
SHELL = "\n".join(text for language, text in BLOCKS if language == "bash")


def run(arguments, folder):
    done = subprocess.run([sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{shlex.join(arguments)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def test_python_example(tmp_path, one_device, monkeypatch):
    monkeypatch.setenv("PYEDMCL_DEVICE", one_device)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    (text,) = (text for language, text in BLOCKS if language == "python")
    assert len(text.splitlines()) <= 6
    assert "There is evidence that roach drives algae" in run(["-c", text], tmp_path)


def test_shell_examples(tmp_path, one_device, monkeypatch):
    pytest.importorskip("matplotlib", reason="'pyedmcl plot' needs matplotlib; pip install 'pyedmcl[plot]'")
    monkeypatch.setenv("PYEDMCL_DEVICE", one_device)
    (tmp_path / "pyedmcl-demo").mkdir()
    from pyedmcl.simulate import coupled_maps

    network = coupled_maps(n_series=12, n_steps=300)  # the demo's own series are more of the same
    rows = [network.names, *network.values.tolist()]
    (tmp_path / "pyedmcl-demo" / "series.csv").write_text("\n".join(",".join(map(str, row)) for row in rows))
    (tmp_path / "pyedmcl-demo" / "roessler.csv").write_text("\n".join(["x", *map(str, network.values[:, 0].tolist())]))
    lines = [line for line in SHELL.splitlines() if line.startswith("pyedmcl ")]
    assert len(lines) == 3
    for line in lines:
        done = inside(*shlex.split(line)[1:], cwd=tmp_path)
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
    for picture in ("network.png", "recurrence.png"):
        assert (tmp_path / picture).read_bytes().startswith(b"\x89PNG")
    assert len((tmp_path / "pairs.csv").read_text().splitlines()) == 1 + 6
    assert (tmp_path / "map.zarr").is_dir()


def test_the_readme_is_short():
    assert len(README.splitlines()) <= 60


RECORDS = {
    path.stem: [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for path in (ROOT / "bench" / "results").glob("*-compare-*.jsonl")
}
_CELL = re.compile(r"^([\d.]+) s, \*\*(\d+)x\*\*$")


def cells_of_tables():
    """(first cell, title of the column, seconds, ratio) of each figure in the section on speed."""
    section = README.partition("<!-- benchmarks -->")[2].partition("\n## ")[0]
    for table in re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE):
        header, _, *rows = [[cell.strip() for cell in line.strip("|\n ").split("|")] for line in table.splitlines()]
        for first, *cells in rows:
            for column, cell in zip(header[1:], cells, strict=True):
                yield first, column, *_CELL.match(cell).groups()


def runtime_of(row):
    runtimes = {"Intel": "intel-cpu", "PoCL": "pocl", "H200": "nvidia"}
    return next(runtime for word, runtime in runtimes.items() if word in row)


def same(stated, value):
    """Whether a figure is the value, rounded to the digits that it has."""
    digits = len(stated.lstrip("0.").replace(".", ""))
    return f"{value:.{digits}g}" == f"{float(stated):.{digits}g}"


def runs_of_maps(row, column):
    """(seconds, ratio) of all recorded runs of a map."""
    shape, case = re.match(r"([\d,]+ x [\d,]+)", row)[1].replace(",", "").replace(" ", ""), column.split(" ")
    wanted = (shape, "mixed" if "mixed" in case else "E3", runtime_of(row))
    records = [each for name in RECORDS if name.endswith("-kedm") for each in RECORDS[name]]
    return [(each["ours_s"], each["ratio"]) for each in records
            if "ratio" in each and (each["shape"], each["case"], each["runtime"]) == wanted]  # fmt: skip


def test_every_figure_of_speed_has_its_run():
    figures = list(cells_of_tables())
    assert len(figures) == 4
    for row, column, seconds, ratio in figures:
        runs = runs_of_maps(row, column)
        assert any(same(seconds, took) and f"{times:.0f}" == ratio for took, times in runs), (row, column, runs)


PAGES = [page for pattern in ("*.md", "docs/**/*.md", "bench/*.md", "tuning/*.md") for page in ROOT.glob(pattern)]


def test_files_that_pages_name_exist():
    pattern = re.compile(r"`((?:pyedmcl|tests|bench|templates|clkernels)/[\w./-]+\.\w+)`")
    named = [(page.name, path) for page in PAGES for path in pattern.findall(page.read_text(encoding="utf-8"))]
    assert len(named) > 10
    assert not [(page, path) for page, path in named if not (ROOT / path).is_file()]


def test_links_lead_somewhere():
    assert len(PAGES) > 20
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for target, anchor in re.findall(r"\]\(([^)#:\s]*)(?:#([^)]*))?\)", text):
            path = page.parent / target if target else page
            assert path.exists(), f"{page.name} links to {target}"
            if anchor and path.suffix == ".md":
                assert anchor in anchors(path), f"{page.name} links to {target}#{anchor}"


def anchors(page):
    """Names of a page's headings as GitHub makes them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading).strip().lower().replace(" ", "-") for heading in headings}
