"""Texts of kernels and pages: where they lie, those that loopy writes, how templates are rendered, and the digest of a
kernel.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import json
import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import BuildError

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from ..device.quirks import Quirks
    from .kernel_spec import KernelSpec


# Numbers that stand for something, on the host and in every kernel: the prologue of each text defines them.
#
# Conditioned data (:mod:`pyedmcl.series.scaling`) have magnitudes of at most 1e13, so no sum of their squares reaches
# ``FAR``, and each squared distance in which a gap takes part exceeds it. No kernel has to ask for NaN. All of them are
# finite in float32.


#: A gap, where data lie on the device.
GAP = 1e16
#: What is smaller in magnitude is data; anything else, be it shifted and scaled, is a gap.
PRESENT = 1e15
#: What is added to a squared distance so that the row is no neighbour: more than FAR, whatever it is added to.
GAP_SQUARED = GAP**2
#: No squared distance between states without gaps is larger.
FAR = 1e30
#: The squared distance of an empty place in a table; larger than any sum of GAP_SQUARED that occurs.
NOWHERE = 3e38

SENTINELS = {"GAP": GAP, "PRESENT": PRESENT, "GAP_SQUARED": GAP_SQUARED, "FAR": FAR, "NOWHERE": NOWHERE}


_PACKAGE = Path(__file__).resolve().parents[1]
_PACKED = "_data"  # in the package, of a wheel


def _folder(folder: str) -> Traversable:
    packed = files("pyedmcl").joinpath(_PACKED, *folder.split("/"))
    return packed if packed.is_dir() else _PACKAGE.parent / folder


@functools.cache
def read_text(folder: str, name: str) -> str:
    """Text ``name`` of ``folder`` ("clkernels", "templates", "tuning/wisdom" or "docs").

    A wheel carries the folders under ``pyedmcl/_data``; a checkout (editable install) has them at its top level.
    """
    file = _folder(folder).joinpath(*name.split("/"))
    if file.is_file():
        return file.read_text(encoding="utf-8")
    raise BuildError(f"{folder}/{name} is neither in the package nor beside it: the installation is incomplete")


@functools.cache
def names_of(folder: str, suffix: str) -> tuple[str, ...]:
    """Names of the texts in ``folder`` that end so."""
    place = _folder(folder)
    return tuple(sorted(item.name for item in place.iterdir() if item.name.endswith(suffix))) if place.is_dir() else ()


def sources() -> list[Path]:
    """All files of the package's code and of its kernels, in an order that a wheel and a checkout share."""
    of_package = [file for file in _sources_in(_PACKAGE) if _PACKED not in file.relative_to(_PACKAGE).parts]
    return of_package + [file for name in ("clkernels", "templates") for file in _sources_in(Path(str(_folder(name))))]


@functools.cache
def digest_of_makers() -> str:
    """Identity of everything that texts are rendered by and from, so that none of an older state is taken for new."""
    folders = [Path(__file__).parent, *(Path(str(_folder(name))) for name in ("clkernels", "templates"))]
    whole = hashlib.sha256()
    for file in [file for folder in folders for file in _sources_in(folder)]:
        whole.update(f"\0{file.name}\0".encode() + file.read_bytes())
    return whole.hexdigest()


def _sources_in(folder: Path) -> list[Path]:
    return [file for file in sorted(folder.rglob("*")) if file.suffix in (".py", ".mako", ".clh", ".cuh")]


# What loopy is told: the makers of the kernels that it writes, and which of their texts are shipped.
#
# A maker says what is computed (a few lines of loopy's language) apart from how it is laid out over work-groups. It is
# handed the module ``loopy`` so that only :mod:`pyedmcl.kernels.loopy_source` imports it.


Values = Mapping[str, Any]

DTYPES = ("float32", "float64")


