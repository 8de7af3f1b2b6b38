"""Which library rows a target's gaps rule out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..codegen.sentinels import GAP_SQUARED


def penalty_of(target: NDArray[Any], Tp: int, dtype: str) -> NDArray[Any] | None:
    """0 for library rows j whose ``target[j + Tp]`` can be used, a huge distance for the others; None if all can.

    Parameters
    ----------
    target : ndarray (n,)
    Tp : int
    dtype : str

    Returns
    -------
    ndarray (n + 32,) or None
        Padded, since a kernel reads rows in steps. Rows whose target lies outside the series are the search's affair.
    """
    n = len(target)
    bad = np.zeros(n + 32, bool)
    missing = np.isnan(target)
    if not missing.any():
        return None
    if Tp >= 0:
        bad[: max(n - Tp, 0)] = missing[Tp:]
    else:
        bad[-Tp:n] = missing[: n + Tp]
    return np.where(bad, GAP_SQUARED, 0.0).astype(dtype)
