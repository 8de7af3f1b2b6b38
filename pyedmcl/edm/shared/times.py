"""What the times of a table say about its rows: whether these are equally spaced, complete and in order."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, TypeVar

from numpy.typing import NDArray

from ...data.groups import Groups
from ...data.steps import steps_of
from ...data.time_words import faults, remedy

Key = TypeVar("Key", bound=Hashable)


def remarks_on_times(time: NDArray[Any] | None) -> list[tuple[str, str]]:
    """(code, sentence) of whatever is wrong with times; nothing for names and where there are none."""
    steps = steps_of(time)
    if time is None or steps is None:
        return []
    return [(code, f"{said}. {remedy(code)}") for code, said in faults(time, steps).items()]


def remarks_on_times_of(time: NDArray[Any] | None, groups: Groups | None) -> list[tuple[str, str]]:
    """As :func:`remarks_on_times`, of each recording; of groups each kind once, for the first that has it."""
    if groups is None or time is None:
        return remarks_on_times(time)
    remarks = (
        (code, name, text) for number, name in enumerate(groups.names.tolist())
        for code, text in remarks_on_times(time[groups.codes == number])
    )  # fmt: skip
    return list(said_once(remarks).items())


def said_once(found: Iterable[tuple[Key, Any, str]]) -> dict[Key, str]:
    """Of what (key, name of a group, sentence) say, each key once: for the first group, with the number of others."""
    held: dict[Key, list[str]] = {}
    for key, name, text in found:
        held.setdefault(key, []).append(f"group {name}: {text}")
    return {
        key: own[0] + (f" (and so in {len(own) - 1:,} more groups)" if len(own) > 1 else "")
        for key, own in held.items()
    }
