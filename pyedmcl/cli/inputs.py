"""From the words of a command line to series, dimensions and stored results."""

from __future__ import annotations

import csv
import os
import re
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from ..errors import InputError, PyedmclWarning, StoreForeignError
from .reading import load, read

if TYPE_CHECKING:
    from ..data.series import Series
    from ..edm.maps.xmap_edges import XmapEdges
    from ..jobs import XmapStore

__all__ = ["load", "read"]

_DIGITS = re.compile(r"\d+")
_SHOWN = 8  # names of series in a message
_LONGEST_RANGE = 100_000


def parse_columns(text: str | None) -> list[str] | None:
    """The items of a comma-separated list; double quotes keep a comma within a name."""
    if text is None:
        return None
    items = [item.strip() for item in next(csv.reader([text], skipinitialspace=True), [])]
    if not items or not all(items):
        raise typer.BadParameter(f"{text!r}: names or positions are needed, such as x,y or 0,3")
    return items


def parse_E(text: str) -> str | int | list[int]:
    """``auto``, one E, or one for each series."""
    if text.strip().lower() == "auto":
        return "auto"
    try:
        dimensions = [int(item) for item in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"{text!r}: 'auto', one integer, or one for each series (3,4,5) is needed") from None
    return dimensions if len(dimensions) > 1 else dimensions[0]


def parse_integers(text: str, option: str) -> list[int]:
    """``1,3``, with ranges such as ``-3:3`` that hold both ends."""
    numbers: list[int] = []
    try:
        for part in text.split(","):
            ends = [int(end) for end in part.split(":")]
            if len(ends) > 2 or not 0 <= ends[-1] - ends[0] < _LONGEST_RANGE:
                raise ValueError
            numbers += range(ends[0], ends[-1] + 1)
    except ValueError:
        raise typer.BadParameter(
            f"{option} {text!r}: integers such as 1,3 or a range such as 1:10 are needed"
        ) from None
    return numbers


def parse_or_auto(text: str, option: str, least: int) -> str | int:
    """``auto`` or an integer, which the function that gets it checks."""
    if text.strip().lower() == "auto":
        return "auto"
    try:
        return int(text)
    except ValueError:
        raise typer.BadParameter(f"{option} {text!r}: 'auto' or an integer of at least {least} is needed") from None


def parse_rule(text: str) -> str | float:
    """A rule by which E is chosen: its name, or a tolerance."""
    try:
        return float(text)
    except ValueError:
        return text


def parse_ranges(text: str | None, option: str) -> list[tuple[int, int]] | None:
    """``0:100,150:200`` as pairs."""
    if text is None:
        return None
    try:
        pairs = [tuple(int(end) for end in part.split(":")) for part in text.split(",")]
    except ValueError:
        pairs = []
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise typer.BadParameter(f"{option} {text!r}: ranges of rows such as 0:100 or 0:100,150:200 are needed")
    return [(pair[0], pair[1]) for pair in pairs]


def part_of(series: Series, *places: int) -> Series:
    """Those series of several that stand at some places, with all that is known of them."""
    return series.part(*places)


def shown_names(series: Series) -> str:
    """The names of the first series, for a message."""
    return ", ".join(series.names[:_SHOWN]) + (", ..." if series.n_series > _SHOWN else "")


def parse_clusters(text: str | None) -> str | dict[str, str] | None:
    """``auto``, or ``HVC=n1,n2;RA=n3`` as the label of each series."""
    if text is None or text.strip().lower() == "auto":
        return None if text is None else "auto"
    label_of: dict[str, str] = {}
    for part in text.split(";"):
        label, equals, members = part.partition("=")
        names = parse_columns(members) if equals and members.strip() else None
        if not label.strip() or names is None or label_of.keys() & set(names):
            raise typer.BadParameter(
                f"--clusters {text!r}: 'auto', or names and their series such as HVC=n1,n2;RA=n3, each once, are needed"
            )
        label_of |= dict.fromkeys(names, label.strip())
    return label_of


def parse_windows(text: str | None) -> tuple[int, int] | None:
    """``300,10`` as (width, step)."""
    if text is None:
        return None
    try:
        width, step = (int(item) for item in text.split(","))
    except ValueError:
        raise typer.BadParameter(f"--windows {text!r}: the width and the step, such as 300,10, are needed") from None
    return width, step


def beside_groups(columns: list[str] | None, groups: str | None) -> list[str] | None:
    """The columns that hold values: those that were named, or all but the ones that name groups."""
    keys, chosen = parse_columns(groups), columns or []
    if keys is None or any(_DIGITS.fullmatch(key) for key in keys) or not all(item[0] == "-" for item in chosen):
        return columns
    return [*chosen, *(f"-{key}" for key in keys if f"-{key}" not in chosen)]


def load_groups(
    path: Path, columns: list[str] | None, groups: str | None, dataset: str | None, *, needed: str = "--columns"
) -> list[Any] | None:
    """Of each row its values in the columns that name its group, which may be text; None without ``groups``.

    Parameters
    ----------
    columns : list of str or None
        Columns that hold values, such as :func:`beside_groups` gives.
    needed : str
        The option that says so.
    """
    keys = parse_columns(groups)
    if keys is None:
        return None
    if columns is None:
        raise typer.BadParameter(f"--groups needs {needed}, which says which columns hold values")
    held = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PyedmclWarning)  # the series themselves are read, and told of, afterwards
        column = list(read(path, columns, None, dataset).names[:1]) if columns[0].startswith("-") else columns[:1]
        for key in keys:
            time = read(path, column, key, dataset).time
            held.append([] if time is None else time.tolist())
    return held[0] if len(held) == 1 else list(zip(*held, strict=True))


def kept_edges(store: XmapStore) -> XmapEdges | None:
    """The edges that a result of xmap kept; None where it holds the whole map."""
    if store.keep is None:
        return None
    from ..edm.maps.xmap_edges import edges_of_store

    return edges_of_store(store, store.dimensions(), store.manifest.provenance())


def open_result(path: Path, *, partial: bool) -> XmapStore:
    """Open a result of xmap for reading.

    Parameters
    ----------
    path : pathlib.Path
    partial : bool
        Take a result that is not finished; its missing rows are NaN.

    Raises
    ------
    InputError
        It is no result of ours, not finished, or nothing of it is there yet.
    """
    from ..jobs import open_store

    try:
        store = open_store(path)
    except StoreForeignError as error:
        if not os.path.lexists(path):
            raise InputError(f"{path}: there is no such file or folder") from error
        raise InputError(
            f"{path} is no result that this command reads; name the folder that xmap, xmap-grid, ccm-matrix or "
            "network wrote, or a function with out=, or a file that save() of a result wrote (.edm)"
        ) from error
    pending = len(store.pending())
    if store.E is None:
        raise InputError(f"{path} holds no values yet; run its xmap command again, which continues it")
    if pending and not partial:
        raise InputError(
            f"{path} is not finished: {pending} of {store.n_blocks} blocks are missing. Run its xmap command again, "
            "which continues it, or add --partial to use what is there, with NaN in the missing rows"
        )
    return store
