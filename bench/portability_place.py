"""Where and with what a call of portability_calls.py is made, and how the answers of a tuning problem are judged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyedmcl.device.executor import Executor
from pyedmcl.reference import knn_float32_exact, knn_float64_exact
from pyedmcl.tuner.problem import TuningCase, TuningProblem

Array = NDArray[Any]
#: What was computed, by name, and what the oracle says.
Answers = Iterator[tuple[str, Any, Any]]

DIMS, LAGS, DTYPES = (1, 3, 10, 20), (1, 3), ("float32", "float64")


class NotThereError(Exception):
    """A kernel has no such E, tau or number type; the message says why."""


@dataclass(frozen=True)
class Place:
    """Where a call is made, and with what.

    Attributes
    ----------
    executor : Executor
    E, tau : int
    dtype : str
    tiny : bool
        For an interpreter: no more rows than there must be.
    """

    executor: Executor
    E: int
    tau: int
    dtype: str
    tiny: bool = False

    @property
    def common(self) -> dict[str, Any]:
        """What functions of the field are given."""
        return {"E": self.E, "tau": self.tau, "dtype": self.dtype, "device": self.executor.info.id}

    @property
    def matrix(self) -> dict[str, Any]:
        """What functions of recurrence analysis are given."""
        return {"m": self.E, "tau": self.tau, "dtype": self.dtype, "device": self.executor.info.id,
                "radius": 0.35 * self.E**0.5}  # fmt: skip

    @property
    def tolerance(self) -> float:
        """Of predictions and skill."""
        return 2e-5 if self.dtype == "float32" else 1e-9

    def rows(self, usual: int = 300, least: int = 0) -> int:
        """Steps of a series with ``usual`` states, or with the least that there must be."""
        return (self.E - 1) * self.tau + ((least or 2 * self.E + 26) if self.tiny else usual)

    def noise(self, seed: int, rows: int | None = None) -> Array:
        return np.random.default_rng(seed).standard_normal(rows or self.rows()).astype(self.dtype)

    def gappy(self, seed: int, rows: int | None = None) -> Array:
        x = self.noise(seed, rows)
        x[[len(x) // 8, len(x) // 8 + 2]] = np.nan
        return x

    def steps(self, seed: int, rows: int) -> Array:
        """Values with two decimals: many distances equal a radius but for their last bit."""
        return (np.round(np.random.default_rng(seed).random(rows) * 20) / 20).astype(self.dtype)

    def nearest(self, x: Array, **more: Any) -> tuple[Array, Array]:
        """Distances and rows of neighbours, by the oracle."""
        search = knn_float32_exact if self.dtype == "float32" else knn_float64_exact
        squared, rows = search(x, E=self.E, tau=self.tau, **more)
        return np.sqrt(squared), rows


def judged(own: TuningProblem, place: Place, case: TuningCase, smalls: Sequence[Any]) -> Answers:
    """Small problems of a kernel's own tuning problem, by its own oracle."""
    for number, small in enumerate(smalls):
        expected = own.expected(case, small)
        for name, got in own.computed(place.executor, case, small).items():
            yield f"{name}, problem {number}", got, expected[name]
