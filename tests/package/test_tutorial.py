"""docs/causality.md, run as it stands in an empty folder: its numbers are those it prints in its table."""

from __future__ import annotations

import csv
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pyedmcl.cli.app import app

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "causality.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)


def test_causality_runs_as_written(tmp_path, one_device, monkeypatch, capsys):
    for package in ("matplotlib", "pandas"):
        pytest.importorskip(package, reason=f"{package} is not installed")
    monkeypatch.setenv("PYEDMCL_DEVICE", one_device)
    monkeypatch.chdir(tmp_path)
    exec("\n".join(text for language, text in BLOCKS if language == "python"), {})
    said = capsys.readouterr().out
    rows = [re.split(r" \| ", line.strip("| ")) for line in TEXT.splitlines() if re.match(r"\| (grazers|algae) ", line)]
    assert len(rows) == 2
    for library, target, trend, gain, p_chance, best in rows:
        found = re.search(rf"\('{library}', '{target}'\) (\S+) (\S+)", said)
        assert [f"{float(found[1]):.2f}", f"{float(found[2]):.2f}"] == [trend, gain]
        assert re.search(rf"{library}\s+{target}\s+\S+\s+\S+\s+{p_chance}\b", said)
        assert best in re.search(r"\)\) \((.*)\)", said)[1].split(", ")
    (commands,) = (text for language, text in BLOCKS if language == "bash")
    for line in commands.splitlines():
        done = CliRunner().invoke(app, shlex.split(line)[1:])
        assert done.exit_code == 0, (line, done.output, done.exception)
    drawn = set(re.findall(r"\w+\.png", "".join(text for _, text in BLOCKS)))
    assert len(drawn) == 11
    assert all((tmp_path / name).read_bytes().startswith(b"\x89PNG") for name in drawn)
    with (tmp_path / "pairs.csv").open() as handle:
        assert next(csv.DictReader(handle))["library"] == "grazers"
