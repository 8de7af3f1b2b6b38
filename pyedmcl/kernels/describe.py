"""Write the tables of parameters at the head of the templates, from the specs of the kernels.

    python -m pyedmcl.kernels.describe --write
    python -m pyedmcl.kernels.describe --check    # ends with 1 and the names of templates whose table is not current

A table stands between two marker lines; a template without one gets it behind its first comment. Comments of Mako are
no part of a kernel's digest, so tuned parameters stay valid. This needs a checkout.
"""

from __future__ import annotations

import argparse
import importlib
import pkgutil
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from ..codegen.spec import KernelSpec, Tunable
from .meanings import meaning

TEMPLATES = Path(__file__).resolve().parents[2] / "templates"
BEGIN = "## ---- parameters (python -m pyedmcl.kernels.describe --write) ----\n"
END = "## ---- end of parameters ----\n"
_WIDTH = 118


def specs() -> Iterator[KernelSpec]:
    """The specs of all templates."""
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        spec = getattr(importlib.import_module(f"{__package__}.{module.name}"), "SPEC", None)
        if spec is not None and spec.producer == "mako":
            yield spec


def table(spec: KernelSpec) -> str:
    """The table of a kernel, with its markers; empty where a kernel has no parameters."""
    lines: list[str] = []
    names = [*spec.specialisation, *(tunable.name for tunable in spec.tunables)]
    if not names:
        return ""
    width = max(map(len, names))
    if spec.specialisation:
        lines.append("## Given by the problem:")
        for name in spec.specialisation:
            lines += _entry(name, meaning(spec.name, name), width)
    if spec.tunables:
        lines.append("## Tuned for speed, never changing what is computed (values; default of a processor, of a GPU):")
        for tunable in spec.tunables:
            lines += _entry(tunable.name, f"{tunable.why} ({_values(tunable)})", width)
    return BEGIN + "".join(line + "\n" for line in lines) + END


def _entry(name: str, text: str, width: int) -> list[str]:
    indent = "##   " + " " * width + "  "
    return textwrap.wrap(
        text, _WIDTH, initial_indent=f"##   {name:<{width}}  ", subsequent_indent=indent, break_on_hyphens=False
    )


def _values(tunable: Tunable) -> str:
    tried = " ".join(_shown(value) for value in tunable.values)
    return f"{tried}; {_shown(tunable.default['cpu'])}, {_shown(tunable.default['gpu'])}"


def _shown(value: object) -> str:
    return {"True": "yes", "False": "no"}.get(str(value), str(value))


def described(text: str, spec: KernelSpec) -> str:
    """A template with the table of its spec."""
    if BEGIN in text:
        before, _, rest = text.partition(BEGIN)
        _, _, after = rest.partition(END)
        return before + table(spec) + after
    lines = text.splitlines(keepends=True)
    head = next(number for number, line in enumerate(lines) if not line.startswith("##"))
    return "".join(lines[:head]) + table(spec) + "".join(lines[head:])


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Tables of parameters at the head of the templates.")
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--write", action="store_true")
    mode.add_argument("--check", action="store_true")
    write = parser.parse_args(arguments).write
    stale = 0
    for spec in specs():
        path = TEMPLATES / spec.text
        text = path.read_text(encoding="utf-8")
        current = described(text, spec)
        if current == text:
            continue
        stale += 1
        print(f"{spec.text} {'written' if write else 'has not the table of its spec'}")
        if write:
            path.write_text(current, encoding="utf-8", newline="\n")
    return int(bool(stale) and not write)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
