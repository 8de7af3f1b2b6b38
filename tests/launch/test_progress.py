"""Reports of progress reach who asked for them."""

from __future__ import annotations

from pyedmcl.launch.progress import report_part, report_progress, reporting


def test_reports_reach_the_innermost_caller_and_nobody_else():
    outer, inner = [], []

    @reporting
    def search(progress=None):
        report_progress(1, 2)
        report_part(3, 3, 30, 0)
        report_part(1, 3, 30, 0, "rows")

    @reporting
    def all_of_them(progress=None):
        search(progress=lambda *a: inner.append(a))
        search()
        report_progress(2, 2)

    all_of_them(progress=lambda *a: outer.append(a))
    report_progress(1, 1)
    assert inner == [(1, 2, "queries"), (10, 30, "rows")] and outer == [(2, 2, "queries")]
