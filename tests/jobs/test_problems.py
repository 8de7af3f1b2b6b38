"""Problems of jobs: pickled, opened elsewhere and computed block by block, they give the same bits."""

from __future__ import annotations

import pickle
from dataclasses import fields, is_dataclass

import naive
import numpy as np
import pytest

import pyedmcl
from pyedmcl.device.select import open_device
from pyedmcl.jobs.runner import LocalRunner
from pyedmcl.recurrence.batch_counts import BatchCounts


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
    "simplex": lambda x, **more: pyedmcl.simplex(x[:, 0], target=x[:, 2], E=3, Tp=2, **more),
    "simplex, generated": lambda x, **more: pyedmcl.simplex(x[:, 0], E=2, generate_steps=3, **more),
    "predict_interval": lambda x, **more: pyedmcl.predict_interval(x[:, 0], E=2, Tp=[1, 3], **more),
    "smap": lambda x, **more: pyedmcl.smap(x[:, 2], E=2, theta=[0, 2], **more),
    "smap, generated": lambda x, **more: pyedmcl.smap(x[:, 0], E=2, theta=1.0, generate_steps=3, **more),
    "predict_nonlinear": lambda x, **more: pyedmcl.predict_nonlinear(x[:, 0], E=2, theta=[0.0, 1.0], **more),
    "rqa": lambda x, **more: pyedmcl.rqa(x[:, 0], x[:90, 2], m=2, radius=0.3, **more),
    "joint_rqa": lambda x, **more: pyedmcl.joint_rqa(x[:, 0], x[:, 2], radius=[0.1, 0.3], **more),
    "windowed_rqa": lambda x, **more: pyedmcl.windowed_rqa(x[:, 2], 60, 25, radius=0.3, **more),
    "rqa_batch": lambda x, **more: pyedmcl.rqa_batch(x, m=2, radius=[0.2, 0.4], **more),
    "windowed_rqa of two": lambda x, **more: pyedmcl.windowed_rqa(x[:, 0], 60, 25, y=x[:, 2], radius=0.3, **more),
    "xmap_grid": lambda x, **more: pyedmcl.xmap_grid(x, E=[1, 2], folds=2, **more),
    "embedding_scan": lambda x, **more: pyedmcl.embedding_scan(x, E=[1, 3], tau=[1, 2], Tp=[0, 1], **more),
    "false_neighbors": lambda x, **more: pyedmcl.false_neighbors(x, E_max=3, **more),
    "mutual_information": lambda x, **more: pyedmcl.mutual_information(x, lags=3, method="kraskov", **more),
    "multiview": lambda x, **more: pyedmcl.multiview(x[:, [0, 1]], 0, D=2, E=2, **more),
    "ccm_matrix": lambda x, **more: pyedmcl.ccm_matrix(x, E=2, lib_sizes=[20, 60], sample=3, seed=1, **more),
    "xmap_significance": lambda x, **more: pyedmcl.xmap_significance(x, E=2, n=3, seed=1, surrogate="shuffle", **more),
}  # fmt: skip


def arrays_of(result):
    """All arrays and numbers of what a block gives, in a fixed order."""
    if isinstance(result, BatchCounts):  # whose matrices lie in any order
        result = [result.of(number) for number in range(len(result))]
    if is_dataclass(result):
        result = [getattr(result, field.name) for field in fields(result)]
    if isinstance(result, (list, tuple)):
        return [array for part in result for array in arrays_of(part)]
    return [np.asarray(result)] if isinstance(result, (np.ndarray, int, float)) else []


@pytest.mark.parametrize("name", CALLS)
def test_a_pickled_problem_gives_the_same_bits_block_by_block(data, one_device, monkeypatch, name):
    jobs = []
    run = LocalRunner.run

    def watched(self, problem, sink):
        jobs.append((pickle.dumps(problem), sink.pending(), sink))
        return run(self, problem, sink)

    monkeypatch.setattr(LocalRunner, "run", watched)
    CALLS[name](data, device=one_device)
    assert jobs
    for text, blocks, sink in jobs:
        problem = pickle.loads(text)
        assert problem.total == sum(problem.size(block) for block in blocks)
        engine = problem.open(open_device(one_device))
        try:
            for block in reversed(blocks):
                again = engine.block(block, None, lambda done: None).arrays
                before = sink.room(block) or sink.results()[block.number]
                for one, other in zip(arrays_of(again), arrays_of(before), strict=True):
                    np.testing.assert_array_equal(one, other)
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
