"""``bench/digests.py``: cases are added to a record, and compared, one by one."""

from __future__ import annotations

import argparse
import json

import digests
import numpy as np
import pytest
from digest_case import case


@pytest.fixture
def run(one_device, tmp_path, monkeypatch):
    """Record or check some cases of ``embed``, which computes on the host; returns the exit status."""
    file = tmp_path / "digests.json"

    def work(what, data, only=None):
        cases = {f"embed/{label}": ("embed", case(label, values, E=2)) for label, values in data.items()}
        monkeypatch.setattr(digests, "all_cases", lambda: cases)
        asked = argparse.Namespace(record=None, check=None, only=only, quick=False, device=one_device)
        setattr(asked, what, file)
        return digests.work(asked)

    work.file = file
    return work


def recorded(file):
    return json.loads(file.read_text())["cases"]


def test_a_case_is_added_without_the_others(run, capsys):
    first, second = np.arange(9.0), np.arange(12.0)
    assert run("record", {"first": first}) == 0
    before = recorded(run.file)
    assert run("check", {"second": second, "first": first}) == 0
    assert "skipped: embed/second (not recorded)" in capsys.readouterr().out
    assert run("record", {"second": second, "first": first}, only="*/second") == 0
    assert list(recorded(run.file)) == ["embed/second", "embed/first"]
    assert recorded(run.file)["embed/first"] == before["embed/first"]
    assert run("check", {"second": second, "first": first}) == 0
    assert "2 cases are as recorded" in capsys.readouterr().out


def test_other_data_are_told_of_the_case_that_has_them(run, capsys):
    first, second = np.arange(9.0), np.arange(12.0)
    assert run("record", {"first": first, "second": second}) == 0
    assert run("check", {"first": first, "second": second + 1}) == 1
    out = capsys.readouterr().out
    assert "1 cases are as recorded" in out and "embed/second: other data than were recorded" in out
    assert "embed/first" not in out


def test_other_results_are_told(run, capsys, monkeypatch):
    first = np.arange(9.0)
    assert run("record", {"first": first}) == 0
    monkeypatch.setattr(digests, "digest_of_data", lambda one: recorded(run.file)["embed/first"]["data"])
    assert run("check", {"first": first + 1}) == 1
    assert "embed/first: values: bits differ" in capsys.readouterr().out
