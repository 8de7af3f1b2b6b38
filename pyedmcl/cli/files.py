"""Tables written by commands: whole or not at all."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..errors import InputError
from .talk import plain

_TABLES = (".csv", ".tsv", ".json")


def check_table(path: Path) -> None:
    """Refuse, before anything is computed, a path that no table can be written to. Raises InputError."""
    if path.suffix.lower() not in _TABLES:
        raise InputError(f"{path}: a table is written as {', '.join(_TABLES)}, not {path.suffix or '(no suffix)'!r}")
    check_place(path)


def check_place(path: Path) -> None:
    """Refuse a file in a folder that is not there, or whose name is a folder. Raises InputError."""
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {str(path.parent)!r}; create it first")
    if path.is_dir():
        raise InputError(f"{path}: this is a folder; name a file in it")


def check_picture(path: Path | None) -> None:
    """Refuse, before anything is computed, a path that no picture can be written to; None is fine. Raises InputError.

    Raises
    ------
    MissingExtraError
        matplotlib is not installed.
    """
    if path is None:
        return
    from ..plot.figure import check_format, new_figure

    check_format(path)
    check_place(path)
    new_figure(1, 1)


def write_table(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table as .csv, .tsv or .json (a list of objects).

    Numbers keep the digits that restore them; NaN is NaN in text and null in JSON.

    Raises
    ------
    InputError
        For another suffix, or a folder that is not there.
    StoreWriteError
        If the file cannot be written; a file that was there is kept then.
    """
    from ..jobs.durable import write_failure, write_file

    check_table(path)
    suffix = path.suffix.lower()
    if suffix == ".json":
        text = json.dumps([dict(zip(header, plain(list(row)), strict=True)) for row in rows], indent=1) + "\n"
    else:
        memory = io.StringIO(newline="")
        writer = csv.writer(memory, delimiter="\t" if suffix == ".tsv" else ",", lineterminator="\n")
        writer.writerow(header)
        for row in rows:
            writer.writerow(["NaN" if cell != cell else cell for cell in row])
        text = memory.getvalue()
    try:
        write_file(path, text.encode())
    except OSError as error:
        raise write_failure(f"{path} could not be written", ", then run the same command again", error) from error
