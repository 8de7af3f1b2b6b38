"""The oracle of recurrence analysis behind the signature of ``pyedmcl.rqa.engine.quantify``."""

from __future__ import annotations

from pyedmcl.reference.rqa import compared, line_counts, points_of, recurrence_matrix
from pyedmcl.rqa.counts import Counts


def distances(problem, x, y=None):
    points = points_of(x, problem.m, problem.tau, problem.arithmetic)
    others = points if y is None else points_of(y, problem.m, problem.tau, problem.arithmetic)
    return compared(points, others, problem.metric)


def matrices(problem, x, y=None):
    """One recurrence matrix per radius; for a joint problem ``x`` (and ``y``) are pairs."""
    if problem.joint is not None:
        pairs = y if y is not None else (None, None)
        first = matrices(_alone(problem), x[0], pairs[0])
        return [a & b for a, b in zip(first, matrices(problem.joint, x[1], pairs[1]), strict=True)]
    d = distances(problem, x, y)
    inner = problem.inner_limits()
    limits = problem.outer_limits() if problem.column_limits is None else [problem.column_limits[None, :]]
    inners = [None] * problem.n_radii if inner is None else inner
    return [recurrence_matrix(d, r, inner=q, strict=problem.strict) for r, q in zip(limits, inners, strict=True)]


def _alone(problem):
    from dataclasses import replace

    return replace(problem, joint=None)


def quantify(executors, problem, x, y=None, *, tile=None, progress=None):
    """List of Counts, one per radius."""
    found = []
    for matrix in matrices(problem, x, y):
        assert matrix.shape == (problem.n_rows, problem.n_columns)
        counts = line_counts(matrix, theiler=problem.theiler, theiler_everywhere=problem.theiler_everywhere)
        found.append(Counts(**counts))
    return found
