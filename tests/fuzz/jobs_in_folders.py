"""Jobs that keep their work in a folder, small ones of every kind, and what they answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

import pyedmcl

rng = np.random.default_rng(11)
X, Y = (rng.standard_normal((70, 20)).cumsum(axis=0) for _ in range(2))
LONG, OTHER = (rng.standard_normal(700).cumsum() for _ in range(2))


@dataclass(frozen=True)
class Job:
    """A function with a folder.

    Attributes
    ----------
    call : callable
        ``call(folder, question, **more)``: one of some questions, of which the first is what the folder is asked for,
        the others differ in data, in an argument, in size, and in how it is shared.
    values : callable
        Of an answer: its numbers by names.
    opened : callable or None
        ``opened(folder)``: the answer, from the folder alone.
    fills : bool
        Whether an open folder shows NaN where blocks are not done.
    resumes : bool
        Whether it takes ``resume=False``.
    """

    call: Any
    values: Any
    opened: Any = None
    fills: bool = False
    resumes: bool = False


def _of(function, folder_name, questions):
    def call(folder, question, **more):
        data, options = questions[question]
        return function(data, **{folder_name: folder}, **{**options, **more})

    return call


def fields(*names):
    return lambda found: {name: np.asarray(getattr(found, name)) for name in names}


MAP = {"E_max": 2, "join": True}
GRID = {"E": [2, 3], "Tp": [0, 1]}
CCM = {"lib_sizes": [12, 24], "sample": 3, "E": 2, "seed": 1}
TESTS = {"E": 2, "n": 4, "seed": 1, "surrogate": "shuffle"}
NET = {"E": 2, "n": 9, "seed": 1, "surrogate": "shuffle", "lags": [-1, 0, 1], "sample": 4, "lib_sizes": [20, 40]}
BANDS = {"m": 2, "radius": 1.2, "join": True}

JOBS = {
    "map": Job(
        _of(pyedmcl.xmap, "out", [
            (X, MAP), (Y, MAP), (X, {**MAP, "Tp": 1}), (X[:, :15], MAP), (X, {"E_max": 2}), (X, {**MAP, "E_max": 3}),
        ]), fields("rho", "E"), pyedmcl.open_xmap, fills=True, resumes=True,
    ),
    "grid": Job(
        _of(pyedmcl.xmap_grid, "out", [
            (X, GRID), (Y, GRID), (X, {**GRID, "Tp": [1, 0]}), (X[:, :15], GRID), (X, {**GRID, "join": True}),
            (X, {**GRID, "exclusion_radius": 2}),
        ]), fields("rho"), pyedmcl.open_xmap_grid, fills=True, resumes=True,
    ),
    "ccm": Job(
        _of(pyedmcl.ccm_matrix, "out", [
            (X, CCM), (Y, CCM), (X, {**CCM, "seed": 2}), (X[:, :15], CCM), (X, {**CCM, "join": True}),
            (X, {**CCM, "lib_sizes": [12, 30]}),
        ]), lambda found: {f"size {size}": rho for size, rho in zip(found.lib_sizes, found.rho, strict=True)},
        pyedmcl.open_ccm_matrix, fills=True, resumes=True,
    ),
    "recurrence": Job(
        _of(pyedmcl.rqa, "checkpoint", [
            (LONG, BANDS), (OTHER, BANDS), (LONG, {**BANDS, "radius": 1.3}), (LONG[:600], BANDS),
            (LONG, {**BANDS, "part": "2/3"}),
        ]), fields("recurrence_rate", "determinism", "laminarity"),
    ),
    "significance": Job(
        _of(pyedmcl.xmap_significance, "out", [
            (X[:, :6], TESTS), (Y[:, :6], TESTS), (X[:, :6], {**TESTS, "seed": 2}), (X[:, :5], TESTS),
            (X[:, :6], {**TESTS, "join": True}),
        ]), fields("rho", "p_value"), pyedmcl.open_result,
    ),
    "network": Job(
        _of(pyedmcl.causal_network, "out", [
            (X[:, :4], NET), (Y[:, :4], NET), (X[:, :4], {**NET, "seed": 2}), (X[:, :3], NET),
            (X[:, :4], {**NET, "join": True}),
        ]), lambda found: {"table": found.to_frame().select_dtypes("number").to_numpy()}, pyedmcl.open_result,
    ),
}  # fmt: skip
N_QUESTIONS = {"map": 6, "grid": 6, "ccm": 6, "recurrence": 5, "significance": 5, "network": 5}


def stop_after(parts):
    """A reporter that interrupts a job once it has reported so often."""
    seen = []

    def stop(done, total, unit):
        seen.append(done)
        if len(seen) > parts and done < total:
            raise KeyboardInterrupt

    return stop