@dataclass(frozen=True)
class Maker:
    """One kernel that loopy writes."""

    # Raised with every change of the text it makes: shipped and memoised texts of another version are not used.
    version: int
    # The values that shape the text, in the order of the file's name.
    names: tuple[str, ...]
    # ``(loopy, values) -> loopy.TranslationUnit``.
    make: Callable[[Any, Values], Any]
    # The values whose text lies in ``clkernels/generated``: the defaults of each device class.
    shipped: tuple[Values, ...]


def _macros(lp: Any, unit: Any, *names: str) -> Any:
    """``unit`` with macros of numeric.clh made known to loopy as functions whose result has its arguments' type."""
    constantdict = importlib.import_module("constantdict").constantdict

    class Macro(lp.ScalarCallable):  # type: ignore[misc]
        def with_types(self, arg_id_to_dtype: Mapping[Any, Any], context: Any) -> Any:
            types = {i: t for i, t in arg_id_to_dtype.items() if i != -1}
            if any(t is None for t in types.values()):
                return self.copy(arg_id_to_dtype=constantdict(arg_id_to_dtype)), context
            typed = constantdict({**types, -1: types[0]})
            return self.copy(name_in_target=self.name, arg_id_to_dtype=typed), context

        def with_descrs(self, arg_id_to_descr: Mapping[Any, Any], context: Any) -> Any:
            return self.copy(arg_id_to_descr=constantdict(arg_id_to_descr)), context

    for name in names:
        unit = lp.register_callable(unit, name, Macro(name))
    return unit


def _unit(lp: Any, name: str, domains: list[str], body: str, arguments: list[Any], assumptions: str) -> Any:
    return lp.make_kernel(
        domains,
        body,
        arguments,
        name=name,
        assumptions=assumptions,
        target=lp.OpenCLTarget(),
        lang_version=(2018, 2),
        # The default is 32 bits, which a block of predictions can pass.
        index_dtype=np.int64,
        # In the order of the lines: the order of additions is part of what is computed.
        seq_dependencies=True,
    )


def skill(lp: Any, values: Values) -> Any:
    """Partial sums for rho, MAE and RMSE: a work-item per pair and chunk of rows, rows in their order.

    ``predicted`` is [pair][n_rows], NaN where there is no prediction; ``observed`` is read at
    ``observed_of[pair]*observed_stride + observed_offset + t``, a magnitude from PRESENT on being a gap. Rows outside
    [t_begin, t_end) of the pair are not read. ``sums`` is [pair - pair_begin][chunk][8]: n, sum p, sum o, sum p^2,
    sum o^2, sum p*o, sum |p - o|, sum (p - o)^2.
    """
    dtype, chunk = np.dtype(values["dtype"]), values["chunk"]
    totals = ("n", "sum_p", "sum_o", "sum_pp", "sum_oo", "sum_po", "sum_abs", "sum_squares")
    # Literals get their type from a typed variable: written into a condition they would be doubles.
    # p == p is false for a NaN only; an infinite prediction must show in the scores.
    body = f"""
    for pair, c
        <int64> first = t_begin[pair_begin + pair]
        <int64> last = t_end[pair_begin + pair]
        <int64> begin = maximum(first, c*{chunk})
        <int64> end = minimum(minimum(last, n_rows), c*{chunk} + {chunk})
        <int64> series = observed_of[pair_begin + pair]
        <int64> at_p = (pair_begin + pair)*n_rows
        <int64> at_o = series*observed_stride + observed_offset
        <> gap = {PRESENT!r}
        {"; ".join(f"<> {name} = 0.0" for name in totals).replace("; ", chr(10) + "        ")}
        for t
            <> p = predicted[at_p + t]
            <> o = observed[at_o + t]
            <int32> there = p == p and abs(o) < gap
            if there
                <> error = p - o
                n = n + 1
                sum_p = sum_p + p
                sum_o = sum_o + o
                sum_pp = FUSED(p, p, sum_pp)
                sum_oo = FUSED(o, o, sum_oo)
                sum_po = FUSED(p, o, sum_po)
                sum_abs = sum_abs + abs(error)
                sum_squares = FUSED(error, error, sum_squares)
            end
        end
        {chr(10).join(f"        sums[pair, c, {i}] = {name}" for i, name in enumerate(totals)).strip()}
    end
    """
    arguments = [
        *(lp.GlobalArg(name, dtype, shape=None) for name in ("predicted", "observed")),
        *(lp.GlobalArg(name, np.int32, shape=None) for name in ("observed_of", "t_begin", "t_end")),
        lp.GlobalArg("sums", dtype, shape=("n_pairs", "n_chunks", 8)),
        lp.ValueArg("pair_begin, n_pairs, n_chunks, n_rows, observed_stride, observed_offset", np.int64),
    ]
    domains = ["{[pair]: 0 <= pair < n_pairs}", "{[c]: 0 <= c < n_chunks}", "{[t]: begin <= t < end}"]
    unit = _unit(lp, "skill", domains, body.replace("<>", f"<{dtype}>"), arguments, "n_pairs >= 1 and n_chunks >= 1")
    unit = _macros(lp, unit, "FUSED")
    unit = lp.split_iname(unit, "c", values["wg"], outer_tag="g.1", inner_tag="l.0")
    return lp.tag_inames(unit, {"pair": "g.0"})


