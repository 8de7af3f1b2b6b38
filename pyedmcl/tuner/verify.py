"""Whether two answers are the same, and if not, where they differ."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .workload import Answer, WrongAnswerError

_SHOWN = 3


def require_equal(what: str, got: NDArray[Any], expected: NDArray[Any]) -> None:
    """Demand the same bits. NaN equals NaN; a zero equals a zero of either sign.

    Raises
    ------
    WrongAnswerError
        Naming the first places that differ.
    """
    _require_shape(what, got, expected)
    same = (got == expected) | ((got != got) & (expected != expected))
    _require(what, got, expected, same)


def require_close(what: str, got: NDArray[Any], expected: NDArray[Any], rtol: float, atol: float) -> None:
    """Demand values within ``atol + rtol * |expected|``, and gaps in the same places.

    Raises
    ------
    WrongAnswerError
        Naming the first places that differ.
    """
    _require_shape(what, got, expected)
    with np.errstate(invalid="ignore", over="ignore"):
        same = np.isclose(got.astype(np.float64), expected.astype(np.float64), rtol, atol, equal_nan=True)
    _require(what, got, expected, same)


def require_same(answer: Answer, expected: Answer, tolerance: tuple[float, float]) -> None:
    """Demand that one run's answer is another's: integers always to the last bit, floats within the tolerance.

    Raises
    ------
    WrongAnswerError
        Naming the first places that differ.
    """
    if set(answer) != set(expected):
        raise WrongAnswerError(f"the answer holds {sorted(answer)}, not {sorted(expected)}")
    for name, values in expected.items():
        got, wanted = np.asarray(answer[name]), np.asarray(values)
        if tolerance == (0.0, 0.0) or wanted.dtype.kind != "f":
            require_equal(name, got, wanted)
        else:
            require_close(name, got, wanted, *tolerance)


def _require_shape(what: str, got: NDArray[Any], expected: NDArray[Any]) -> None:
    if got.shape != expected.shape:
        raise WrongAnswerError(f"{what}: shape {got.shape} instead of {expected.shape}")


def _require(what: str, got: NDArray[Any], expected: NDArray[Any], same: NDArray[np.bool_]) -> None:
    if same.all():
        return
    places = np.argwhere(~np.atleast_1d(same))
    got, expected = np.atleast_1d(got), np.atleast_1d(expected)
    shown = "; ".join(
        f"[{', '.join(map(str, at))}] {got[tuple(at)]!r} instead of {expected[tuple(at)]!r}" for at in places[:_SHOWN]
    )
    raise WrongAnswerError(f"{what}: {len(places):,} of {same.size:,} values differ, {shown}")
