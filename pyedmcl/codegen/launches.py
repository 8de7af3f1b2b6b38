"""How many work-items a launch of each kernel has, and how many elements its buffers, as formulas of a SPEC.

A SPEC's ``launches`` has a paragraph for each entry point of its program, and before them definitions::

    name = formula
    entry | work-items; of a second dimension | of a group; of a second dimension
      buffer, another: elements

Formulas are those of :mod:`pyedmcl.codegen.usage`. They name numbers among the entry's arguments, values that the text
is made for (truth values count as 0 and 1), what was defined of these, and numbers of
:data:`pyedmcl.kernels.argument_meanings.FREE`, which the caller chooses. "any" or 0: the driver may choose the size of
groups, work-items behind the last one idle, and a multiple of 64 suits all devices. Of ``knn``, ``lookup`` and
``recurrence_bits`` the SPECs say more: see their ``usage``.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

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


def launch_of(text: str, values: Mapping[str, Any], entry: str, arguments: Collection[str]) -> Launch:
    """The launch of one entry point.

    Parameters
    ----------
    text : str
        As the head of this module describes it.
    values : mapping
        What the program's text is made for; these numbers are put into the formulas.
    entry : str
    arguments : collection of str
        The names of its arguments, which go before values of the same names. Formulas of other buffers are left out.

    Raises
    ------
    BuildError
        The text says nothing of the entry point, or cannot be understood.
    """
    numbers = {name: int(value) for name, value in values.items() if isinstance(value, int)}
    for paragraph in re.split(r"\n(?=\S)", textwrap.dedent(text).strip()):
        head, *lines = [line.strip() for line in paragraph.splitlines()]
        if "|" not in head:
            name, _, formula = head.partition(" = ")
            numbers[name] = evaluate(formula, numbers)
        elif head.split(" ", 1)[0] == entry:
            while head.count("|") < 2:
                head += " " + lines.pop(0)
            fixed = {name: value for name, value in numbers.items() if name not in arguments}
            _, sizes, local = ([_put(part.strip(), fixed) for part in parts.split(";")] for parts in head.split("|"))
            group = () if local == ["any"] else tuple(evaluate(part, {}) for part in local)
            elements = dict(pair for line in lines for pair in _elements(line, entry, fixed) if pair[0] in arguments)
            return Launch(tuple(sizes), group if group and group[0] else None, elements)
    raise BuildError(f"nothing is said of launches of {entry}")


def _elements(line: str, entry: str, known: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    names, colon, formula = line.partition(": ")
    if not colon:
        raise BuildError(f"{line!r} is no formula for a buffer of {entry}")
    for name in names.split(","):
        yield name.strip(), _put(formula, known)


def _put(formula: str, known: Mapping[str, int]) -> str:
    """A formula with numbers in the place of what is known."""
    return _WORD.sub(lambda word: str(known.get(word[0], word[0])), formula)
