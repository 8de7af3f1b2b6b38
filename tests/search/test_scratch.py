"""Scratch memory of the search: the plan allocates what the template uses."""

from __future__ import annotations

import re

import pytest

from pyedmcl.kernels import spec
from pyedmcl.kernels.build import source
from pyedmcl.search.plan import KnnPass, SearchProblem

POLICY = {"fma": "builtin", "minimum": "fmin"}
LAYOUTS = [  # lanes, wg, unroll, tile, bound_share, hot, sharers
    (16, 1, 4, 0, 1, 64, 1),
    (4, 32, 2, 0, 3, 64, 1),
    (1, 128, 8, 2048, 1, 256, 1),
    (1, 64, 4, 0, 2, 32, 1),
    (1, 64, 8, 256, 8, 512, 8),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_scratch_of_template_is_that_of_plan(layout, dtype):
    names = ("lanes", "wg", "unroll", "tile", "bound_share", "hot")
    parameters = {t.name: t.values[0] for t in spec("knn").tunables} | dict(zip(names, layout, strict=False))
    problem = SearchProblem((2, 5, 20), (3, 6, 21), 1, 0, 0, 3000, 3000, dtype=dtype)
    knn_pass = KnnPass(problem, "weights", parameters, layout[-1])
    text = source(spec("knn"), knn_pass.values(masked=False) | POLICY)
    per_buffer = int(re.search(r"#define GROUP_SCRATCH \(\(size_t\)GROUP_ROWS \* (\d+)\)", text)[1])
    buffers = int(re.search(r"#define GROUP_ROWS (\d+)", text)[1])
    assert buffers * per_buffer * problem.itemsize == knn_pass.scratch_bytes
