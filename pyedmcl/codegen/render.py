"""From template and values to OpenCL C text whose line numbers are the template's.

A ``#line`` is put wherever the mapping breaks (after control lines, blocks and includes), so that a driver's message
``knn.cl.mako:120: error`` points at the text a person can edit.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..errors import BuildError
from .sentinels import SENTINELS
from .texts import read_text

if TYPE_CHECKING:
    from ..device.quirks import Quirks

# Control lines, comments, and tags such as <%def> and <%namespace>.
_CONTROL = re.compile(r"\s*%(?!%)|\s*##|\s*</?%\w")
_BLOCK_OPEN = re.compile(r"<%(?!\w)(?!.*%>)")
_INCLUDE = re.compile(r'\s*#include\s+"([^"]+)"\s*$')


def mark_lines(text: str, name: str) -> str:
    """Insert ``#line`` directives into template text, never inside a continued macro or a Python block."""
    out: list[str] = []
    in_block = False
    stale = True
    continued = False
    for number, line in enumerate(text.splitlines(), start=1):
        if in_block:
            out.append(line)
            in_block = "%>" not in line
            stale = True
            continue
        if _CONTROL.match(line):
            out.append(line)
            stale = True
            continue
        if _BLOCK_OPEN.search(line) or (line.lstrip().startswith("<%") and "%>" in line):
            out.append(line)
            in_block = "%>" not in line
            stale = True
            continue
        if stale and line.strip() and not continued:
            out.append(f'#line {number} "{name}"')
            stale = False
        out.append(line)
        if continued and not line.endswith("\\"):
            stale = True  # Mako has joined the continued lines into one
        continued = line.endswith("\\")
        # What follows an expansion of several lines is off again.
        if re.search(r"\$\{[\w.]+\(", line):
            stale = True
    return "\n".join(out) + "\n"


def expand_includes(text: str, seen: set[str]) -> str:
    """Inline ``#include "..."`` of our own headers, each once, with ``#line`` on both sides."""
    out: list[str] = []
    back: tuple[int, str] = (0, "")
    for line in text.splitlines():
        marker = re.match(r'#line (\d+) "([^"]+)"', line)
        if marker:
            back = (int(marker[1]) - 1, marker[2])
        include = _INCLUDE.match(line)
        if include is None:
            out.append(line)
            back = (back[0] + 1, back[1]) if not marker else back
            continue
        name = include[1]
        back = (back[0] + 1, back[1])
        if name not in seen:
            seen.add(name)
            header = read_text("clkernels", name)
            out.append(expand_includes(f'#line 1 "{name}"\n{header}', seen).rstrip("\n"))
        out.append(f'#line {back[0] + 1} "{back[1]}"')
    return "\n".join(out) + "\n"


@functools.lru_cache(maxsize=16)
def prelude(quirks: Quirks, lone: bool = False) -> str:
    """What comes before every text on a device with these quirks; ``lone``: groups are single work-items."""
    text = quirks.prelude + (quirks.lone_prelude if lone else "")
    if not quirks.fused_double:
        text += '#include "software_fma.clh"\n'
    return expand_includes(text, set()) if text else ""


@functools.lru_cache(maxsize=64)
def _template(name: str) -> Any:
    return _compiled(read_text("templates", name), name)


def _compiled(text: str, name: str) -> Any:
    from mako.template import Template

    return Template(mark_lines(text, name), uri=name, lookup=_Fragments(), strict_undefined=True)


class _Fragments:
    """Where Mako finds the file of a ``<%namespace>``: beside the template, with lines marked like the template's."""

    @staticmethod
    def adjust_uri(name: str, _relative_to: str) -> str:
        return name

    @staticmethod
    def get_template(name: str) -> Any:
        return _template(name)


def prologue(values: Mapping[str, Any]) -> str:
    """What every text begins with, for ``clkernels/numeric.clh`` to make number types and operations of.

    Parameters
    ----------
    values : mapping
        ``fma`` ("builtin", "contract" or "contract-vectors"), ``minimum`` ("fmin" or "select"), ``exact_division``,
        ``byte_permute`` and ``inverse_root`` (False by default) are the device's; ``dtype`` ("float32" by default) and
        ``lanes`` (1 by default) the kernel's.

    Raises
    ------
    BuildError
        The device's values are missing.
    """
    absent = [name for name in ("fma", "minimum") if name not in values]
    if absent:
        raise BuildError(f"no value for {', '.join(absent)}: codegen.build adds what the device's quirks say")
    double, lanes = values.get("dtype") == "float64", int(values.get("lanes", 1))
    numbers = {
        "LANES": lanes,
        "REAL_BITS": 64 if double else 32,
        "FMA_CONTRACT": int(values["fma"] == "contract" or (values["fma"] == "contract-vectors" and lanes > 1)),
        "MIN_SELECT": int(values["minimum"] == "select"),
        "DIVISION_EXACT": int(bool(values.get("exact_division"))),
        "BYTE_PERMUTE": int(bool(values.get("byte_permute"))),
        "INVERSE_ROOT": int(bool(values.get("inverse_root"))),
        **{name: f"{value:g}{'' if double else 'f'}" for name, value in SENTINELS.items()},
    }
    return "".join(f"#define {name} {number}\n" for name, number in numbers.items())


def render(name: str, values: Mapping[str, Any]) -> str:
    """Render template ``name`` with ``values`` and inline its headers.

    Parameters
    ----------
    name : str
        File in ``templates/``.
    values : mapping
        Specialisation, tuned parameters and the device's values; every name the template uses must be there.

    Returns
    -------
    str
        OpenCL C source, the prologue first.

    Raises
    ------
    BuildError
        If the template uses an unknown name or its Python fails; the message names template and line.
    """
    text = _filled(_template(name), name, values)
    return prologue(values) + expand_includes(text, set())


def _filled(template: Any, name: str, values: Mapping[str, Any]) -> str:
    try:
        return str(template.render(**values))
    except Exception as error:
        from mako import exceptions

        trace = exceptions.RichTraceback()
        line = trace.lineno if trace.lineno and trace.lineno > 0 else 0
        raise BuildError(f"templates/{name} could not be rendered (near generated line {line}): {error!r}") from error
