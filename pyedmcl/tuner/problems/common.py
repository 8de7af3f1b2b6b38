"""What several tuning problems share: series to run on, ragged problems, and sizes that suit a device."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...device.info import DeviceInfo
from ...device.quirks import quirks_for
from ...reference import knn_float32_exact, knn_float64_exact

Floats = NDArray[np.floating[Any]]


@functools.lru_cache(maxsize=16)
def maps(n_steps: int, n_series: int, dtype: str = "float32", seed: int = 1) -> Floats:
    """Noisy logistic maps (n_steps, n_series): chaotic, and the same on every machine. Not to be written to."""
    rng = np.random.default_rng(seed)
    growth = rng.uniform(3.65, 3.85, n_series)
    x = rng.uniform(0.2, 0.8, n_series)
    noise = rng.normal(0.0, 0.01, (n_steps + 50, n_series))
    out = np.empty((n_steps + 50, n_series))
    for t in range(len(out)):
        x = np.clip(x * (growth * (1.0 - x)) + noise[t], 1e-3, 1.0 - 1e-3)
        out[t] = x
    values = out[50:].astype(dtype)
    values.flags.writeable = False
    return values


@functools.lru_cache(maxsize=8)
def flow(n_steps: int, dtype: str = "float32", noise: float = 0.02) -> Floats:
    """x of Lorenz' system (1963) in steps of 0.01 with some noise (n_steps,): smooth, as the pruned search needs it.

    Pieces of 2,048 steps begin at places of their own, so that they can be made side by side. The same on every machine
    but for the last digits. Not to be written to.
    """
    rng, piece, dt = np.random.default_rng(5), 2048, 0.01
    state = rng.uniform(-10.0, 10.0, (3, -(-n_steps // piece))) + np.array([[0.0], [0.0], [25.0]])

    def slope(s: NDArray[np.float64]) -> NDArray[np.float64]:
        x, y, z = s
        return np.stack([10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z])

    out = np.empty((piece, state.shape[1]))
    for step in range(-500, piece):  # Runge & Kutta's fourth-order steps
        a = slope(state)
        b = slope(state + dt / 2 * a)
        c = slope(state + dt / 2 * b)
        d = slope(state + dt * c)
        state = state + dt / 6 * (a + 2 * b + 2 * c + d)
        if step >= 0:
            out[step] = state[0]
    x = out.T.reshape(-1)[:n_steps]
    values: Floats = (x + noise * x.std() * rng.standard_normal(n_steps)).astype(dtype)
    values.flags.writeable = False
    return values


def units(info: DeviceInfo, vector: int, scalar: int, most: int = 4096) -> int:
    """``vector`` or ``scalar`` things per compute unit, at least one and at most ``most``: enough for a while.

    ``vector`` where a work-item fills SIMD registers, ``scalar`` where thousands of scalar work-items run at once.
    """
    per = scalar if quirks_for(info).scalar_work_items else vector
    return max(min(max(info.compute_units, 1) * per, most), 1)


def scalar(info: DeviceInfo) -> bool:
    """Whether the device wants the problems of one with scalar work-items, thousands at once, as GPUs do."""
    return quirks_for(info).scalar_work_items


def exact_knn(dtype: str) -> Any:
    """The oracle of neighbours in these numbers."""
    return knn_float32_exact if dtype == "float32" else knn_float64_exact


@contextlib.contextmanager
def releasing(*held: Any) -> Iterator[None]:
    """Release all that is not None, the last first, at the end of the block."""
    with contextlib.ExitStack() as stack:
        for item in held:
            if item is not None:
                stack.callback(item.release)
        yield


@dataclass(frozen=True)
class SmallSearch:
    """A search, mostly of sizes that fit no work-group, leaf or node.

    Attributes
    ----------
    library : ndarray (n_library,) or (n_library, n_series)
        Of several series the gaps are at the same places.
    query : ndarray or None
        Other series, for a cross search.
    Tp, radius : int
        Steps ahead that a neighbour must exist, and the exclusion radius.
    library_mask, query_mask : ndarray of bool or None
        Rows that may be neighbours, and those that are asked for.
    shown : int
        Rows of an answer; 0 for all.
    """

    library: Floats
    query: Floats | None = None
    Tp: int = 0
    radius: int = 0
    library_mask: NDArray[np.bool_] | None = None
    query_mask: NDArray[np.bool_] | None = None
    shown: int = 0

    @property
    def asked(self) -> Floats:
        """The series that asks."""
        return self.library if self.query is None else self.query


def ragged(front: int, dtype: str) -> Iterator[SmallSearch]:
    """Searches in two series that are longer than ``front``, the steps that the oldest lag reaches back."""
    rng = np.random.default_rng(7)
    yield SmallSearch(rng.standard_normal((front + 47, 2)).astype(dtype))
    gappy = rng.standard_normal((front + 259, 2)).astype(dtype)
    gappy[[front + 5, front + 90, front + 91, front + 92]] = np.nan
    yield SmallSearch(gappy, None, 1, 3)
    # Equal values by the dozen: ties go to the smaller row.
    ties = rng.integers(0, 4, (front + 131, 2)).astype(dtype)
    yield SmallSearch(ties, rng.integers(0, 4, (front + 77, 2)).astype(dtype), -2, -1)
