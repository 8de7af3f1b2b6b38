"""The oracle of recurrence analysis by the options of the public functions."""

from __future__ import annotations

import numpy as np

from pyedmcl.recurrence.arguments import CONVENTIONS
from pyedmcl.recurrence.counts import Counts
from pyedmcl.reference.recurrence import NORMS, compared, line_counts, points_of, recurrence_matrix


def matrix(x, y=None, *, radius, m=1, tau=1, metric="euclidean", convention="pyrqa", dtype="float32", exact=True,
           threshold="fixed", theiler=1):  # fmt: skip
    """Recurrent cells (rows, columns), oriented as the convention wants it."""
    arithmetic = np.dtype("float64" if exact else dtype)
    points = points_of(x, m, tau, arithmetic, metric)
    others = points if y is None else points_of(y, m, tau, arithmetic, metric)
    rules = CONVENTIONS[convention]
    if y is not None and rules.columns == "x":
        points, others = others, points
    inner, outer = (None, radius) if threshold == "fixed" else radius

    def limit(value):
        return NORMS[metric].limit(arithmetic.type(value))

    d = compared(points, others, metric)
    return recurrence_matrix(d, limit(outer), inner=None if inner is None else limit(inner), strict=rules.strict)


def expected(x, y=None, *, joint=None, joint_options=None, **options):
    """Counts of the whole matrix."""
    rules = CONVENTIONS[options.get("convention", "pyrqa")]
    cells = matrix(x, y, **options)
    if joint is not None:
        cells &= matrix(joint, **joint_options)
    theiler = options.get("theiler", 1) if rules.has_theiler else 1
    return Counts(**line_counts(cells, theiler=theiler, theiler_everywhere=rules.theiler_everywhere))


def quantify(problem, x, y=None):
    """List of Counts, one per radius, as ``pyedmcl.recurrence.engine.quantify``; joint problems take pairs."""
    found = []
    for cells in _matrices(problem, x, y):
        assert cells.shape == (problem.n_rows, problem.n_columns)
        counts = line_counts(cells, theiler=problem.theiler, theiler_everywhere=problem.theiler_everywhere)
        found.append(Counts(**counts))
    return found


def _matrices(problem, x, y):
    if problem.joint is not None:
        x, x2 = x
        y, y2 = (None, None) if y is None else y
    points = points_of(x, problem.m, problem.tau, problem.arithmetic)
    others = points if y is None else points_of(y, problem.m, problem.tau, problem.arithmetic)
    d = compared(points, others, problem.metric)
    inner = problem.inner_limits()
    limits = problem.outer_limits() if problem.column_limits is None else [problem.column_limits[None, :]]
    inners = [None] * problem.n_radii if inner is None else inner
    cells = [recurrence_matrix(d, r, inner=q, strict=problem.strict) for r, q in zip(limits, inners, strict=True)]
    if problem.joint is None:
        return cells
    return [a & b for a, b in zip(cells, _matrices(problem.joint, x2, y2), strict=True)]
