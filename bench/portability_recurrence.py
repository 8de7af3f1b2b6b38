"""The calls of recurrence analysis among those of portability_calls.py."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from portability_place import Answers, Array, Place, judged

import pyedmcl
from pyedmcl.recurrence.counts import Counts
from pyedmcl.reference import recurrence
from pyedmcl.tuner.problems import problem


def _lines(place: Place, x: Array, exact: bool) -> Mapping[str, Any]:
    """Counts of a recurrence matrix by the oracle."""
    arithmetic = np.dtype("float64" if exact else place.dtype)
    points = recurrence.points_of(x, place.E, place.tau, arithmetic.name)
    limit = recurrence.NORMS["euclidean"].limit(arithmetic.type(place.matrix["radius"]))
    matrix = recurrence.recurrence_matrix(recurrence.compared(points, points, "euclidean"), limit, strict=True)
    return recurrence.line_counts(matrix, theiler=1)


def _counted(counts: Counts, expected: Mapping[str, Any], name: str = "") -> Answers:
    for field in fields(Counts):
        yield f"{field.name}{name}", np.asarray(getattr(counts, field.name)), np.asarray(expected[field.name])


def _quantified(place: Place, exact: bool) -> Answers:
    x = place.steps(12, place.rows(150))
    x[len(x) // 8] = np.nan
    result: Any = pyedmcl.rqa(x, exact=exact, **place.matrix)
    yield from _counted(result.counts, _lines(place, x, exact))


def rqa_rounded(place: Place) -> Answers:
    yield from _quantified(place, False)


def rqa_exact(place: Place) -> Answers:
    yield from _quantified(place, True)


def rqa_batch(place: Place) -> Answers:
    series = [place.steps(13 + i, place.rows(20 + 25 * i) - i) for i in range(3)]
    batch = pyedmcl.rqa_batch(series, exact=False, **place.matrix)
    for number, x in enumerate(series):
        yield from _counted(batch[number].counts, _lines(place, x, False), f", series {number}")


def _matrix(kernel: str, place: Place, *, points: int = 150, given: Mapping[str, Any]) -> Answers:
    own: Any = problem(kernel)
    points = 40 if place.tiny else points
    case = own.case(place.executor.info, points, m=place.E, dtype=place.dtype, **given)
    asked = own.rqa_problem(case, points)
    if kernel == "recurrence_image":
        small: Any = own.series(asked, points).astype(place.dtype), points, 17
    elif kernel == "recurrence_windows":
        asked, step, windows = own.rqa_problem(case, points // 3), 13, 3
        small = asked, own.series(asked, asked.n_rows + (windows - 1) * step), step, windows, windows
    else:
        small = asked, own.series(asked, points)
    yield from judged(own, place, case, [small])


def image(place: Place) -> Answers:
    for mode in ("count", "mean"):
        given = {"tau": place.tau, "mode": mode, "exact": False}
        yield from _matrix("recurrence_image", place, given=given)


def ranks(place: Place) -> Answers:
    yield from _matrix("recurrence_ranks", place, given={"step": place.tau})


def network(place: Place) -> Answers:
    yield from _matrix("recurrence_network", place, given={"step": place.tau})


def windows(place: Place) -> Answers:
    yield from _matrix("recurrence_windows", place, given={"step": place.tau})
