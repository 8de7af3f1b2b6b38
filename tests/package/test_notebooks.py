"""The notebooks of docs/notebooks, run in an empty folder: a picture, and a sentence whose claim holds."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

from pyedmcl.tuning.parameters import source

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.py"))


def plankton(found):
    assert [sorted(pair) for pair in found["found_names"]] == [["algae", "grazers"]]
    assert found["weakest"] > found["strongest_other"] > 0.5


def neurons(found):
    assert found["auc"] > 0.9 and found["precision"] > 0.7 and found["recall"] > 0.7


def climate(found):
    assert found["hit_rate"] > 0.75 and found["precision"] > 0.9 and found["false_rate"] < 0.02


def eeg(found):
    assert found["rise_low"] > found["rest_high"] + 0.1
    assert found["excess_low"] > 0.1 and abs(found["excess_rest"]) < 0.05


def million_points(found):
    assert found["N"] == 1_000_000 and found["pairs"] > 1e10 and found["error"] < 0.2
    assert found["alike"] > 100 * found["unlike"]


def migrating(found):
    assert found["worst"] < 1e-5 and found["n_values"] > 200
    assert sum(map(sum, found["away"])) / sum(map(len, found["away"])) < 2


def tuning(found):
    assert len(found["same"]) == 72 and all(found["same"]) and found["n_tried"] >= 1


def slurm(found):
    assert found["same_bytes"] and found["auc"] > 0.95
    assert sum(found["shares"]) == len(found["blocks"]) > 2


CLAIMS = {
    "1_plankton": plankton,
    "2_neurons": neurons,
    "3_climate": climate,
    "4_eeg": eeg,
    "5_million_points": million_points,
    "6_migrating": migrating,
    "7_tuning": tuning,
    "8_slurm": slurm,
}


@pytest.mark.filterwarnings("error::pyedmcl.errors.PyedmclWarning")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path, tmp_path, one_device, monkeypatch, capsys):
    for package in ("matplotlib", "pandas", "xarray"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    from matplotlib import pyplot, rc_context

    monkeypatch.setenv("PYEDMCL_DEVICE", one_device)
    monkeypatch.setenv("PYEDMCL_DATA_DIR", str(tmp_path / "data"))
    monkeypatch.setenv("PYTHONPATH", str(ROOT))  # of processes that a notebook starts
    monkeypatch.chdir(tmp_path)
    source.forget()
    try:
        with rc_context():  # a notebook has a style of its own
            found = runpy.run_path(str(path), run_name="__main__")
    finally:
        pyplot.close("all")
        source.forget()
    told = capsys.readouterr()
    assert not told.err
    CLAIMS[path.stem](found)
    assert " ".join(told.out.split()).endswith(found["sentence"])
    assert len(re.findall(r"\d+", found["sentence"])) >= 5 and "nan" not in found["sentence"]
    (picture,) = tmp_path.glob("*.png")
    assert picture.stem == path.stem.split("_", 1)[1]
    assert _share_of_ink(picture) > 0.02


def _share_of_ink(path):
    """Share of the pixels that are not white."""
    from matplotlib.image import imread

    return float((imread(path)[..., :3].min(axis=-1) < 0.95).mean())


def test_each_notebook_asks_a_question_and_is_listed():
    assert [path.stem for path in NOTEBOOKS] == sorted(CLAIMS)
    listed = (FOLDER / "index.md").read_text(encoding="utf-8")
    for path in NOTEBOOKS:
        text = path.read_text(encoding="utf-8")
        opening = re.split(r"^# %%(?! \[markdown\])", text, flags=re.MULTILINE)[0]
        assert re.search(r"^# # \S", opening, re.MULTILINE)
        assert re.search(r"^# \*\*Question\.\*\* .*\?", opening, re.MULTILINE | re.DOTALL)
        assert f"]({path.name})" in listed


@pytest.mark.parametrize("path", NOTEBOOKS[:5], ids=lambda path: path.stem)
def test_what_a_reader_sees_is_short(path):
    """Simulation and drawing are folded; what remains are calls of the package."""
    cells = re.split(r"^# %%", path.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    shown = [cell for cell in cells if not cell.startswith((" [markdown]", ' tags=["hide-input"]'))]
    lines = [line for cell in shown for line in cell.splitlines()[1:] if line.strip()]
    assert 10 < len(lines) <= 40, len(lines)
    assert "pyedmcl." in "".join(lines)