def _grid(**choices: tuple[Any, ...]) -> list[dict[str, Any]]:
    return [dict(zip(choices, some, strict=True)) for some in product(*choices.values())]


MAKERS: Mapping[str, Maker] = {
    "skill": Maker(
        version=1,
        names=("dtype", "chunk", "wg"),
        make=skill,
        shipped=tuple(_grid(dtype=DTYPES, chunk=(256,), wg=(1, 64))),
    ),
}


# The identity of a kernel: a digest of all that its programs are made of, and of nothing that only people read.
#
# Tuned parameters and continued stores belong to a digest, so a comment, an indentation or a line break must not change
# it. What is hashed are the tokens of template, fragments and headers: comments of OpenCL C, of Mako and of Python are
# left out, and so is the space between tokens.


# ${...}, with braces inside it.
_EXPRESSION = r"\$\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}"
_C_TOKENS = rf"""
    (?P<comment> //[^\n]* | /\*.*?\*/ )
  | (?P<continued> \\[ \t]*\n )
  | (?P<macro> ^[ \t]*\#[ \t]*define[ \t]+\w+\(? )
  | (?P<directive> ^[ \t]*\#[ \t]*\w+ )
  | (?P<newline> \n )
  | (?P<space> [^\S\n]+ )
  | (?P<string> "[^"\n]*" )
  | (?P<word> \.?\d (?: [eEpP][+-] | [\w.] | {_EXPRESSION} )* | (?: \w | {_EXPRESSION} )+ )
  | (?P<operator> <<= | >>= | << | >> | \+\+ | -- | -> | && | \|\| | \#\# | [-+*/%&|^!<>=]= | . )
"""
# Before those of C: a "//" in one of these is a division, and an indentation may matter.
_MAKO_TOKENS = r"""
    (?P<note> ^[ \t]*\#\#[^\n]* | <%doc>.*?</%doc> )
  | (?P<control> ^[ \t]*%(?!%)[^\n]* )
  | (?P<block> <%!?\s.*?%> )
  | (?P<tag> </?%[^>]*> ) |
"""
_FLAGS = re.VERBOSE | re.MULTILINE | re.DOTALL
_C = re.compile(_C_TOKENS, _FLAGS)
_MAKO = re.compile(_MAKO_TOKENS + _C_TOKENS, _FLAGS)
_PYTHON = re.compile(r'("(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\')|#[^\n]*|\s+|(\w+|.)')
# In canonical texts.
_HEADER = re.compile(r'^#include "([^"]+)"$', re.MULTILINE)
_FRAGMENT = re.compile(r"^< % (?:namespace|include|inherit) .*?file = [\"']([^\"']+)[\"']", re.MULTILINE)


