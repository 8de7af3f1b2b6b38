"""The notebooks of docs/notebooks, run as scripts in an empty folder: a picture, and a sentence whose claim holds."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "docs" / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.py"))
# Runs a notebook and writes the values of some of its variables.
RUN = """
import json, runpy, sys
held = runpy.run_path(sys.argv[1], run_name="__main__")
json.dump({name: held[name] for name in sys.argv[2:]}, open("found.json", "w"), default=lambda value: value.tolist())
"""


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
    "1_plankton": (plankton, "found_names weakest strongest_other"),
    "2_neurons": (neurons, "auc precision recall"),
    "3_climate": (climate, "hit_rate precision false_rate"),
    "4_eeg": (eeg, "rise_low rest_high excess_low excess_rest"),
    "5_million_points": (million_points, "N pairs error alike unlike"),
    "6_migrating": (migrating, "worst n_values away"),
    "7_tuning": (tuning, "same n_tried"),
    "8_slurm": (slurm, "same_bytes auc shares blocks"),
}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(path, tmp_path, one_device):
    for package in ("matplotlib", "pandas", "xarray"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    claim, names = CLAIMS[path.stem]
    told = {"MPLBACKEND": "Agg", "PYEDMCL_DEVICE": one_device, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", RUN, path, "sentence", *names.split()],
        cwd=tmp_path, env={**os.environ, **told}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert not done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    claim(found)
    assert " ".join(done.stdout.split()).endswith(found["sentence"])
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
        opening = text.split("# %%\n")[0]
        assert re.search(r"^# # \S", opening, re.MULTILINE)
        assert re.search(r"^# \*\*Question\.\*\* .*\?", opening, re.MULTILINE | re.DOTALL)
        assert f"]({path.name})" in listed
