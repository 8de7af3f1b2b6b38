"""Progress as lines where there is no terminal: how often, of what, and how long still."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
from result_makers import VALUES

import pyedmcl
from pyedmcl.launch.progress import bar, begin_step, duration_text, lines, notebook, rate_text, reporting_to


def test_progress_lines(monkeypatch, capsys):
    now = [100.0]
    monkeypatch.setattr("pyedmcl.launch.progress.time", SimpleNamespace(monotonic=lambda: now[0]))
    with lines("cross mapping") as report:
        for done in (40, 50, 60, 90, 100):
            report(done, 100, "rows")
            now[0] += 6
        report(0, 9, "dimensions")
    assert capsys.readouterr().err.splitlines() == [
        "cross mapping: 40 of 100 rows",
        "cross mapping: 60 of 100 rows, 1.67 rows/s, 0:00:24 left",
        "cross mapping: 100 of 100 rows, 2.5 rows/s, 0:00:00 left",
        "finding E: 0 of 9 series",
    ]


def test_progress_lines_within_a_part(monkeypatch, capsys):
    now = [100.0]
    monkeypatch.setattr("pyedmcl.launch.progress.time", SimpleNamespace(monotonic=lambda: now[0]))
    with lines("cross mapping") as report:
        for done in (10, 20, 30, 30, 10, 20, 30, 15):
            report(done, 30, "queries")
            now[0] += 4
    assert capsys.readouterr().err.splitlines() == [
        "searching: 30 of 30 queries, 1.67 queries/s, 0:00:00 left",
        "searching: 30 of 30 queries, 2.5 queries/s, 0:00:00 left",
    ]


def test_rates_and_durations():
    assert [rate_text(rate, "rows") for rate in (None, 0, 0.05, 2.345, 12345)] == [
        "", "", "3 rows/min", "2.35 rows/s", "12,345 rows/s"]  # fmt: skip
    assert [duration_text(seconds) for seconds in (0.4, 61, 3725)] == ["0:00:00", "0:01:01", "1:02:05"]


def test_a_log_has_a_line_for_each_tenth_and_no_more(monkeypatch, capsys):
    now = [100.0]
    monkeypatch.setattr("pyedmcl.launch.progress.time", SimpleNamespace(monotonic=lambda: now[0]))
    with lines("cross mapping") as report:
        for done in range(1001):
            report(done, 1000, "series")
            now[0] += 11
    said = capsys.readouterr().err.splitlines()
    assert [int(line.split()[2].replace(",", "")) for line in said] == list(range(0, 1001, 100))


def test_steps_are_named_and_rounds_of_one_step_do_not_end_twice(monkeypatch, capsys):
    now = [100.0]
    monkeypatch.setattr("pyedmcl.launch.progress.time", SimpleNamespace(monotonic=lambda: now[0]))
    steps = ["skill", "surrogates"]
    with lines("causal_network") as report, reporting_to(report):
        begin_step("skill", steps)
        report(40, 40, "series")
        begin_step("surrogates", steps)
        for _ in range(5):
            for done in (0, 20, 40):
                now[0] += 1
                report(done, 40, "series")
    assert capsys.readouterr().err.splitlines() == [
        "skill 1 of 2: 40 of 40 series",
        "surrogates 2 of 2: 0 of 40 series",
        "surrogates 2 of 2: 40 of 40 series, 20 series/s, 0:00:00 left",
        "surrogates 2 of 2: 0 of 40 series",
    ]


def test_a_network_tells_its_legs_in_their_order(one_device, capsys):
    with lines("causal_network") as report:
        pyedmcl.causal_network(VALUES[:, :3], E=3, n=19, seed=1, progress=report, device=one_device)
    said = [line.partition(":")[0].partition(",")[0] for line in capsys.readouterr().err.splitlines()]
    steps = [step for step in dict.fromkeys(said) if " of " in step]
    assert [step.rsplit(" ", 3)[0] for step in steps[:3]] == ["skill", "surrogates", "convergence"]
    assert {step.rsplit(" ", 1)[1] for step in steps} == {"6"}


def test_there_is_one_bar(monkeypatch, capsys):
    rich = pytest.importorskip("rich.progress")
    tasks = []
    monkeypatch.setattr(rich.Progress, "add_task", (lambda add: lambda self, *a, **k: tasks.append(a) or add(
        self, *a, **k))(rich.Progress.add_task))  # fmt: skip
    with bar("xmap") as report:
        for unit in ("programs", "dimensions", "series", "queries", "series"):
            report(1, 4, unit)
    assert tasks == [("xmap",)]


def test_a_notebook_needs_no_widgets(monkeypatch):
    pytest.importorskip("IPython")
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    said = []

    def display(data, raw, display_id):
        said.append(data["text/plain"])
        return SimpleNamespace(update=lambda new, raw: said.append(new["text/plain"]))

    monkeypatch.setattr("IPython.display.display", display)
    with notebook("xmap") as report:
        report(0, 4, "series")
        report(4, 4, "series")
    assert said[:2] == ["xmap: starting", "xmap: 0 of 4 series"] and said[2].startswith("xmap: 4 of 4 series")
