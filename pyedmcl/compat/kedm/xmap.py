"""All-pairs cross mapping with kEDM's arguments and returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...edm.maps.xmap import xmap as cross_map
from ...errors import InputError
from .arguments import Floats, check_rows, embedding, numbers, whole_numbers


def xmap(dataset: Any, edims: Sequence[int], tau: int = 1, Tp: int = 0) -> Floats:
    """Cross map every series onto every other, with all rows as the library.

    Parameters
    ----------
    dataset : array_like (n, n_series)
    edims : sequence of int
        Embedding dimension of each series, which is that of its predictions: of the target.
    tau, Tp : int
        Lag of at least 1; steps between state and target, at least 0.

    Returns
    -------
    ndarray (n_series, n_series) of float32
        rho[i, j]: series i as library predicts series j.

    Raises
    ------
    InputError
        An argument cannot be used.
    """
    data = numbers(dataset, "dataset", "xmap")
    if data.ndim != 2:
        raise InputError(f"Expected a 2D array: xmap got shape {data.shape}")
    dims = whole_numbers(edims, "edims", "xmap")
    if len(dims) != data.shape[1]:
        raise InputError(
            "Number of time series must match the number of embedding dimensions: xmap got "
            f"{data.shape[1]} and {len(dims)}"
        )
    if not dims or min(dims) < 1:
        raise InputError(f"All embedding dimensions must be larger than zero: xmap got {dims}")
    most, tau, Tp = embedding(max(dims), tau, Tp, "xmap")
    check_rows(len(data), len(data), most, tau, Tp, most + 1)
    out: Floats = cross_map(data, E=dims, tau=tau, Tp=Tp).rho.astype(np.float32)
    return out
