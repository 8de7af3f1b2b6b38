"""Counts of random cases are told in words."""

from __future__ import annotations

import tally


def test_counts_are_summed_for_each_kind():
    counts = {("calls", "refused"): 2, ("calls", "computed"): 1500, ("files", "read"): 1}
    assert list(tally.lines(counts)) == ["calls: 1,502 tried: 1,500 computed, 2 refused", "files: 1 tried: 1 read"]
