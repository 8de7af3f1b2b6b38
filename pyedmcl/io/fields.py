"""Results over series, or over the cells of a field, as labelled arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.grid import Grid
from .optional import need


def dataset_of(frame: Any, dimension: str = "") -> Any:
    """An ``xarray.Dataset`` of the columns of a table.

    Parameters
    ----------
    frame : pandas.DataFrame
    dimension : str
        The column whose values label the rows, where it is there and none comes twice; else the index, or "row".

    Raises
    ------
    MissingExtraError
        xarray is not installed.
    """
    dataset = need("xarray", "to_xarray()").Dataset
    if dimension in frame and frame[dimension].is_unique:
        frame = frame.set_index(dimension)
    elif not frame.index.is_unique:
        frame = frame.reset_index()
    if frame.index.nlevels > 1 or frame.index.dtype == object:  # of pairs, such as the radii of corridors
        frame.index = frame.index.map(str).rename(frame.index.name)
    mixed = [name for name in frame if frame[name].dtype == object]
    frame = frame.assign(**{name: frame[name].map(str) for name in mixed})
    return dataset.from_dataframe(frame.rename_axis(index=frame.index.name or "row"))


def labelled(values: NDArray[Any], axes: Sequence[tuple[str, Any]], name: str) -> Any:
    """An ``xarray.DataArray``.

    Parameters
    ----------
    values : ndarray
    axes : sequence of (str, sequence or Grid)
        Name and labels of each axis. A grid stands for its own dimensions, which bear the name of the axis before
        theirs where two axes have dimensions of one name.
    name : str

    Raises
    ------
    MissingExtraError
        xarray is not installed.
    """
    xarray = need("xarray", "to_xarray()")
    all_dims = [dim for _, labels in axes if isinstance(labels, Grid) for dim in labels.dims]
    twice = len(set(all_dims)) < len(all_dims)
    dims: list[str] = []
    coords: dict[str, Any] = {}
    out = np.asarray(values)
    for axis, labels in axes:
        if not isinstance(labels, Grid):
            coords[axis] = list(labels) if isinstance(labels, tuple) else labels
            dims.append(axis)
            continue
        named = [f"{axis}_{dim}" if twice else dim for dim in labels.dims]
        out = labels.spread(out, len(dims))
        coords |= {new: labels.coords[dim] for new, dim in zip(named, labels.dims, strict=True) if dim in labels.coords}
        dims += named
    return xarray.DataArray(out, dims=dims, coords=coords, name=name)
