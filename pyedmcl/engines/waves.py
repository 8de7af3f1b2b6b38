"""Surrogates with random phases, drawn on the device as targets of a lookup: see ``templates/waves.cl.mako``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.build import build
from ..device.memory import budget
from ..kernels import spec
from ..kernels.waves import EDGE, VALUES, WG
from ..launch.pool import Pool
from ..launch.sizes import open_size, round_up

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor

Doubles = NDArray[np.float64]
Amplitudes = NDArray[np.complex128]
_AMPLITUDES_BYTES = 256 << 20  # at a time
# What sums of the device and of the host may differ by, in roundings of the standard deviation: the root of the mean
# square of what they differ by is 0.3 times the root of the steps (white, red and periodic series of 997 to 8,192).
_ROUNDINGS, _ROUNDINGS_BESIDE = 4, 16


@dataclass(frozen=True)
class WaveSeries:
    """What the surrogates of a series are made of, and how the device reads them.

    Attributes
    ----------
    values : ndarray (n_steps,)
        The series itself as the device reads it.
    spectrum : ndarray (n_steps // 2 + 1,)
        Magnitudes of the transform of what is drawn.
    mean : float
        What is added to each surrogate.
    base : ndarray (n_steps,) or None
        What is added to each step then, NaN in gaps.
    shift, exponent : float, int
        Of the layout: see :func:`.lagged_targets.laid_out`.
    keys : ndarray of uint64 (n_groups, 2)
        Of the random streams of its surrogates.
    """

    values: NDArray[np.float32]
    spectrum: Doubles
    mean: float
    base: Doubles | None
    shift: float
    exponent: int
    keys: NDArray[np.uint64]

    @property
    def numbers(self) -> list[float]:
        """Those of ``of_series`` in the kernel."""
        n = len(self.values)
        deviation = math.sqrt(2 * float(self.spectrum @ self.spectrum)) / n
        beside = abs(self.mean) + (0.0 if self.base is None else float(np.nanmax(np.abs(self.base), initial=0.0)))
        roundings = _ROUNDINGS * math.sqrt(n) * deviation + _ROUNDINGS_BESIDE * (deviation + beside)
        factor = 2.0**-self.exponent
        return [self.mean, self.shift, factor, roundings * np.finfo(np.float64).eps / 2 * factor, self.base is not None]


class WaveDrawer:
    """Draws surrogates into targets that lie on a device.

    Parameters
    ----------
    executor : Executor
    n_steps : int
    turns : ndarray of complex128 (65536,)
        The phases that there are.
    """

    def __init__(self, executor: Executor, n_steps: int, turns: NDArray[np.complex128]) -> None:
        self.executor, self.n_steps = executor, n_steps
        self._pool = Pool(executor, "waves", n_steps)
        self._turns = turns

    def draw(
        self, several: Sequence[WaveSeries], first: int, n: int, targets: Buffer, rows: int, stride: int,
        back: Callable[[int, Amplitudes], NDArray[np.float32]],
    ) -> None:  # fmt: skip
        """Put each series, followed by its surrogates ``first`` to ``first + n - 1``, into columns of targets.

        Parameters
        ----------
        several : sequence of WaveSeries
        first, n : int
        targets : Buffer
            float32 [rows][stride].
        rows, stride : int
            There are zeros behind the last step and the last column.
        back : callable
            Of the place of a series among these, and amplitudes (m, n_steps // 2 + 1) of some of its surrogates: those
            (m, n_steps) as the device reads them. It is asked where rounding could decide about a bit.
        """
        pool, total, steps = self._pool, len(several) * n, self.n_steps
        columns = np.arange(len(several)) * (n + 1)
        self._launch(
            "wave_border", open_size(stride, rows), None, width=total + len(several), target_stride=stride,
            targets=targets,
        )  # fmt: skip
        self._place(np.stack([one.values for one in several]), columns, targets, stride)
        frequencies = steps // 2
        room = min(_AMPLITUDES_BYTES, budget(self.executor.info).total // 8)
        most = max(room // (16 * frequencies) // EDGE, 1) * EDGE
        held = {
            "keys": pool.put("keys", np.stack([one.keys for one in several])),
            "turns": pool.constant("turns", self._turns.view(np.float64)),
            "spectra": pool.put("spectra", np.stack([one.spectrum for one in several])),
        }
        summed = {
            "roots": pool.constant("roots", np.exp(2j * np.pi * np.arange(steps) / steps).view(np.float64)),
            "of_series": pool.put("of_series", np.array([one.numbers for one in several])),
            "bases": pool.put("bases", _stacked([one.base for one in several], steps)),
        }
        for begin in range(0, total, most):
            end = min(begin + most, total)
            padded = round_up(end - begin, EDGE)
            marked = pool.put("marked", np.zeros(padded, np.int32))
            amplitudes = pool.get("amplitudes", 16 * frequencies * padded)
            part = {"begin": begin, "end": end, "each": n, "stride": padded, "amplitudes": amplitudes}
            self._launch(
                "wave_turns", open_size(padded, frequencies), None, **held, **part, n_groups=len(several[0].keys),
                first=first,
            )  # fmt: skip
            self._launch(
                "wave_sums", (padded // EDGE * WG, frequencies // EDGE + 1), (WG, 1), **summed, **part, marked=marked,
                target_stride=stride, targets=targets,
            )  # fmt: skip
            which = np.flatnonzero(self.executor.download(marked, np.empty(padded, np.int32)))
            if len(which):
                series = (begin + which) // n
                picked = self._picked(which, padded, amplitudes)
                again = [back(j, picked[series == j]) for j in np.unique(series).tolist()]
                self._place(np.concatenate(again), begin + which + series + 1, targets, stride)

    def _picked(self, which: NDArray[np.int_], stride: int, amplitudes: Buffer) -> Amplitudes:
        """Amplitudes of some draws of a launch."""
        out = np.empty((len(which), self.n_steps // 2 + 1), np.complex128)
        draws, picked = self._pool.put("draws", which.astype(np.int32)), self._pool.get("picked", out.nbytes)
        self._launch(
            "wave_pick", open_size(out.shape[1], len(which)), None, amplitudes=amplitudes, draws=draws, stride=stride,
            picked=picked,
        )  # fmt: skip
        self.executor.download(picked, out.view(np.float64))
        return out

    def _place(
        self, series: NDArray[np.float32], columns: NDArray[np.int_], targets: Buffer, stride: int
    ) -> None:  # fmt: skip
        """Put series (n, n_steps) into columns of targets."""
        self._launch(
            "wave_place", open_size(self.n_steps, len(columns)), None, series=self._pool.put("series", series),
            columns=self._pool.put("columns", columns.astype(np.int32)), target_stride=stride, targets=targets,
        )  # fmt: skip

    def _launch(self, entry: str, size: tuple[int, ...], group: tuple[int, ...] | None, /, **arguments: Any) -> None:
        kernel = build(self.executor, spec("waves"), VALUES, entry)
        self.executor.launch(kernel, size, group, n_steps=self.n_steps, **arguments)

    def release(self) -> None:
        """Give the device memory back."""
        self._pool.release()


def _stacked(bases: Sequence[Doubles | None], n_steps: int) -> Doubles:
    """What is added to each step of each series; a number that nobody reads where there is no such series."""
    if all(base is None for base in bases):
        return np.zeros(1)
    return np.stack([np.zeros(n_steps) if base is None else base for base in bases])
