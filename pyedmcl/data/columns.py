"""Which of the columns of a table are meant, by name, by position, or by what is left out."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import Any

from ..errors import InputError, shown
from .arguments import column_names

SHOWN = 8  #: How many names a message lists before it says how many more there are.


def select(
    labels: Sequence[object], columns: Sequence[str | int] | str | int | None, what: str, argument: str = "columns"
) -> list[int]:
    """Positions of ``columns`` among ``labels``; all of them for None. Errors call them by the caller's ``argument``.

    Raises
    ------
    InputError
        If a column is not there (the message lists some that are), named twice, or none is named.
    """
    if columns is None:
        return list(range(len(labels)))
    chosen_columns = column_names(argument, columns) or []
    if leaves_out(labels, chosen_columns):
        without = set(select(labels, [item[1:] for item in chosen_columns if isinstance(item, str)], what, argument))
        return [i for i in range(len(labels)) if i not in without]
    by_label: dict[object, int] = {}
    ambiguous: set[object] = set()
    for i, label in enumerate(labels):
        for key in {label, str(label)}:
            if by_label.setdefault(key, i) != i:
                ambiguous.add(key)
    # With labels that are numbers a position would silently pick another series than the label meant.
    positions = not any(isinstance(label, numbers.Integral) or str(label).strip().isdigit() for label in labels)
    chosen: list[int] = []
    missing: list[object] = []
    for item in chosen_columns:
        if item in ambiguous:
            raise InputError(f"{what}: several columns are called {shown(item)}; rename them, or choose by position")
        if item in by_label:
            chosen.append(by_label[item])
        elif positions and isinstance(item, int) and -len(labels) <= item < len(labels):
            chosen.append(item % len(labels))
        elif positions and isinstance(item, str) and item.isdigit() and int(item) < len(labels):
            chosen.append(int(item))  # in a shell all names are texts
        else:
            missing.append(item)
    if missing:
        digits = "" if positions else (
            ". Names of columns are numbers here, so that a position cannot be told from them: give names"
        )
        raise InputError(f"{what}: no column {some(missing)}; there are {len(labels)}: {some(labels)}{digits}")
    if len(set(chosen)) != len(chosen):
        again = [labels[i] for i, count in counts(chosen).items() if count > 1]
        raise InputError(f"{what}: {argument}= names {some(again)} more than once; name each once")
    if not chosen:
        raise InputError(f"{what}: {argument}= is empty; name at least one of {some(labels)}")
    return chosen


def leaves_out(labels: Sequence[object], columns: Sequence[str | int] | str | int | None) -> bool:
    """Whether ``columns`` says what to leave out: names with a minus before them, which no label has."""
    chosen_columns = column_names("columns", columns) or []
    names = {str(label) for label in labels}
    return bool(chosen_columns) and all(
        isinstance(item, str) and item[:1] == "-" and item not in names and item[1:] in names for item in chosen_columns
    )


def many(count: int, noun: str, one: str = "", several: str = "") -> str:
    """A number of things as a sentence has it, with the verb where one is given: "1 row is", "2 rows are"."""
    said, verb = (f"{count:,} {noun}", one) if count == 1 else (f"{count:,} {noun}s", several)
    return f"{said} {verb}" if verb else said


def some(items: Sequence[object]) -> str:
    """The first few items, quoted, and how many more there are."""
    first = ", ".join(shown(item) for item in items[:SHOWN])
    return first + (f" and {len(items) - SHOWN} more" if len(items) > SHOWN else "")


def counts(items: Sequence[Any]) -> dict[Any, int]:
    """How often each item occurs."""
    times: dict[Any, int] = {}
    for item in items:
        times[item] = times.get(item, 0) + 1
    return times
