"""Whether two answers are the same, and if not, where they differ."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_SHOWN = 3


class WrongAnswerError(Exception):
    """A configuration gave another answer than the oracle; the message says where."""


@dataclass(frozen=True)
class Close:
    """Floats that an answer may miss by ``atol + rtol * |value|``; ``atol`` may be an array for all of them."""

    values: NDArray[Any]
    rtol: float
    atol: float | NDArray[Any] = 0.0


def require(what: str, answer: NDArray[Any], expected: NDArray[Any] | Close) -> None:
    """Demand the same bits, or floats within a tolerance and gaps in the same places.

    NaN equals NaN, and a zero equals a zero of either sign.

    Raises
    ------
    WrongAnswerError
        Naming the first places that differ.
    """
    got, right = np.asarray(answer), np.asarray(expected.values if isinstance(expected, Close) else expected)
    if got.shape != right.shape:
        raise WrongAnswerError(f"{what}: shape {got.shape} instead of {right.shape}")
    if isinstance(expected, Close):
        with np.errstate(invalid="ignore", over="ignore"):
            same = np.isclose(got.astype(np.float64), right.astype(np.float64), expected.rtol, expected.atol,
                              equal_nan=True)  # fmt: skip
    else:
        same = (got == right) | ((got != got) & (right != right))
    if same.all():
        return
    places = np.argwhere(~np.atleast_1d(same))
    got, right = np.atleast_1d(got), np.atleast_1d(right)
    shown = "; ".join(
        f"[{', '.join(map(str, at))}] {got[tuple(at)]!r} instead of {right[tuple(at)]!r}" for at in places[:_SHOWN]
    )
    raise WrongAnswerError(f"{what}: {len(places):,} of {same.size:,} values differ, {shown}")


def require_same(
    answer: Mapping[str, NDArray[Any]], expected: Mapping[str, NDArray[Any]], tolerance: tuple[float, float]
) -> None:
    """Demand that one run's answer is another's: integers always to the last bit, floats within the tolerance.

    Raises
    ------
    WrongAnswerError
        Naming the first places that differ.
    """
    if set(answer) != set(expected):
        raise WrongAnswerError(f"the answer holds {sorted(answer)}, not {sorted(expected)}")
    for name, values in expected.items():
        exact = tolerance == (0.0, 0.0) or np.asarray(values).dtype.kind != "f"
        require(name, answer[name], values if exact else Close(values, *tolerance))
