"""A small result of each class, for tests of what all results have in common."""

from __future__ import annotations

from functools import cache

import numpy as np

import pyedmcl
from pyedmcl.simulate import coupled_maps

VALUES = coupled_maps(n_series=4, n_steps=400).values.astype(np.float32)
X, Y = VALUES[:, 0], VALUES[:, 1]

MAKERS = {
    "CheckResult": lambda d: pyedmcl.check({"a": X, "b": np.zeros(400)}),
    "XmapSignificance": lambda d: pyedmcl.xmap_significance(VALUES, E=3, n=19, seed=1, device=d),
    "EmbedDimensionResult": lambda d: pyedmcl.embed_dimension(VALUES, E_max=4, device=d),
    "SkillResult": lambda d: pyedmcl.predict_interval(X, E=3, Tp=[1, 2], device=d),
    "XmapEdges": lambda d: pyedmcl.xmap(VALUES, E=3, keep="top:2", device=d),
    "CausalNetwork": lambda d: pyedmcl.causal_network(
        VALUES[:, :3], E=3, lags=None, convergence=False, n=19, seed=1, device=d
    ),
    "KnnResult": lambda d: pyedmcl.knn(X, E=3, device=d),
    "SmapResult": lambda d: pyedmcl.smap(X, E=3, theta=[0.0, 2.0], device=d),
    "NonlinearResult": lambda d: pyedmcl.predict_nonlinear(X, E=3, theta=[0.0, 2.0], device=d),
    "XmapResult": lambda d: pyedmcl.xmap(VALUES, E=3, device=d),
    "XmapGrid": lambda d: pyedmcl.xmap_grid(VALUES, E=[1, 3], device=d),
    "GridChoice": lambda d: pyedmcl.xmap_grid(VALUES, E=[1, 3], device=d).saturation(),
    "CcmSignificance": lambda d: pyedmcl.ccm_significance(X, Y, E=3, n=19, seed=1, device=d),
    "SimplexResult": lambda d: pyedmcl.simplex(X, E=3, device=d),
    "EmbedResult": lambda d: pyedmcl.embed(X, E=3),
    "PartialCcm": lambda d: pyedmcl.partial_ccm(X, Y, given=VALUES[:, 2], E=3, n=19, seed=1, device=d),
    "CcmMatrixResult": lambda d: pyedmcl.ccm_matrix(VALUES, E=3, lib_sizes=[30, 60], sample=5, seed=1, device=d),
    "CcmResult": lambda d: pyedmcl.ccm(X, Y, E=3, lib_sizes=[30, 60], sample=5, seed=1, device=d),
    "LaggedCcmResult": lambda d: pyedmcl.ccm_lagged(X, Y, E=3, Tp=[-1, 0], seed=1, device=d),
    "FalseNeighbors": lambda d: pyedmcl.false_neighbors(X, E_max=3, device=d),
    "Suggestion": lambda d: pyedmcl.suggest({"a": X, "b": np.zeros(400)}, E_max=3, device=d),
    "Comparison": lambda d: pyedmcl.compare({"g": ["a", "b"] * 10, "rho": X[:20]}, "g", n=99, seed=1),
    "EmbeddingScan": lambda d: pyedmcl.embedding_scan(X, E=[1, 2], tau=[1], device=d),
    "MutualInformation": lambda d: pyedmcl.mutual_information(X, lags=5),
    "RecurrencePlot": lambda d: pyedmcl.recurrence_plot(X, radius=0.1, pixels=20, device=d),
    "DistancePlot": lambda d: pyedmcl.distance_plot(X, pixels=20, device=d),
    "RqaBatch": lambda d: pyedmcl.rqa_batch([X[:100], Y[:90]], radius=[0.1, 0.2], device=d),
    "LagProfile": lambda d: pyedmcl.lag_profile(X, Y, lags=4, radius=0.1, n=9, seed=1, device=d),
    "RqaSignificance": lambda d: pyedmcl.rqa_significance(X, radius=0.1, n=9, seed=1, device=d),
    "RqaBands": lambda d: pyedmcl.rqa_bands(X, radius=0.1, device=d),
    "RecurrenceTable": lambda d: pyedmcl.rqa(X, radius=[0.1, 0.2], device=d),
    "RecurrenceNetwork": lambda d: pyedmcl.recurrence_network(X, radius=0.1, device=d),
    "RecurrenceResult": lambda d: pyedmcl.rqa(X, radius=0.1, device=d),
    "WindowedSignificance": lambda d: pyedmcl.xmap_significance(
        VALUES[:, :2], E=3, n=19, seed=1, windows=(200, 100), device=d
    ),
    "WindowedMap": lambda d: pyedmcl.xmap(VALUES, E=3, windows=(200, 100), device=d),
    "WindowedCcm": lambda d: pyedmcl.ccm(X, Y, E=3, lib_sizes=[30], sample=2, seed=1, windows=(200, 100), device=d),
    "WindowedCcmMatrix": lambda d: pyedmcl.ccm_matrix(
        np.stack([X, Y], axis=1), E=3, lib_sizes=[20, 30], sample=2, seed=1, windows=(200, 100), device=d
    ),
    "WindowedForecast": lambda d: pyedmcl.simplex(X, E=3, windows=(200, 100), device=d),
    "MultiviewResult": lambda d: pyedmcl.multiview(VALUES[:, :3], target=0, D=2, E=2, device=d),
}


@cache
def made(name, device):
    return MAKERS[name](device)
