"""Which library rows a target's gaps rule out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def library_mask_of(target: NDArray[Any], Tp: int) -> NDArray[np.bool_] | None:
    """Library rows j (n,) whose ``target[j + Tp]`` is no gap; None if no target is a gap.

    Rows whose target lies outside the series are in the mask: the search leaves them out by itself.

    Parameters
    ----------
    target : ndarray (n,)
    Tp : int
    """
    n, missing = len(target), np.isnan(target)
    if not missing.any():
        return None
    mask = np.ones(n, bool)
    if Tp >= 0:
        mask[: max(n - Tp, 0)] = ~missing[Tp:]
    else:
        mask[-Tp:] = ~missing[: max(n + Tp, 0)]
    return mask
