"""A C header for an exported kernel: options, sizes and launches, from the formulas of its SPEC."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from ..codegen.sentinels import SENTINELS
from ..codegen.usage import FUNCTIONS, Usage


def header(name: str, usages: Mapping[str, Usage], options: Sequence[str]) -> str:
    """The text of ``name.h``: for each entry point a struct of all its numbers, and a function that fills it."""
    macros = "".join(f"#define PYEDMCL_{definition}\n" for _, definition in FUNCTIONS.values())
    lines = [
        f"/* Sizes and launches of the kernel {name}, written by pyedmcl from its specification.",
        "   elements_BUFFER: how many elements it has at least. local_size 0: the driver may choose. */",
        "#include <stddef.h>", "#ifndef PYEDMCL_FORMULAS", "#define PYEDMCL_FORMULAS",
        re.sub(r"(\W)ceil_div\(A", r"\1PYEDMCL_ceil_div(A", macros) + "#endif",
        f"#ifndef {name.upper()}_H", f"#define {name.upper()}_H",
        f'#define {name.upper()}_OPTIONS "{" ".join(options)}"',
        *(f"#define {name.upper()}_{sign} {value:g}" for sign, value in SENTINELS.items()),
        *(line for entry, usage in usages.items() for line in _plan(entry, usage)),
        "#endif", "",
    ]  # fmt: skip
    return "\n".join(lines)


def _plan(entry: str, usage: Usage) -> Iterator[str]:
    """The struct and the function of an entry point."""
    elements = {f"elements_{buffer}": formula for buffer, formula in usage.elements.items()}
    formulas = {**usage.derived, **usage.numbers, **elements}
    axes = len(usage.work_items)
    yield (f"typedef struct {{ long long {', '.join([*usage.problem, *formulas])}; "
           f"size_t global_size[{axes}], local_size[{axes}]; }} {entry}_plan;")  # fmt: skip
    taken = ", ".join(f"long long {number}" for number in usage.problem)
    yield f"static inline {entry}_plan plan_{entry}({taken or 'void'}) {{"
    yield f"  {entry}_plan p;"
    yield from (f"  p.{number} = {number};" for number in usage.problem)
    yield from (f"  p.{number} = {_in_c(formula)};" for number, formula in formulas.items())
    for axis, (formula, local) in enumerate(zip(usage.work_items, usage.local_size or [0] * axes, strict=True)):
        yield f"  p.global_size[{axis}] = (size_t)({_in_c(formula)}); p.local_size[{axis}] = {local};"
    yield "  return p;"
    yield "}"


def _in_c(formula: str) -> str:
    """A formula with its names as members of the struct, and its functions as macros."""

    def said(word: re.Match[str]) -> str:
        return f"PYEDMCL_{word[0]}" if word[0] in FUNCTIONS else f"p.{word[0]}"

    return re.sub(r"[A-Za-z_]\w*", said, formula)
