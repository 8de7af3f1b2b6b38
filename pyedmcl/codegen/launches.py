"""Launches of kernels as formulas, from the texts of :mod:`pyedmcl.kernels.launches`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ..errors import BuildError
from .usage import FUNCTIONS, evaluate

_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass(frozen=True)
class Launch:
    """How an entry point of a program is launched.

    Attributes
    ----------
    work_items : tuple of str
        Formulas of their number in each dimension, those of whole groups where there are groups.
    local_size : tuple of int or None
        Work-items of a group in each dimension; None where the driver may choose.
    elements : mapping
        Formulas of how many elements each buffer has room for, at least.
    """

    work_items: tuple[str, ...]
    local_size: tuple[int, ...] | None
    elements: Mapping[str, str]

    @property
    def names(self) -> set[str]:
        """Numbers that the formulas name."""
        formulas = (*self.work_items, *self.elements.values())
        return {name for formula in formulas for name in _WORD.findall(formula)} - set(FUNCTIONS)


def launches_of(text: str, constants: Mapping[str, int], arguments: Mapping[str, Iterable[str]]) -> dict[str, Launch]:
    """Entry point to its launch.

    Parameters
    ----------
    text : str
        Paragraphs as :mod:`pyedmcl.kernels.launches` describes them.
    constants : mapping
        What the program's text is made for; these numbers are put into the formulas.
    arguments : mapping
        Entry point to the names of its arguments, which go before constants of the same names. Others are left out.

    Raises
    ------
    BuildError
        The text cannot be understood.
    """
    found: dict[str, Launch] = {}
    for paragraph in re.split(r"\n(?=    \S)", text.strip("\n")):
        head, *lines = [line.strip() for line in paragraph.strip().splitlines()]
        while head.count("|") < 2:
            head += " " + lines.pop(0)
        entry, sizes, local = (part.strip() for part in head.split("|"))
        if entry not in arguments:
            continue
        known = {name: value for name, value in constants.items() if name not in set(arguments[entry])}
        elements: dict[str, str] = {}
        for line in lines:
            names, colon, formula = line.partition(": ")
            if not colon:
                raise BuildError(f"{line!r} is no formula for a buffer of {entry}")
            elements |= {name.strip(): _put(formula, known) for name in names.split(",")}
        group = None if local == "any" else tuple(evaluate(_put(part.strip(), known), {}) for part in local.split(";"))
        found[entry] = Launch(
            tuple(_put(size.strip(), known) for size in sizes.split(";")), group if group and group[0] else None,
            {name: formula for name, formula in elements.items() if name in set(arguments[entry])},
        )  # fmt: skip
    return found


def _put(formula: str, known: Mapping[str, int]) -> str:
    """A formula with numbers in the place of constants."""
    return _WORD.sub(lambda word: str(known.get(word[0], word[0])), formula)
