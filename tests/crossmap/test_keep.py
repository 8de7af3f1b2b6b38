"""Which pairs of a map are kept: rules, ties, blocks in any order. No device."""

from __future__ import annotations

import numpy as np
import pytest

from pyedmcl.crossmap import keep as keep_module
from pyedmcl.crossmap.keep import Keep, TargetTop
from pyedmcl.errors import InputError
from pyedmcl.jobs.layout import edge_dtype

N = 37
RULES = ("top:1", "top:5", "top:5:target", "top:36", "top:99:target", "rho>0.3", "rho>-1", "rho>0.999")


def a_map(digits=None):
    rho = np.random.default_rng(5).uniform(-1, 1, (N, N)).astype(np.float32)
    rho = rho if digits is None else np.round(rho, digits)
    rho[3, :], rho[:, 4], rho[5, 6:] = np.nan, np.nan, np.nan  # a library, a target, and most of a row are constant
    return rho


def naive(rho, rule):
    """(library, target) of the pairs to keep, by sorting all of them."""
    cells = [(i, j) for i in range(N) for j in range(N) if i != j and not np.isnan(rho[i, j])]
    if rule.startswith("rho>"):
        return {cell for cell in cells if float(rho[cell]) > float(rule[4:])}
    most, axis = int(rule.split(":")[1]), int(rule.endswith(":target"))
    kept = set()
    for series in range(N):
        own = [cell for cell in cells if cell[axis] == series]
        kept.update(sorted(own, key=lambda cell: (-float(rho[cell]), *cell))[:most])
    return kept


def cells_of(edges):
    return list(zip(edges["library"].tolist(), edges["target"].tolist(), strict=True))


def of_blocks(rho, rule, rows, order=None):
    """What is kept of blocks of rows, which are computed by themselves and come in any order."""
    keep, parts = Keep.parse(rule), []
    for begin in range(0, N, rows):
        selection = keep.selection(np.arange(N), N, "float32")
        for first in range(begin, min(begin + rows, N), 3):
            selection.add_rows(rho[first : min(first + 3, begin + rows)].copy(), first)
        parts.append(selection.edges())
    parts = [parts[place] for place in (range(len(parts)) if order is None else order(len(parts)))]
    if not keep.merges:
        return np.concatenate(parts)
    top = TargetTop(keep.most, np.arange(N), N, "float32")
    for part in parts:
        top.add(part)
    return top.edges()


@pytest.mark.parametrize("digits", [None, 1, 0])
@pytest.mark.parametrize("rule", RULES)
def test_the_same_pairs_as_sorting_all_however_blocks_are_cut(rule, digits):
    rho = a_map(digits)
    expected = naive(rho, rule)
    for rows in (1, 5, 16, N):
        edges = of_blocks(rho, rule, rows)
        assert edges.dtype == edge_dtype("float32")
        assert sorted(cells_of(edges)) == sorted(expected)
        np.testing.assert_array_equal(edges["rho"], rho[edges["library"], edges["target"]])


@pytest.mark.parametrize("digits", [None, 0])
def test_blocks_may_come_in_any_order(digits, monkeypatch):
    rho = a_map(digits)
    whole = of_blocks(rho, "top:5:target", N)
    rng = np.random.default_rng(1)
    for _ in range(5):
        np.testing.assert_array_equal(of_blocks(rho, "top:5:target", 4, rng.permutation), whole)
    np.testing.assert_array_equal(of_blocks(rho, "top:5:target", 4, lambda n: range(n - 1, -1, -1)), whole)


def test_order_of_edges():
    rho = a_map(1)
    edges = of_blocks(rho, "top:5", 5)
    assert cells_of(edges) == sorted(cells_of(edges), key=lambda cell: (cell[0], -float(rho[cell]), cell[1]))
    edges = of_blocks(rho, "rho>0.2", 5)
    assert cells_of(edges) == sorted(cells_of(edges))
    edges = of_blocks(rho, "top:5:target", 5)
    assert cells_of(edges) == sorted(cells_of(edges), key=lambda cell: (cell[1], -float(rho[cell]), cell[0]))


@pytest.mark.parametrize("rule", ["top:3", "top:3:target", "rho>0"])
def test_a_map_of_nothing(rule):
    assert len(of_blocks(np.full((N, N), np.nan, np.float32), rule, 5)) == 0


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_threshold_that_the_type_cannot_hold_is_meant_exactly(dtype):
    nearest = np.dtype(dtype).type(0.3)  # above 0.3 as float32, and 0.3 itself as float64
    row = np.array([[0, nearest, np.nextafter(nearest, nearest.dtype.type(0)), 0.2]], dtype)
    selection = Keep.parse("rho>0.3").selection(np.arange(4), 4, dtype)
    selection.add_rows(row, 0)
    assert selection.edges()["target"].tolist() == ([1] if float(nearest) > 0.3 else [])


def test_what_is_weaker_than_all_that_is_kept_is_not_merged(monkeypatch):
    rng, n = np.random.default_rng(2), 60
    merged, take = [], TargetTop._take
    monkeypatch.setattr(TargetTop, "_take", lambda self, targets, *rest: (merged.append(len(targets)),
                                                                         take(self, targets, *rest))[1])  # fmt: skip
    selection = Keep.parse("top:2:target").selection(np.arange(n), n, "float32")
    for first in range(0, n, 2):
        selection.add_rows(rng.random((2, n), np.float32), first)
    assert merged[0] == n and max(merged[-10:]) < n / 4


@pytest.mark.parametrize(
    ("given", "meant"),
    [("top:50", "top:50:library"), (" top : 5 : target ", "top:5:target"), ("rho>0.3", "rho>0.3"),
     ("rho > .5", "rho>0.5"), ("rho>-1", "rho>-1.0"), ("top:007:library", "top:7:library")],
)  # fmt: skip
def test_rules(given, meant):
    assert str(Keep.parse(given)) == meant == str(Keep.parse(meant))


def test_all_is_no_rule():
    assert Keep.parse("all") is None


@pytest.mark.parametrize(
    "rule",
    ["top:0", "top:-1", "top", "top:5:row", "rho>1", "rho>nan", "rho>=0.3", "rho<0.3", "", "ALL?", None, 50, True,
     "top:" + "9" * 30, "rho>1e999", b"all"],
)  # fmt: skip
def test_what_is_no_rule_is_refused(rule):
    with pytest.raises(InputError, match=r"keep=.*'all', 'top:K'.*'rho>X'"):
        Keep.parse(rule)


def test_blocks_of_a_store_hold_a_tenth_of_the_map_at_most():
    keep, n = Keep.parse("top:50:target"), 100_000
    rows = keep.block_rows(n, 20)
    assert -(-n // rows) * 50 * n * edge_dtype("float32").itemsize < n * n * 4 / 10
    assert keep.block_rows(64, 16) == 16, "several blocks, so that several can work"
    assert Keep.parse("top:50").block_rows(n, 20) == 20


def test_ties_take_the_smaller_library_and_target():
    rho = np.full((N, N), 0.5, np.float32)
    assert set(cells_of(of_blocks(rho, "top:1", 5))) == {(i, int(i == 0)) for i in range(N)}
    assert set(cells_of(of_blocks(rho, "top:1:target", 5))) == {(int(j == 0), j) for j in range(N)}
    assert keep_module._rank(np.array([2, 2, 5, 5, 5, 0])).tolist() == [0, 1, 0, 1, 2, 0]
