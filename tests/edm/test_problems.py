"""Problems of jobs: pickled, opened elsewhere and computed block by block, they give the same bits."""

from __future__ import annotations

import pickle

import naive
import numpy as np
import pytest

import pyedmcl
from pyedmcl.device.session import open_device
from pyedmcl.jobs.runner import LocalRunner


@pytest.fixture(scope="module")
def data():
    x = naive.noisy_maps(6, 160, 12).astype(np.float64)
    x[40, 2] = np.nan
    x[:, 5] = np.arange(160) % 7
    return x


CALLS = {
    "xmap": lambda x, **more: pyedmcl.xmap(x, E=[3, 1, 3, 2, 1, 4], Tp=1, exclusion_radius=2, **more),
    "embed_dimension": lambda x, **more: pyedmcl.embed_dimension(x, E_max=4, **more),
    "embed_dimension of chosen rows": lambda x, **more: pyedmcl.embed_dimension(x, E_max=2, lib_range=(0, 90), **more),
    "knn": lambda x, **more: pyedmcl.knn(x[:, 0], E=2, k=4, Tp=1, query=x[:90, 1], **more),
    "ccm": lambda x, **more: pyedmcl.ccm(x[:, 0], x[:, 1], E=[2, 3], lib_sizes=[20, 60], sample=3, seed=1, **more),
    "ccm, both at once": lambda x, **more: pyedmcl.ccm(x[:, 0], x[:, 1], E=2, lib_sizes=20, sample=3, seed=1, **more),
    "ccm by smap": lambda x, **more: pyedmcl.ccm(x[:, 0], x[:, 1], E=2, lib_sizes=20, sample=2, seed=1, method="smap",
                                                 **more),
    "ccm_significance": lambda x, **more: pyedmcl.ccm_significance(x[:, 0], x[:, 1], E=2, n=3, seed=1, lib_size=30,
                                                                   sample=2, **more),
    "ccm_matrix": lambda x, **more: pyedmcl.ccm_matrix(x, E=2, lib_sizes=[20, 60], sample=3, seed=1, **more),
    "xmap_significance": lambda x, **more: pyedmcl.xmap_significance(x, E=2, n=3, seed=1, surrogate="shuffle", **more),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_a_pickled_problem_gives_the_same_bits_block_by_block(data, one_device, monkeypatch, name):
    jobs = []
    run = LocalRunner.run

    def watched(self, problem, sink):
        jobs.append((pickle.dumps(problem), sink.pending(), sink))
        return run(self, problem, sink)

    monkeypatch.setattr(LocalRunner, "run", watched)
    CALLS[name](data, device=one_device)
    ((text, blocks, sink),) = jobs
    problem = pickle.loads(text)
    assert problem.total == sum(problem.size(block) for block in blocks)
    engine = problem.open(open_device(one_device))
    try:
        for block in reversed(blocks):
            for rows, there in zip(engine.block(block, None, lambda done: None).arrays, sink.room(block), strict=True):
                np.testing.assert_array_equal(rows, there)
    finally:
        engine.release()


def test_series_are_pickled_once(data, one_device, monkeypatch):
    """What was conditioned for a device does not travel: it follows from the series."""
    sizes = []
    run = LocalRunner.run

    def watched(self, problem, sink):
        record = run(self, problem, sink)
        sizes.append(len(pickle.dumps(problem)))
        return record

    monkeypatch.setattr(LocalRunner, "run", watched)
    pyedmcl.xmap(data, E=2, device=one_device)
    assert data.nbytes < sizes[0] < data.nbytes + 2000
