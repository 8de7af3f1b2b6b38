"""The distance metrics, a row each. Whatever depends on the metric is derived from this table.

The difference of two points in a coordinate gives a *term*, and the terms of all coordinates are *joined*, in ascending
order, to one number. That number is compared with a *limit*; no root is taken. Each step is rounded on its own.

To add a metric: a row here; the macros of the same name in ``clkernels/metric.clh`` (and ``tuning/rekey.py``, since
these belong to the text of kernels whose parameters stay good); its NumPy function among those of
``pyedmcl/reference/rqa.py``, which the tests compare with; its line in ``docs/recurrence.md``.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.arguments import shown
from ..errors import InputError

Floats = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Metric:
    """One metric.

    Attributes
    ----------
    name : str
        What users and ``clkernels/metric.clh`` call it.
    meaning : str
        The distance, in words.
    term : callable
        Difference in a coordinate -> its term, not negative.
    join : ufunc
        How terms become one number: ``np.add`` or ``np.maximum``.
    limit_of, radius_of : callable
        From a radius to what is compared, and back; for numbers and arrays of either precision.
    degree : int
        Where all coordinates are multiplied by c, what is compared is multiplied by ``c**degree``.
    spread : callable
        Number of coordinates n -> an upper bound of ``compared ** (1 / degree)`` of two points that are at most 1
        apart in each coordinate: how errors of coordinates add up.
    aliases : tuple of str
        What other packages call it, in small letters.
    prepare : callable or None
        Points (n, coordinates) in float64 -> the points that are compared instead; NaN where there is none, which
        counts as a gap.
    """

    name: str
    meaning: str
    term: Callable[[Any], Any]
    join: np.ufunc
    limit_of: Callable[[Any], Any]
    radius_of: Callable[[Any], Any]
    degree: int
    spread: Callable[[int], float]
    aliases: tuple[str, ...] = ()
    prepare: Callable[[NDArray[np.float64]], NDArray[np.float64]] | None = None

    def compared(self, differences: Iterable[Floats]) -> Floats:
        """What is compared with a limit, given the differences in each coordinate; the bits that kernels find."""
        with np.errstate(over="ignore", under="ignore"):
            joined: Floats = functools.reduce(self.join, map(self.term, differences))
        return joined

    def __reduce__(self) -> tuple[Any, ...]:
        return metric_named, (self.name,)  # its functions do not travel to another process


def _same(value: Any) -> Any:
    return value


def _directions(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points divided by their length; NaN where that is 0."""
    largest = np.abs(points).max(axis=1, keepdims=True)
    with np.errstate(over="ignore", invalid="ignore"):  # of gaps
        near_one = np.ldexp(points, -np.frexp(largest)[1])  # squares neither overflow nor vanish
        squares = functools.reduce(np.add, (column * column for column in near_one.T))
        directions: NDArray[np.float64] = near_one / np.sqrt(squares)[:, None]
    return directions


_ROWS = (
    Metric(
        name="euclidean", meaning="root of the sum of squares",
        term=lambda difference: difference * difference, join=np.add,
        limit_of=lambda radius: radius * radius, radius_of=np.sqrt, degree=2, spread=math.sqrt,
        aliases=("l2", "euclideanmetric", "euclidean norm"),
    ),
    Metric(
        name="maximum", meaning="largest magnitude",
        term=np.abs, join=np.maximum,
        limit_of=_same, radius_of=_same, degree=1, spread=lambda n: 1.0,
        aliases=("chebyshev", "linf", "inf", "maximummetric", "supremum", "maxnorm", "maximum norm", "max", "sup"),
    ),
    Metric(
        name="manhattan", meaning="sum of magnitudes",
        term=np.abs, join=np.add,
        limit_of=_same, radius_of=_same, degree=1, spread=float,
        aliases=("cityblock", "taxicab", "l1", "taxicabmetric"),
    ),
    Metric(
        name="cosine", meaning="1 - cosine of the angle between the points",
        term=lambda difference: difference * difference, join=np.add,
        limit_of=lambda radius: 2 * radius, radius_of=lambda limit: limit / 2, degree=2, spread=math.sqrt,
        aliases=("cosinedist",), prepare=_directions,
    ),
)  # fmt: skip
METRICS = {metric.name: metric for metric in _ROWS}


def metric_named(value: object, argument: str = "metric") -> Metric:
    """The row called ``value``.

    Raises
    ------
    InputError
        For any other name; those there are, are listed.
    """
    if isinstance(value, str) and value in METRICS:
        return METRICS[value]
    same = [m.name for m in _ROWS if isinstance(value, str) and value.lower() in m.aliases]
    hint = f", which is called {same[0]!r} here" if same else ""
    raise InputError(f"{argument}={shown(value)}{hint}: choose one of {', '.join(map(repr, METRICS))}")
