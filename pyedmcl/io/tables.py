"""Parquet and Feather through pyarrow, and sheets of Excel through pandas."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..data.unpack import Table, unpack
from ..errors import InputError, MissingExtraError
from .optional import need


def read_arrow(path: Path, what: str) -> Table:
    """Read a Parquet or Feather file; the index of a pandas frame stored in it becomes the time."""
    feather = path.suffix.lower() == ".feather"
    reader = need("pyarrow.feather" if feather else "pyarrow.parquet", f"reading {'Feather' if feather else 'Parquet'}")
    try:
        table = reader.read_table(path)
    except (OSError, ValueError) as error:  # pyarrow's own errors derive from these
        raise InputError(f"{what}: cannot be read as {'Feather' if feather else 'Parquet'} ({error})") from error
    labels = list(table.column_names)
    stored = (table.schema.pandas_metadata or {}).get("index_columns", [])
    if len(stored) == 1 and isinstance(stored[0], str) and stored[0] in labels:
        index = labels.index(stored[0])
        time = np.asarray(table.column(index).to_numpy(zero_copy_only=False))
        opened = unpack(table.drop_columns([stored[0]]), what)
        return replace(opened, time=time, source=what)
    return replace(unpack(table, what), source=what)


def read_spreadsheet(path: Path, sheet: str | None, time_column: Any, what: str) -> Table:
    """Read a sheet of an Excel file by name, else the first one, as cells.

    Raises
    ------
    MissingExtraError
        pandas, or its engine for this kind of file, is not installed.
    """
    pandas = need("pandas", "reading Excel files")
    try:
        cells = pandas.read_excel(path, sheet_name=0 if sheet is None else sheet, dtype=object)
    except ImportError as error:
        engine = next((word for word in str(error).replace("'", " ").split() if word in _ENGINES), "openpyxl")
        raise MissingExtraError(
            f"reading {path.suffix} files needs the package {engine!r}: pip install {engine}; or save the sheet as CSV"
        ) from error
    except ValueError as error:  # of pandas, about the file or the sheet
        raise InputError(f"{what}: cannot be read as a spreadsheet ({error})") from error
    typed = cells.infer_objects()
    unnamed = frozenset(i for i, name in enumerate(typed.columns) if str(name).startswith("Unnamed: "))
    return replace(unpack(typed, what), source=what, nameless=unnamed, where=lambda row: f"row {row + 2} of the sheet")


_ENGINES = ("openpyxl", "xlrd", "odfpy", "pyxlsb", "python-calamine")
