"""Launches of lookups cover what is wanted, and no more than they must."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from pyedmcl.engines.lagged_map import Span, centred, laid_out, rectangles


@pytest.mark.parametrize("launch", [0, 30, 10**9])
@pytest.mark.parametrize("share", [0.1, 0.6, 1.0])
def test_rectangles_cover_what_is_wanted(launch, share):
    rng = np.random.default_rng(3)
    wanted = rng.random((7, 9)) < share
    edges = np.append(0, np.cumsum(rng.integers(1, 6, 9)))
    found = np.zeros((7, edges[-1]), int)
    several = list(rectangles(wanted, [Span(a, b) for a, b in itertools.pairwise(edges)], launch))
    for (first, end), begin, last in several:
        found[first:end, begin:last] += 1
    columns = np.repeat(wanted, np.diff(edges), axis=1)
    assert found.max() <= 1 and (found[columns] == 1).all()
    if launch == 0:
        assert found.sum() == columns.sum()
    if launch == 10**9 and wanted.any(axis=0).all():
        assert len(several) == 1


def test_targets_lie_around_zero():
    values = np.array([5.0, 7.0, np.nan, 9.0]) * 1e8
    out = laid_out(values.copy(), *centred(values))
    there = np.isfinite(values)
    assert np.abs(out[there]).max() <= 1 and out[there].mean() == pytest.approx(0) and out[2] > 1e12
    assert np.corrcoef(out[there], values[there])[0, 1] == pytest.approx(1)
    assert centred(np.full(3, np.nan)) == (0.0, 0)
