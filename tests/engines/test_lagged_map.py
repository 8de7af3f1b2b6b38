"""Launches of lookups cover what is wanted, and no more than they must."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pytest

from pyedmcl.device.quirks import quirks_for
from pyedmcl.device.select import open_device
from pyedmcl.engines import lagged
from pyedmcl.engines.lagged import LaggedMap, Libraries, Span, centred, laid_out, rectangles, room_for
from pyedmcl.errors import WrongResultError
from pyedmcl.statistics import counts


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


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_marked_pairs_have_the_bits_of_those_that_are_launched_one_by_one(one_device, monkeypatch, dtype):
    """A launch over all that is wanted, as on GPUs, against launches of rectangles, at several lags."""
    executor = open_device(one_device)
    rng = np.random.default_rng(1)
    x = np.cumsum(rng.standard_normal((200, 9)), axis=0)
    edges = [0, 1, 20, 71, 75, 130]
    spans = [Span(a, b) for a, b in itertools.pairwise(edges)]
    targets = x[:, rng.integers(0, 9, 130)] + rng.standard_normal((200, 130))
    values = room_for(200, 130, dtype)
    for j in range(130):
        values[:200, j] = laid_out(targets[:, j].copy(), *centred(targets[:, j]))
    wanted = rng.random((9, 5)) < 0.4
    wanted[:, 3], wanted[4] = False, False
    found, launched = [], []
    run_marked = lagged.Lookups.run_marked
    monkeypatch.setattr(
        lagged.Lookups, "run_marked", lambda *a, **k: (launched.append(k["marked"]), run_marked(*a, **k))[1]
    )
    for gpu in (False, True):
        quirks = dataclasses.replace(quirks_for(executor.info), scalar_work_items=gpu)
        monkeypatch.setattr(lagged, "quirks_for", lambda info, quirks=quirks: quirks)
        monkeypatch.setattr(lagged, "_FILLS", 1 << 30)
        mapping = LaggedMap(executor, Libraries(x.astype(dtype), np.array([2, 3, 2, 3, 3, 2, 3, 2, 2])))
        try:
            mapping.load(values, spans)
            found.append(mapping.highest([-1, 0, 2], wanted))
            dense = [mapping.skill(Tp, wanted) for Tp in (-1, 0, 2)]
        finally:
            mapping.release()
        assert len(launched) == (6 if gpu else 0)
    assert sum(launched) == 3 * int((wanted * np.diff(edges)).sum())
    best = np.fmax.reduce(dense)
    for one, marked in zip(*found, strict=True):
        np.testing.assert_array_equal(one, marked)
    rho, reached, valid = found[0]
    assert rho.dtype == dtype
    np.testing.assert_array_equal(np.isfinite(rho), wanted)
    for i, j in itertools.product(range(9), range(5)):
        own, *others = best[i, spans[j].begin : spans[j].end]
        expected = counts(own, np.array(others)) if wanted[i, j] else (0, 0)
        assert (reached[i, j], valid[i, j]) == expected
        assert rho[i, j] == own or not wanted[i, j]
    assert reached.any()


@pytest.mark.parametrize("wrong", [1.5, -1.5, 2.0])
def test_a_correlation_that_cannot_be_is_told(one_device, monkeypatch, wrong):
    executor = open_device(one_device)
    x = np.cumsum(np.random.default_rng(1).standard_normal((80, 2)), axis=0)
    mapping = LaggedMap(executor, Libraries(x, np.array([2, 2])))
    values = room_for(80, 3, "float64")
    values[:80, :3] = np.random.default_rng(2).random((80, 3)) - 0.5

    def spoil(self, Tp, ordered, rho, *, marked):
        executor.upload(np.array([0.5, wrong, 0.5, 0.1, 0.2, 0.3]), rho)

    monkeypatch.setattr(LaggedMap, "_look_up", spoil)
    try:
        mapping.load(values, [Span(0, 3)])
        with pytest.raises(WrongResultError, match="correlations beyond"):
            mapping.highest([0], np.array([[True], [True]]))
    finally:
        mapping.release()
