"""Parts of a recurrence matrix on the host: how they are cut, joined and finished, and what float32 may decide."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from recurrence_parts import cells_of, differences, partial_of, problem_of, series

from pyedmcl.recurrence import problem as sides
from pyedmcl.recurrence.counts import Counts, join
from pyedmcl.recurrence.engine import combine, identity_line, split_rows
from pyedmcl.recurrence.problem import shift_and_scale
from pyedmcl.reference.recurrence import line_counts

SHAPES = [(70, None), (70, 45), (45, 70), (33, 1), (1, 33), (97, None)]


def effective(problem):
    return (max(problem.theiler, 1) if problem.symmetric else problem.theiler,
            0 if problem.symmetric else 1 - problem.n_rows)  # fmt: skip


def cut(problem, cells, cuts):
    theiler, _ = effective(problem)
    bounds = [0, *cuts, problem.n_rows]
    return [partial_of(cells, a, b, symmetric=problem.symmetric, theiler=theiler)
            for a, b in itertools.pairwise(bounds)]  # fmt: skip


@pytest.mark.parametrize("radius", [0.1, 0.5, 1.5, 100.0])
@pytest.mark.parametrize("theiler", [0, 1, 3])
@pytest.mark.parametrize("shape", SHAPES)
def test_parts_join_in_any_order_and_grouping(shape, theiler, radius):
    problem = problem_of(*shape, radius=radius, theiler=theiler)
    n, m = shape
    x, y = series(n, n), None if m is None else series(m, 5)
    cells = cells_of(problem, x, y)
    rng = np.random.default_rng(theiler)
    whole = cut(problem, cells, [])[0]
    wanted = Counts(**line_counts(cells, theiler=theiler, theiler_everywhere=False))
    for _ in range(4):
        cuts = np.unique(rng.integers(1, n, 5)).tolist() if n > 1 else []
        parts = cut(problem, cells, cuts)
        shuffled = [parts[at] for at in rng.permutation(len(parts))]
        assert differences(join(shuffled, *effective(problem)), whole) == []
        middle = len(parts) // 2
        halves = [join(some, *effective(problem)) for some in (parts[:middle], parts[middle:]) if some]
        assert differences(join(halves[::-1], *effective(problem)), whole) == [], "associative"
        found = combine(problem, [[part] for part in shuffled], x)[0]
        assert found == wanted, found.differences(wanted)


def test_lost_and_doubled_rows_are_noticed():
    problem = problem_of(70)
    parts = cut(problem, cells_of(problem, series(70, 1)), [20, 40])
    with pytest.raises(ValueError, match="rows 20 to 40 of the matrix are missing"):
        join([parts[2], parts[0]], *effective(problem))
    with pytest.raises(ValueError, match="missing or counted twice"):
        join([*parts, parts[1]], *effective(problem))


@pytest.mark.parametrize("devices", [1, 2, 3, 7, 50])
@pytest.mark.parametrize("shape", [(1000, None), (1000, 10), (10, 1000), (31, None), (33, 33)])
def test_rows_are_split_at_words_and_evenly(shape, devices):
    problem = problem_of(*shape)
    ranges = split_rows(problem, devices)
    assert ranges[0][0] == 0 and ranges[-1][1] == shape[0] and len(ranges) <= devices
    assert all(a % 32 == 0 for a, _ in ranges)
    assert all(left[1] == right[0] for left, right in itertools.pairwise(ranges))
    columns = problem.n_columns
    work = [sum(columns - i if problem.symmetric else columns for i in range(a, b)) for a, b in ranges]
    assert max(work) <= sum(work) / devices + 64 * columns


def test_no_values_have_a_shift_and_a_scale():
    empty = np.full(5, np.nan)
    assert shift_and_scale(empty, empty) == (0.0, 1.0, 1.0)
    assert shift_and_scale(np.full(3, 7.0), empty) == (7.0, 1.0, 1.0)


class Host:
    """Keeps what is uploaded."""

    def upload(self, array):
        return array


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_gaps_and_padding_recur_with_nothing(dtype):
    problem = problem_of(20, 30, dtype=dtype)
    x, y = series(20, 2), series(30, 3)
    x[4], y[7] = np.nan, np.nan
    held = sides.Sides(Host(), problem, x, y, sides.Padding(40, 50))
    assert held.x.shape == (1, 70) and held.y.shape == (1, 120) and held.front == 40
    assert held.checked is (dtype == "float32") and held.limits_per_radius == (2 if held.checked else 1)
    for rows, columns in ((held.x, held.y), (held.x64, held.y64)):
        inside = np.zeros((rows.shape[1], columns.shape[1]), bool)
        with np.errstate(over="ignore"):
            d = np.abs(rows[0][:, None] - columns[0][None, :])
        inside[:20, 40:70] = True
        inside[4], inside[:, 47] = False, False
        assert np.isfinite(rows).all() and (d[~inside] > 1e30).all() and (d[inside] < 1e30).all()


def test_main_diagonal_recurs_where_there_is_no_gap():
    x = series(20, 4)
    x[6] = np.nan
    complete = np.arange(18) != 6
    complete[4] = False  # its lagged value
    problem = replace(problem_of(18, theiler=0), m=2, tau=2)
    found = identity_line(problem, x, 0)
    np.testing.assert_array_equal(found, complete)
    assert not identity_line(replace(problem, inner=(0.1,)), x, 0).any(), "a corridor leaves out distance 0"
    assert identity_line(replace(problem, theiler=1), x, 0) is None, "the window leaves it out"
