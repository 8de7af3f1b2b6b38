"""A C header for an exported kernel: options, sizes and launches, from the formulas of its SPEC."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ..codegen.sentinels import SENTINELS
from ..codegen.usage import FUNCTIONS, Usage


def header(name: str, usage: Usage, options: Sequence[str]) -> str:
    """The text of ``name.h``: a struct of all numbers of a problem, and a function that fills it."""
    numbers = [*usage.problem, *usage.derived, *usage.numbers]
    elements = {f"elements_{buffer}": formula for buffer, formula in usage.elements.items()}
    lines = [
        f"/* Sizes and launches of the kernel {name}, written by pyedmcl from its specification. */",
        f"#ifndef {name.upper()}_H", f"#define {name.upper()}_H",
        f'#define {name.upper()}_OPTIONS "{" ".join(options)}"',
        *(f"#define {name.upper()}_{sign} {value:g}" for sign, value in SENTINELS.items()),
        f"typedef struct {{ long long {', '.join([*numbers, *elements])}; "
        f"size_t global_size[{len(usage.groups)}], local_size[{len(usage.groups)}]; }} {name}_plan;",
        f"static {name}_plan plan_{name}({', '.join(f'long long {number}' for number in usage.problem)}) {{",
        f"  {name}_plan p;",
        *(f"  p.{number} = {number};" for number in usage.problem),
        *(f"  p.{number} = {_in_c(formula)};"
          for number, formula in {**usage.derived, **usage.numbers, **elements}.items()),
        *(f"  p.global_size[{axis}] = ({_in_c(groups)}) * {local}; p.local_size[{axis}] = {local};"
          for axis, (groups, local) in enumerate(zip(usage.groups, usage.local_size, strict=True))),
        "  return p;", "}", "#endif", "",
    ]  # fmt: skip
    macros = "".join(f"#define PYEDMCL_{definition}\n" for _, definition in FUNCTIONS.values())
    return lines[0] + "\n#include <stddef.h>\n#ifndef PYEDMCL_FORMULAS\n#define PYEDMCL_FORMULAS\n" + re.sub(
        r"(\W)ceil_div\(A", r"\1PYEDMCL_ceil_div(A", macros
    ) + "#endif\n" + "\n".join(lines[1:])


def _in_c(formula: str) -> str:
    """A formula with its names as members of the struct, and its functions as macros."""
    def said(word: re.Match[str]) -> str:
        return f"PYEDMCL_{word[0]}" if word[0] in FUNCTIONS else f"p.{word[0]}"

    return re.sub(r"[A-Za-z_]\w*", said, formula)
