"""Progress as lines where there is no terminal: how often, of what, and how long still."""

from __future__ import annotations

from types import SimpleNamespace

from pyedmcl.launch.progress import duration_text, lines, rate_text


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
