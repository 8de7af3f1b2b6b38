"""Scaling and centring of data before they become float32: what the kernels may assume, and the way back.

Distances do not change under a shift and scale with a factor; rho changes with neither. A power of two is exact, so
scaling costs no bit; it keeps squares from overflowing and marks of gaps far away from data.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

GAP = 1e16  # as in clkernels/numeric.clh
_LARGEST, _SMALLEST = 1e13, 1e-6  # squares of E differences stay below FAR = 1e30 and gaps above it
_BLOCK = 1 << 22


@dataclass(frozen=True)
class Conditioned:
    """Series ready for a kernel.

    Attributes
    ----------
    values : ndarray (n_steps, n_series)
        ``(x - shift) * 2**-exponent``, of magnitude at most 1 if centred and at most 1e13 otherwise; :data:`GAP` where x is NaN.
    shift : ndarray (n_series,) of float64
    exponent : ndarray (n_series,) of int
    gaps : ndarray (n_series,) of bool
        Which series have any gap.
    """

    values: NDArray[np.floating]
    shift: NDArray[np.float64]
    exponent: NDArray[np.int_]
    gaps: NDArray[np.bool_]


def condition(values: NDArray[np.floating], dtype: str, *, centre: bool) -> Conditioned:
    """Take an offset away and scale by a power of two, as far as the purpose asks for it.

    Parameters
    ----------
    values : ndarray (n_steps, n_series), float32 or float64, NaN for gaps
    dtype : str
        What the kernel computes in.
    centre : bool
        True takes each series' mean away (targets: rho from sums needs it). False takes only an offset that is larger
        than twice the range away, and only where rounding to a shorter type would lose digits to it (libraries: the
        differences of float32 data are to be those of the data themselves).
    """
    n_steps, n_series = values.shape
    target = np.dtype(dtype)
    out = np.empty((n_steps, n_series), target)
    shift = np.zeros(n_series)
    exponent = np.zeros(n_series, int)
    gaps = np.zeros(n_series, bool)
    step = max(_BLOCK // max(n_steps, 1), 1)
    for a in range(0, n_series, step):
        block = values[:, a : a + step].astype(np.float64)
        missing = np.isnan(block)
        gaps[a : a + step] = missing.any(axis=0)
        if gaps[a : a + step].any():
            low = np.where(missing, np.inf, block).min(axis=0)
            high = np.where(missing, -np.inf, block).max(axis=0)
            none = missing.all(axis=0)
            low[none], high[none] = 0.0, 0.0
            mean = np.where(missing, 0.0, block).sum(axis=0) / np.maximum((~missing).sum(axis=0), 1)
        else:
            low, high, mean = block.min(axis=0), block.max(axis=0), block.mean(axis=0)
        if centre:
            # A constant series must become zero exactly, which its computed mean might not give.
            away = np.where(low == high, low, mean)
        else:
            shorter = target.itemsize < values.dtype.itemsize
            offset = np.maximum(np.abs(low), np.abs(high)) > 2 * (high - low)
            away = np.where(offset & shorter, low + (high - low) / 2, 0.0)
        block -= away
        reach = np.maximum(np.abs(low - away), np.abs(high - away))
        # Libraries of ordinary magnitude stay as they are, so that even differences that underflow are the data's own.
        scaled = (reach > 0) if centre else (reach > _LARGEST) | ((reach > 0) & (reach < _SMALLEST))
        power = np.where(scaled, np.frexp(np.where(scaled, reach, 1.0))[1], 0)
        block = np.ldexp(block, -power)
        if missing.any():
            block[missing] = GAP
        out[:, a : a + step] = block
        shift[a : a + step] = away
        exponent[a : a + step] = power
    return Conditioned(out, shift, exponent, gaps)
