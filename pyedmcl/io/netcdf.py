"""NetCDF through xarray: read by whichever of its engines is installed (netCDF4, h5netcdf or SciPy)."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..data.unpack import Table, unpack
from ..errors import InputError
from ..files import output_path, writing
from .optional import need


def read_netcdf(path: Path, dataset: str | None, time_column: Any, what: str) -> Table:
    """Read a variable of a NetCDF file, such as a field (time, lat, lon); the only one, or that named ``dataset``."""
    xarray = need("xarray", "reading NetCDF")
    if time_column is not None:
        raise InputError(f"{what}: time_column= is not used with NetCDF, whose first dimension is the time")
    try:
        with xarray.open_dataset(path) as file:
            if dataset is not None and dataset not in file.data_vars:
                variables = ", ".join(map(str, file.data_vars))
                raise InputError(f"{what}: there is no variable {dataset!r}; there are: {variables}")
            data = (file if dataset is None else file[dataset]).load()
    except ValueError as error:  # of xarray, where no engine knows the file
        raise InputError(f"{what}: cannot be read as NetCDF ({error})") from error
    return replace(unpack(data, what), source=what)


def write_netcdf(made: Callable[[], Any], path: str | os.PathLike[str]) -> Path:
    """Write the array or dataset of xarray that ``made`` gives as NetCDF of version 4.

    Raises
    ------
    OutputError, StoreWriteError, MissingExtraError
        As for :meth:`pyedmcl.io.result.Result.write_netcdf`.
    """
    place = output_path(path, (".nc",), "NetCDF")
    need("h5netcdf", "writing NetCDF")
    array = made()
    names = getattr(array, "data_vars", ())
    # A slash in a name would make a group of the file.
    array = array.rename({name: str(name).replace("/", "|") for name in names if "/" in str(name)}) if names else array
    with writing(place, "the NetCDF file") as draft, tempfile.TemporaryDirectory() as folder:
        # xarray of 2023 writes to a path only.
        array.to_netcdf(Path(folder) / "result.nc", engine="h5netcdf")
        with open(Path(folder) / "result.nc", "rb") as file:
            shutil.copyfileobj(file, draft)
    return place
