"""Measures from counts, against their formulas written out, and denominators against counting every cell."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from pyedmcl.recurrence import counts as formulas
from pyedmcl.recurrence.arguments import CONVENTIONS
from pyedmcl.recurrence.counts import (
    Counts,
    both_sides,
    cells_by_offset,
    cells_of_columns,
    cells_within,
    identity_lines,
)
from pyedmcl.recurrence.measures import SHORT_NAMES, RecurrenceResult
from pyedmcl.reference.recurrence import line_counts

LINES = np.array([0, 7, 3, 0, 2])  # 7 of length 1, 3 of 2, 2 of 4


def result(matrix, convention="pyrqa", theiler=1, symmetric=True):
    rules = CONVENTIONS[convention]
    counts = Counts(**line_counts(matrix, theiler=theiler, theiler_everywhere=rules.theiler_everywhere))
    complete = tuple(np.ones(n, bool) for n in matrix.shape)
    return RecurrenceResult(counts, rules, 1.0, theiler, 2, 2, 2, complete, symmetric)


def test_docs_have_a_row_for_each_measure():
    docs = (Path(__file__).resolve().parents[2] / "docs" / "recurrence.md").read_text(encoding="utf-8")
    table = docs[docs.index("| name | short | definition |") :].split("\n\n")[0]
    listed = [short for row in table.splitlines()[2:] for short in row.split("|")[2].strip().split(", ")]
    assert listed == list(SHORT_NAMES)
    for short, long in SHORT_NAMES.items():
        assert getattr(RecurrenceResult, long).__doc__.startswith(f"{short}: ")


def random_matrix(rows, columns, share, seed):
    return np.random.default_rng(seed).random((rows, columns)) < share


def test_share_average_longest_entropy():
    assert formulas.share(LINES, 2) == 14 / 21
    assert formulas.average(LINES, 2) == 14 / 5
    assert formulas.longest(LINES) == 4 and formulas.longest(LINES, 5) == 0
    assert formulas.entropy(LINES, 2) == pytest.approx(-(0.6 * math.log(0.6) + 0.4 * math.log(0.4)))
    assert formulas.entropy(LINES, 3) == 0 and math.copysign(1, formulas.entropy(LINES, 3)) == 1
    assert math.isnan(formulas.entropy(LINES, 5)) and math.isnan(formulas.average(LINES, 5))


def test_lines_of_a_million_points_do_not_overflow():
    lines = np.zeros(3_000_001, np.int64)
    lines[3_000_000] = 4_000_000
    assert formulas.points(lines, 2) == 12 * 10**12


@pytest.mark.parametrize("theiler", [0, 1, 4])
@pytest.mark.parametrize("shape", [(40, 40), (40, 31), (23, 40)])
def test_trend_is_its_formula(shape, theiler):
    matrix = random_matrix(*shape, 0.3, 1)
    n = min(shape)
    rate = []
    for d in range(n):
        cells = np.concatenate([np.diagonal(matrix, k) for k in {d, -d}])
        rate.append(cells.mean())
    a, b = 1 + theiler, n - 10
    chosen = rate[a - 1 : b]
    delta = [d - b / 2 for d in range(a, b + 1)]
    wanted = 1000 * sum(s * (r - np.mean(chosen)) for s, r in zip(delta, chosen, strict=True)) / sum(
        s * s for s in delta
    )
    assert result(matrix, theiler=theiler, symmetric=False).trend == pytest.approx(wanted, rel=1e-12)


def test_trend_tells_fading_from_growing_recurrence():
    cells, fading = np.full(100, 10_000), np.arange(100, 0, -1) * 100
    assert formulas.trend(fading, cells, 0) < 0 < formulas.trend(fading[::-1], cells, 0)
    assert math.isnan(formulas.trend(fading[:10], cells[:10], 0)), "all diagonals are border"


def test_recurrence_times_and_periods():
    matrix = np.zeros((12, 3), bool)
    matrix[[1, 2, 5, 9, 10], 0] = True  # gaps 1, 3, 4, 1; starts 1, 5, 9; whites between of 2 and 3
    matrix[4, 1] = True
    found = result(matrix, symmetric=False)
    assert found.recurrence_time_1 == 9 / 4
    assert found.recurrence_time_2 == 8 / 2
    assert found.recurrence_period_density_entropy == pytest.approx(math.log(2) / math.log(3))
    alone = result(matrix[:, 1:2], symmetric=False)
    assert math.isnan(alone.recurrence_time_1) and math.isnan(alone.recurrence_period_density_entropy)


def test_period_entropy_of_a_clock_is_zero_and_of_even_times_one():
    assert formulas.period_entropy(np.array([0, 0, 0, 9])) == 0
    assert formulas.period_entropy(np.array([0, 9])) == 0
    assert formulas.period_entropy(np.array([0, 5, 5, 5, 5])) == pytest.approx(1)


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_longest_lines_follow_the_convention(convention):
    matrix = np.eye(9, dtype=bool)
    matrix[2, 6] = matrix[6, 2] = True
    found = result(matrix, convention)
    respects = CONVENTIONS[convention].longest_from_minimum
    assert found.longest_diagonal_line == (0 if respects else 1)
    assert found.longest_vertical_line == (0 if respects else 1)
    assert found.divergence == (math.inf if respects else 1)


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_white_lines_follow_the_convention(convention):
    matrix = np.zeros((6, 1), bool)
    matrix[[1, 4], 0] = True
    found = result(matrix, convention, theiler=0, symmetric=False)
    borders = CONVENTIONS[convention].white_borders
    assert list(found.white_vertical_lines) == ([0, 2, 1] if borders else [0, 0, 1])


@pytest.mark.parametrize("theiler", [0, 1, 5, 40])
def test_cells_are_counted_with_gaps(theiler):
    rows, columns = random_matrix(1, 30, 0.8, 2)[0], random_matrix(1, 21, 0.7, 3)[0]
    cells = rows[:, None] & columns[None, :]
    offset = np.arange(21)[None, :] - np.arange(30)[:, None]
    assert cells_within(rows, columns, theiler) == (cells & (np.abs(offset) < theiler)).sum()
    assert list(cells_of_columns(rows, columns, theiler)) == list((cells & (np.abs(offset) >= theiler)).sum(axis=0))
    by_offset = cells_by_offset(rows, columns)
    assert list(by_offset) == [np.diagonal(cells, k).sum() for k in range(-29, 21)]
    assert list(cells_by_offset(np.ones(30, bool), np.ones(21, bool))) == [
        len(np.diagonal(cells, k)) for k in range(-29, 21)
    ]
    folded = both_sides(by_offset, 30)
    assert len(folded) == 21 and folded[3] == np.diagonal(cells, 3).sum() + np.diagonal(cells, -3).sum()
    assert folded[0] == np.diagonal(cells).sum()


@pytest.mark.parametrize(
    ("convention", "symmetric", "cells"),
    [("pyrqa", True, 100), ("accrqa", True, 100), ("crqa", True, 100), ("recurrenceanalysis", True, 7 * 8),
     ("recurrenceanalysis", False, 100)],
)  # fmt: skip
def test_denominator_of_the_rate_follows_the_convention(convention, symmetric, cells):
    found = result(np.ones((10, 10), bool), convention, theiler=3, symmetric=symmetric)
    assert found.cells == cells
    assert found.recurrence_rate == found.counts.points / cells


def test_ratio_is_determinism_per_recurrence_rate():
    found = result(random_matrix(30, 30, 0.3, 4), theiler=0, symmetric=False)
    assert found.RATIO == found.determinism / found.recurrence_rate > 1
    assert math.isnan(result(np.zeros((5, 5), bool)).ratio)


@pytest.mark.parametrize("theiler", [0, 1, 4])
def test_center_of_recurrence_mass_is_that_of_the_upper_triangle(theiler):
    """As Anderson et al. (2013) define it, in percent, of fixations that recur: (N - 1) R in the denominator."""
    half = np.triu(random_matrix(40, 40, 0.2, 6), max(theiler, 1))
    i, j = np.nonzero(half)
    found = result(half | half.T | np.eye(40, dtype=bool), theiler=theiler)
    np.testing.assert_allclose(found.CORM, (j - i).sum() / (39 * len(i)), rtol=1e-14)
    assert found.center_of_recurrence_mass == found["CORM"]
    if theiler == 1:  # their REC is a share of pairs, too
        assert 2 * len(i) / (40 * 39) == result(half | half.T, "recurrenceanalysis", theiler=1).RR
    assert math.isnan(result(np.eye(5, dtype=bool)).CORM)


def test_identity_lines_end_at_gaps():
    complete = np.array([1, 1, 0, 1, 1, 1, 0, 0, 1, 1], bool)
    assert list(identity_lines(complete)) == [0, 0, 2, 1]
    assert list(identity_lines(np.zeros(3, bool))) == [0]
