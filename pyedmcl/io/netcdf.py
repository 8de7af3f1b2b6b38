"""NetCDF, through xarray and whichever of its engines is installed (netCDF4, h5netcdf or SciPy)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..data.series import Series, as_series
from ..errors import InputError
from .optional import need


def read_netcdf(
    path: Path, dataset: str | None, columns: Sequence[str | int] | None, time_column: str | int | None, what: str
) -> Series:
    """Read a variable of a NetCDF file, such as a field (time, lat, lon); the only one, or that named ``dataset``."""
    xarray = need("xarray", "reading NetCDF")
    if time_column is not None:
        raise InputError(f"{what}: time_column= is not used with NetCDF, whose first dimension is the time")
    try:
        with xarray.open_dataset(path) as file:
            if dataset is not None and dataset not in file.data_vars:
                there = ", ".join(map(str, file.data_vars))
                raise InputError(f"{what}: there is no variable {dataset!r}; there are: {there}")
            data = (file if dataset is None else file[dataset]).load()
    except ValueError as error:  # of xarray, where no engine knows the file
        raise InputError(f"{what}: cannot be read as NetCDF ({error})") from error
    return as_series(data, columns=columns, what=what)
