"""The examples of README.md, run as they stand."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

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
    text, recurrence, imports = (text for language, text in BLOCKS if language == "python")
    modules = run(["-c", imports + "print(EDM.CCM.__module__, kedm.ccm.__module__, TimeSeries.__module__)"], tmp_path)
    assert modules.count("pyedmcl.compat.") == 3
    measures = [float(value) for value in run(["-c", recurrence], tmp_path).split()]
    assert len(measures) == 3 and 0.9 < measures[0] <= 1
    assert (tmp_path / "rp.png").read_bytes().startswith(b"\x89PNG")
    lines = run(["-c", text], tmp_path).splitlines()
    assert len(lines) == 6
    assert len(re.findall(r"\d+", lines[0])) == 8
    assert all(line.startswith("Edge(") for line in lines[1:])


def test_shell_examples(tmp_path, one_device, monkeypatch):
    pytest.importorskip("matplotlib", reason="'pyedmcl plot' needs matplotlib; pip install 'pyedmcl[plot]'")
    monkeypatch.setenv("PYEDMCL_DEVICE", one_device)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    (tmp_path / "pyedmcl-demo").mkdir()
    from pyedmcl.simulate import coupled_maps

    network = coupled_maps(n_series=6, n_steps=300)  # the demo's own series are more of the same
    rows = [network.names, *network.values.tolist()]
    (tmp_path / "pyedmcl-demo" / "series.csv").write_text("\n".join(",".join(map(str, row)) for row in rows))
    (tmp_path / "pyedmcl-demo" / "roessler.csv").write_text("\n".join(["x", *map(str, network.values[:, 0].tolist())]))
    lines = [line for line in SHELL.splitlines() if line.startswith("pyedmcl ")]
    assert len(lines) == 6
    for line in lines:
        run(["-m", "pyedmcl", *shlex.split(line)[1:]], tmp_path)
    for picture in ("map.png", "recurrence.png"):
        assert (tmp_path / picture).read_bytes().startswith(b"\x89PNG")
    assert len((tmp_path / "edges.csv").read_text().splitlines()) == 1 + 20


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