def digest(spec: KernelSpec) -> str:
    """Identity of a kernel's text and search space, as hex.

    A template counts with its fragments and headers, wherever they are included. The text of a loopy kernel is not
    known before its values are: one that is shipped stands for its maker.
    """
    if spec.producer == "mako":
        parts = _canonical_texts("templates", spec.text)
    else:
        version = MAKERS[spec.text].version
        parts = [f"{spec.text} {version}", *_canonical_texts("clkernels", spec.example)]
        parts += _canonical_texts("clkernels", "numeric.clh")
    tunables = json.dumps([[t.name, list(map(repr, t.values))] for t in spec.tunables])
    whole = [spec.name, spec.producer, json.dumps(SENTINELS), *parts, tunables]
    return hashlib.sha256("\0".join(whole).encode()).hexdigest()[:16]


def _canonical_texts(folder: str, name: str) -> list[str]:
    """The canonical text of a file, and of all that it includes, each once and in the order of their first mention."""
    text_of: dict[tuple[str, str], str] = {}
    waiting = [(folder, name)]
    while waiting:
        place = waiting.pop(0)
        if place in text_of:
            continue
        text = text_of[place] = canonical_text(read_text(*place), mako=place[0] == "templates")
        waiting += [("templates", fragment) for fragment in _FRAGMENT.findall(text)]
        waiting += [("clkernels", header) for header in _HEADER.findall(text)]
    return list(text_of.values())


@functools.lru_cache(maxsize=512)  # kernels share most of their headers
def canonical_text(text: str, *, mako: bool) -> str:
    """The tokens of a text, with what stands between them left out.

    Parameters
    ----------
    mako : bool
        Whether it is a template; else it is plain OpenCL C.

    Returns
    -------
    str
        Preprocessor directives and Mako's control lines on lines of their own.
    """
    out: list[str] = []
    in_directive = False
    for token in (_MAKO if mako else _C).finditer(text):
        kind, shown = token.lastgroup, token.group()
        if kind == "newline" and in_directive:
            in_directive = False
            out.append("\n")
        elif kind in ("macro", "directive"):
            in_directive = True
            out.append("\n#" + re.sub(r"\s+", " ", shown.strip(" \t#")))
        elif kind in ("control", "tag"):
            out.append(f"\n{_canonical_python(shown)}\n")
        elif kind == "block":
            out.append(f"\n{_canonical_block(shown)}\n")
        elif kind == "word":
            out.append(re.sub(_EXPRESSION, lambda match: _canonical_python(match.group()), shown))
        elif kind in ("string", "operator"):
            out.append(shown)
    return re.sub(r" *\n[ \n]*", "\n", " ".join(out)).strip()


def _canonical_python(text: str) -> str:
    """The tokens of Python between them one space; strings as they are."""
    return " ".join(match[1] or match[2] for match in _PYTHON.finditer(text) if match[1] or match[2])


def _canonical_block(text: str) -> str:
    """A block of Python, its indentation as tabs."""
    inner = text.removeprefix("<%").removeprefix("!").removesuffix("%>")
    kept = [line.expandtabs() for line in inner.splitlines() if _canonical_python(line)]
    lines = textwrap.dedent("\n".join(kept)).splitlines()
    indented = ("\t" * (len(line) - len(line.lstrip())) + _canonical_python(line) for line in lines)
    return "\n".join(["<%", *indented, "%>"])


# From template and values to OpenCL C text whose line numbers are the template's.
#
# A ``#line`` is put wherever the mapping breaks (after control lines, blocks and includes), so that a driver's message
# ``knn.cl.mako:120: error`` points at the text a person can edit.


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
    """
    absent = [name for name in ("fma", "minimum") if name not in values]
    if absent:
        raise BuildError(f"no value for {', '.join(absent)}: kernels.build adds what the device's quirks say")
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
