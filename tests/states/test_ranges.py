"""Ranges and masks: which rows are library and which are predicted."""

from __future__ import annotations

import numpy as np
import pytest

from pyedmcl.errors import InputError
from pyedmcl.states import rows


def by_definition(n, pairs, E, tau, Tp):
    """Row by row: all lags and the target in the row's own segment."""
    ok = np.zeros(n, bool)
    for begin, end in pairs:
        for j in range(begin, end):
            ok[j] = all(begin <= j - e * tau for e in range(E)) and begin <= j + Tp < end
    return ok


@pytest.mark.parametrize("Tp", [-7, -2, 0, 1, 4, 200])
@pytest.mark.parametrize(("E", "tau"), [(1, 1), (3, 2)])
@pytest.mark.parametrize("pairs", [[(0, 100)], [(10, 40), (40, 50), (90, 100)], [(60, 80), (5, 30)]])
def test_segments_hold_lags_and_targets(pairs, E, tau, Tp):
    expected = by_definition(100, pairs, E, tau, Tp)
    if expected.any():
        np.testing.assert_array_equal(rows.mask_of_library(100, E=E, tau=tau, Tp=Tp, lib_range=pairs), expected)
    else:
        with pytest.raises(InputError, match="holds no library row"):
            rows.mask_of_library(100, E=E, tau=tau, Tp=Tp, lib_range=pairs)


def test_a_single_pair_needs_no_list():
    single = rows.mask_of_library(50, E=2, tau=1, Tp=1, lib_range=(5, 20))
    np.testing.assert_array_equal(single, rows.mask_of_library(50, E=2, tau=1, Tp=1, lib_range=[(5, 20)]))
    np.testing.assert_array_equal(np.flatnonzero(single), range(6, 19))
    assert rows.mask_of_library(50, E=2, tau=1, Tp=1) is None


def test_masks_are_taken_as_they_are():
    given = np.random.default_rng(0).random(60) < 0.5
    np.testing.assert_array_equal(rows.mask_of_library(60, E=4, tau=3, Tp=2, lib_range=given), given)
    both = rows.mask_of_library(60, E=2, tau=1, Tp=0, lib_range=(10, 50), valid_lib=given)
    np.testing.assert_array_equal(np.flatnonzero(both), np.flatnonzero(given[11:50]) + 11)


def test_two_booleans_are_a_mask():
    np.testing.assert_array_equal(rows.mask_of_library(2, E=1, tau=1, Tp=0, valid_lib=np.array([True, False])), [1, 0])


def test_prediction_rows_may_look_back_beyond_their_range():
    np.testing.assert_array_equal(rows.prediction_rows(30, 4, (3, 8)), range(4, 8))
    np.testing.assert_array_equal(rows.prediction_rows(30, 4, [(20, 22), (10, 12)]), [10, 11, 20, 21])
    np.testing.assert_array_equal(rows.prediction_rows(30, 4), range(4, 30))
    given = np.zeros(30, bool)
    given[[1, 7, 9]] = True
    np.testing.assert_array_equal(rows.prediction_rows(30, 4, given), [7, 9])


@pytest.mark.parametrize("Tp", [-3, 0, 2, 40])
def test_targets_that_are_there(Tp):
    y = np.random.default_rng(1).standard_normal(30)
    y[[4, 17]] = np.nan
    expected = [0 <= j + Tp < 30 and np.isfinite(y[j + Tp]) for j in range(30)]
    np.testing.assert_array_equal(rows.finite_target(y, Tp), expected)
    seen = rows.observed_at(y, np.arange(30), Tp)
    np.testing.assert_array_equal(np.isfinite(seen), expected)
    np.testing.assert_array_equal(seen[expected], y[np.flatnonzero(expected) + Tp])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ((5, 5), r"lib_range.*\(5, 5\).*<= 50"),
        ((-1, 5), r"lib_range.*\(-1, 5\)"),
        ((0, 51), r"lib_range.*\(0, 51\).*50"),
        ([(0, 20), (15, 30)], r"\(0, 20\) and \(15, 30\) overlap"),
        ([(0, 20), (1, 2, 3)], "lib_range"),
        ((0.5, 20), "lib_range=0.5"),
        ([], "lib_range"),
        ("1 20", "lib_range"),
        (np.ones(49, bool), r"\(49,\).*50"),
        (np.zeros(50, int), "lib_range"),
    ],
)
def test_what_cannot_be_used_is_named(given, words):
    with pytest.raises(InputError, match=f"(?s){words}"):
        rows.mask_of_library(50, E=2, tau=1, Tp=1, lib_range=given)


def test_masks_that_leave_nothing_are_refused():
    with pytest.raises(InputError, match="valid_lib leaves no library row"):
        rows.mask_of_library(50, E=2, tau=1, Tp=1, valid_lib=np.zeros(50, bool))
    with pytest.raises(InputError, match="valid_lib holds no booleans"):
        rows.mask_of_library(50, E=2, tau=1, Tp=1, valid_lib=np.arange(50))
    with pytest.raises(InputError, match=r"pred_range=\(0, 3\).*row 5"):
        rows.prediction_rows(50, 5, (0, 3))
    with pytest.raises(InputError, match="lib_range is a mask of 50 rows"):
        rows.mask_of_library(50, E=2, tau=1, Tp=1, lib_range=np.zeros(50, bool))
    with pytest.raises(InputError, match=r"pred_range=\(array of shape \(50,\)\)"):
        rows.prediction_rows(50, 5, np.zeros(50, bool))
