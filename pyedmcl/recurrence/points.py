"""The points that series make, of numbers or of categories."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arguments import MOST_STEPS, several
from ..errors import InputError, shown
from ..series.scaling import exponent_of, largest
from ..series.series import Series, as_series, tell_scales, tell_state
from .arguments import Metric, metric_named, normalized

# Words, factors and other categories as codes, of which two are equal or at least 1 apart.


def coded(
    radius: Any, threshold: Any, *series: Any, metric: Any, normalize: Any, radius_unit: Any
) -> tuple[Any, ...]:
    """Series of words as codes 0, 1, ..., the same word having the same code in all; others as they are.

    Lists and mappings of such series count, too. What is missing (None, NaN) is a gap.

    Parameters
    ----------
    radius : float or sequence
        Of words it must be below 1: they are equal or not.
    threshold : str
        What it holds; only "fixed" has a radius. Others are looked at where they are used.
    metric, normalize, radius_unit
        With words refused if they do not leave different codes at least 1 apart.
    """
    codes: dict[str, int] = {}
    made = tuple(_coded(one, codes) for one in series)
    if codes:
        scaled = {"normalize": (normalize, None), "radius_unit": (radius_unit, "data")}
        said = next((f"{name}={shown(value)}" for name, (value, none) in scaled.items() if value != none), "")
        if threshold == "corridor":
            raise InputError("threshold='corridor': words are equal or not; give threshold='fixed' and radius=0.5")
        if said or metric_named(metric).prepare is not None:
            raise InputError(
                f"{said or f'metric={shown(metric)}'}: words are equal or not, and have no "
                f"{'scale' if said else 'direction'}; leave it out"
            )
    fixed = isinstance(threshold, str) and threshold == "fixed"
    if codes and fixed and np.ndim(radius) <= 1 and np.size(radius) and not (np.asarray(radius) < 1).all():
        raise InputError(f"radius={shown(radius)}: words are equal or not; give radius=0.5, which finds equal ones")
    return made


def _coded(data: Any, codes: dict[str, int]) -> Any:
    if isinstance(data, Series) and data.categories:
        values = np.array(data.values)
        for name, words in data.categories.items():
            column = values[:, data.names.index(name)]
            present = ~np.isnan(column)
            places = [codes.setdefault(word, len(codes)) for word in words]
            column[present] = np.array(places, values.dtype)[column[present].astype(int)]
        return replace(data, values=values, categories=None)
    if isinstance(data, Mapping):
        worded = any(map(_are_words, data.values()))
        return {name: _coded(one, codes) for name, one in data.items()} if worded else data
    if _are_words(data):
        numbers = (np.nan if _missing(word) else codes.setdefault(str(word), len(codes)) for word in data)
        return np.array(list(numbers), np.float64)
    if isinstance(data, (list, tuple)) and any(map(_are_words, data)):
        return [_coded(one, codes) for one in data]
    return data


def _are_words(data: Any) -> bool:
    """Whether a series (n,) holds texts that are no numbers."""
    if isinstance(data, Series):
        return bool(data.categories)
    kind = getattr(getattr(data, "dtype", None), "kind", "" if isinstance(data, Sequence) else "f")
    if isinstance(data, (str, bytes)) or kind not in ("", "O", "U", "T") or getattr(data, "ndim", 1) != 1:
        return False
    if not isinstance(next((word for word in data if not _missing(word)), None), str):
        return False
    words = [word for word in data if not _missing(word)]
    return all(isinstance(word, str) for word in words) and not all(map(_is_number, words))


def _missing(word: Any) -> bool:
    return word is None or (isinstance(word, float) and word != word) or type(word).__name__ == "NAType"


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


#: Binary exponents of the largest value for which no power of two is needed.
NEAR_ONE = {"float32": (-20, 43), "float64": (-100, 100)}


@dataclass(frozen=True)
class Embedding:
    """How values become points, and what is near; checked.

    Attributes
    ----------
    m, tau : int
    embedded : bool
        The values are points already.
    metric : Metric
    normalize : str or None
        How columns are brought to a common scale first.
    suffix : str
        Of the names of the arguments that said so.
    state : tuple or None
        Columns of a table that together are one state; None for all.
    """

    m: int
    tau: int
    embedded: bool
    metric: Metric
    suffix: str = ""
    normalize: str | None = None
    state: tuple[Any, ...] | None = None

    @property
    def described(self) -> dict[str, Any]:
        """For provenance."""
        return {"m": self.m, "tau": self.tau, "metric": self.metric.name, "normalize": self.normalize}


def embedding_of(
    *, m: Any, tau: Any, embedded: Any, metric: Any, normalize: Any = None, suffix: str = "", state: Any = None
) -> Embedding:
    """The checked embedding; an InputError names the argument and says what it may be."""
    return Embedding(
        m, tau, embedded, metric_named(metric, f"metric{suffix}"), suffix, normalize,
        None if state is None else tuple(several("state", state)),
    )


@dataclass(frozen=True, eq=False)
class Points:
    """Points of one side of a matrix."""

    # A series (n,) to be embedded with ``m`` and ``tau``, or points (n, features).
    values: NDArray[Any]
    # m, tau: 1 and 1 where the values are points.
    m: int
    tau: int
    # The values are points: given as such, or embedded or prepared here.
    embedded: bool
    # Coordinates of a point.
    coordinates: int
    # Points without a gap; their number is that of the points.
    complete: NDArray[np.bool_]
    # As it was asked for.
    embedding: Embedding
    # ndarray (n_steps, n_series). The series before they were embedded, normalised if that was asked for.
    given: NDArray[Any]
    # The values are those of the data times ``2**-exponent``.
    exponent: int = 0

    @property
    def n(self) -> int:
        """Number of points."""
        return len(self.complete)

    @property
    def n_features(self) -> int:
        """Coordinates of a given point; 1 for a series."""
        return self.coordinates if self.embedded else 1


def points_of(data: Any, what: str, embedding: Embedding) -> Points:
    """Validate ``data`` and say what its points are.

    Parameters
    ----------
    data : array_like (n,) or (n, d)
        One series; or d series, whose values at one time are coordinates of one state and are delayed together; or,
        if ``embedded``, n points of d coordinates. NaN marks gaps.
    what : str
        The argument's name.
    """
    m, tau, suffix = embedding.m, embedding.tau, embedding.suffix
    if embedding.embedded and m > 1:
        raise InputError(f"m={m} contradicts embedded=True: {what} holds points already; leave m and tau out")
    table = what == "x" or isinstance(data, Mapping) or hasattr(data, "columns")
    series = as_series(data, what=what, columns=embedding.state if table else None, argument="state")
    if not embedding.embedded and embedding.state is None:
        tell_state(data, series, what)
    if embedding.normalize is None and embedding.metric.prepare is None:
        tell_scales(series, what)
    values = series.values
    if embedding.normalize is not None:
        values = np.ascontiguousarray(normalized(np.ascontiguousarray(values.T), embedding.normalize).T)
    given = values
    first = (m - 1) * tau
    if series.n_steps < first + 2:
        raise InputError(
            f"{what}: m{suffix}={m}, tau{suffix}={tau} needs at least {first + 2} values to give two points, "
            f"there are {series.n_steps}; use a smaller m{suffix} or tau{suffix}, or a longer series"
        )
    if series.n_steps > MOST_STEPS:
        raise InputError(f"{what}: {series.n_steps:,} steps; at most {MOST_STEPS:,} are supported")
    n = series.n_steps - first
    present: NDArray[np.bool_] = np.logical_not(np.isnan(values).any(axis=1))
    complete = present[:n].copy()
    for e in range(1, m):
        complete &= present[e * tau : e * tau + n]
    prepare = embedding.metric.prepare
    if series.n_series == 1 and prepare is None:
        return Points(np.ascontiguousarray(values[:, 0]), m, tau, False, m, complete, embedding, given)
    if m > 1:  # lag by lag, all series of a time together
        values = np.concatenate([values[e * tau : e * tau + n] for e in range(m)], axis=1)
    if prepare is not None:
        values = prepare(values.astype(np.float64))
        complete &= np.logical_not(np.isnan(values).any(axis=1))
    return Points(np.ascontiguousarray(values), 1, 1, True, values.shape[1], complete, embedding, given)


def near_one(arithmetic: str, *sides: Points) -> tuple[Points, ...]:
    """Both sides of a matrix with values whose squares are numbers of ``arithmetic``: where they are not, all are
    multiplied by one power of two, which rounds nothing."""
    different = list({id(side): side for side in sides}.values())
    exponent = exponent_of(max(largest(side.values) for side in different))
    least, most = NEAR_ONE[arithmetic]
    if least <= exponent <= most:
        return sides
    scaled = {
        id(side): replace(side, values=np.ldexp(side.values, -exponent), exponent=exponent) for side in different
    }
    return tuple(scaled[id(side)] for side in sides)


def same_coordinates(x: Points, y: Points) -> None:
    """Refuse two sides whose points have different numbers of coordinates."""
    if x.coordinates != y.coordinates:
        raise InputError(
            f"y: its points have {y.coordinates} coordinates and those of x have {x.coordinates}; cross recurrence "
            "needs the same m for both"
        )
