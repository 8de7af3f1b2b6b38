"""The search of several dimensions at once: each has the neighbours and distances of its own exact search."""

from __future__ import annotations

import numpy as np
import pytest

from pyedmcl.device.select import open_device
from pyedmcl.reference.edm import knn_float32_exact
from pyedmcl.search.plan import SearchProblem
from pyedmcl.search.searches import ExhaustiveSearcher
from pyedmcl.search.tables import lay_out
from pyedmcl.tuning.parameters import using

# Lists of one, two and three blocks of 16, one of them full.
DIMS, COUNTS = (1, 2, 3, 5, 8, 17), (2, 3, 4, 16, 33, 18)


def _noise(n, seed):
    return np.random.default_rng(seed).standard_normal(n).astype(np.float32)


def _gaps(n, seed):
    x = _noise(n, seed)
    x[np.random.default_rng(seed).integers(0, n, 6)] = np.nan
    return x


CASES = {
    "noise": (_noise(700, 1), {}),
    "far-from-itself": (_noise(300, 2), {"exclusion_radius": 40, "Tp": 2}),
    "ties": (np.round(_noise(400, 3)), {"Tp": -3}),
    "constant": (np.full(300, 2.5, np.float32), {}),  # all rows are as near as the nearest
    "periodic": (np.resize(_noise(20, 4), 500), {}),
    "gaps": (_gaps(500, 5), {"Tp": 1}),
    "few": (_noise(40, 6), {}),  # fewer rows than neighbours
    "mask": (_noise(500, 7), {"library_mask": np.random.default_rng(7).random(500) < 0.6}),
}


def _found(device, x, exclusion_radius=0, Tp=0, library_mask=None):
    """Rows and squared distances of each dimension."""
    problem = SearchProblem(DIMS, COUNTS, 1, Tp, exclusion_radius, len(x), len(x))
    executor = open_device(device)
    searcher = ExhaustiveSearcher(executor, problem, "neighbors")
    try:
        layouts = [lay_out(x[:, None], problem, len(x), end) for end in (problem.library_end, len(x))]
        (tables,) = searcher.tables(searcher.load_layouts(*layouts), library_mask)
        return [tables.read(executor, E, 1) for E in DIMS]
    finally:
        searcher.release()


@pytest.mark.parametrize("case", CASES)
def test_each_dimension_has_its_own_neighbours(device, case):
    x, options = CASES[case]
    own = {"exclusion_radius": 0} | options
    for E, k, (rows, squared) in zip(DIMS, COUNTS, _found(device, x, **options), strict=True):
        wanted, indices = knn_float32_exact(x, E=E, tau=1, k=k, target=np.zeros(len(x)), **own)
        np.testing.assert_array_equal(rows[0], indices, err_msg=f"E = {E}")
        np.testing.assert_array_equal(squared[0], np.where(indices < 0, np.float32(3e38), wanted), err_msg=f"E = {E}")


@pytest.mark.parametrize("parameters", [{"lanes": 4, "unroll": 2}, {"lanes": 8, "unroll": 16}], ids=str)
def test_narrow_vectors_find_the_same(one_device, parameters):
    x, options = CASES["gaps"]
    wanted = _found(one_device, x, **options)
    with using(knn={**parameters, "tile": 0}):  # a staged tile, the default of a GPU, allows no vectors
        for one, other in zip(_found(one_device, x, **options), wanted, strict=True):
            np.testing.assert_array_equal(one[0], other[0])
            np.testing.assert_array_equal(one[1], other[1])
