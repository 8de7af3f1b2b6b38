"""Tables written by commands: whole or not at all."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ..errors import StoreError
from .talk import plain

_TABLES = (".csv", ".tsv", ".json")


def check_table(path: Path, what: str = "a table", others: Sequence[str] = ()) -> None:
    """Refuse, before anything is computed, a path that no table can be written to. Raises OutputError.

    ``what`` is written there, for messages; ``others`` are suffixes that it may have beside those of tables.
    """
    from ..files import output_path

    output_path(path, (*_TABLES, *others), what)


def check_result(path: Path | None, what: str = "a table", others: Sequence[str] = ()) -> None:
    """As :func:`check_table`, where the whole result may be written, too; None is fine."""
    from ..io.saved import SUFFIX

    if path is not None:
        check_table(path, what, (*others, SUFFIX))


def check_place(path: Path) -> None:
    """Refuse a file in a folder that is not there, or whose name is a folder. Raises OutputError."""
    from ..files import output_path

    output_path(path)


def finished(path: Path) -> bool:
    """Whether an earlier run has left a complete result here, of which this one computes nothing again."""
    from ..jobs.status import Observer

    try:
        return Observer(path).look().complete
    except StoreError:  # nothing yet, or what the run itself will refuse, with its reason
        return False


def check_pictures(*paths: Path | None) -> None:
    """Refuse, before anything is computed, paths that no picture can be written to; None is fine. Raises OutputError.

    Raises
    ------
    MissingExtraError
        matplotlib is not installed.
    """
    pictures = [path for path in paths if path is not None]
    if not pictures:
        return
    from ..plot.figure import check_format, new_figure

    for path in pictures:
        check_format(path)
    new_figure(1, 1)  # a missing matplotlib is told now and not after the work


def write_table(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a table as .csv, .tsv or .json (a list of objects).

    Numbers keep the digits that restore them; NaN is NaN in text and null in JSON.

    Raises
    ------
    OutputError
        For another suffix, or a folder that is not there.
    StoreWriteError
        If the file cannot be written; a file that was there is kept then.
    """
    from ..io.cells import row_writer, text_cell

    check_table(path)
    suffix = path.suffix.lower()
    if suffix == ".json":
        text = json.dumps([dict(zip(header, plain(list(row)), strict=True)) for row in rows], indent=1) + "\n"
    else:
        memory = io.StringIO(newline="")
        writer = row_writer(memory, "\t" if suffix == ".tsv" else ",")
        writer.writerow(map(text_cell, header))
        for row in rows:
            writer.writerow(["NaN" if cell != cell else text_cell(cell) for cell in row])
        text = memory.getvalue()
    write_bytes(path, text.encode(errors="surrogatepass"))


def table_of_windows(result: Any) -> tuple[tuple[str, ...], list[tuple[Any, ...]]]:
    """Header and rows of a result of windows, dates as text."""
    columns = result.columns()
    held = [(values.astype(str) if values.dtype.kind == "M" else values).tolist() for values in columns.values()]
    return tuple(columns), list(zip(*held, strict=True))


def write_result(path: Path, result: Any, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Write a result as a whole (.edm), for ``plot``, ``export`` and ``report``, or a table of it by its suffix.

    Raises
    ------
    OutputError, StoreWriteError
        As for :func:`write_table`.
    """
    from ..io.saved import SUFFIX

    if path.suffix.lower() == SUFFIX:
        result.save(path)
    else:
        write_table(path, header, rows)


def write_bytes(path: Path, data: bytes | memoryview) -> None:
    """Write a file of a command. Raises StoreWriteError; a file that was there is kept then."""
    from ..files import writing

    with writing(path) as draft:
        draft.write(data)
