"""Oracles of recurrence analysis: small cases that can be checked by hand."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from pyedmcl.recurrence import image_problem
from pyedmcl.reference.recurrence import binned, line_counts, pixel_edges, runs


def test_the_oracle_finds_lines_one_by_one():
    assert runs(np.array([1, 1, 0, 1], bool)) == [(True, 0, 2), (False, 2, 1), (True, 3, 1)]
    matrix = np.array([[1, 0, 1], [1, 1, 0], [0, 0, 1]], bool)
    found = line_counts(matrix, theiler=0)
    assert found["points"] == 5 and list(found["diagonals"]) == [0, 2, 0, 1]
    assert list(found["verticals"]) == [0, 3, 1] and list(found["whites"]) == [0, 1]
    assert list(found["white_borders"]) == [0, 3] and list(found["per_diagonal"]) == [0, 1, 3, 0, 1]
    dropped = line_counts(matrix, theiler=1, theiler_everywhere=True)
    assert dropped["points"] == 2 and list(dropped["columns"]) == [1, 0, 1]


def test_the_oracle_bins_as_said():
    matrix = np.arange(35).reshape(5, 7)
    rows, columns = pixel_edges(5, 2), pixel_edges(7, 3)
    assert (rows.tolist(), columns.tolist()) == ([0, 2, 5], [0, 2, 4, 7])
    sums = [[matrix[a:b, c:d].sum() for c, d in pairwise(columns)]
            for a, b in pairwise(rows)]  # fmt: skip
    np.testing.assert_array_equal(binned(matrix, (2, 3)), sums)
    np.testing.assert_array_equal(image_problem.pixel_edges(10**9, 7), pixel_edges(10**9, 7))
