"""``bench/freeze.py``: what is recorded of help, results and messages is compared, and a change of each is seen."""

from __future__ import annotations

import argparse
import json
import pickle
from io import BytesIO

import freeze
import pytest

import pyedmcl
from pyedmcl.series.fields import Grid


@pytest.fixture
def run(one_device, tmp_path):
    """Record or check the cases that match; returns the exit status."""
    file = tmp_path / "freeze.json"

    def work(what, only):
        asked = argparse.Namespace(record=None, check=None, device=one_device, only=only, calls=20, times=False)
        setattr(asked, what, file)
        return freeze.work(asked)

    work.file = file
    return work


@pytest.mark.parametrize("only", ["command/status", "function/embed", "result/EmbedResult", "messages/embed"])
def test_nothing_differs_right_after_it_was_recorded(run, only):
    assert run("record", only) == 0
    assert json.loads(run.file.read_text())["cases"][only]
    assert run("check", only) == 0


def test_changes_are_seen(run, capsys, monkeypatch):
    names = ("command/status", "function/embed", "result/EmbedResult", "messages/embed")
    for name in names:
        run("record", name)
    document = json.loads(run.file.read_text())
    document["cases"]["command/status"]["help"][-2] += " more"
    document["cases"]["result/EmbedResult"]["to_frame"].append("gone: float32 ")
    run.file.write_text(json.dumps(document))
    monkeypatch.setattr(pyedmcl, "embed", lambda data, **others: None)
    for name in names:
        capsys.readouterr()
        assert run("check", name) == 1, name
        assert f"{name}: " in capsys.readouterr().out


def test_a_case_that_is_not_there_any_more_and_a_new_one_are_named(run, capsys):
    run("record", "command/status")
    document = json.loads(run.file.read_text())
    document["cases"] = {"command/stand": document["cases"]["command/status"]}
    run.file.write_text(json.dumps(document))
    assert run("check", "command/sta[nt]*") == 1
    shown = capsys.readouterr().out
    assert "command/stand: 1 differences\nis not there any more" in shown and "command/status: is new" in shown


def test_a_class_that_has_moved_is_found_by_its_name():
    text = pickle.dumps(Grid).replace(Grid.__module__.encode(), b"x" * len(Grid.__module__))
    assert freeze._Arguments(BytesIO(text)).load() is Grid
