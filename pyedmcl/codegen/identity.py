"""The identity of a kernel: a digest of all that its programs are made of, and of nothing that only people read.

Tuned parameters and continued stores belong to a digest, so a comment, an indentation or a line break must not change
it. What is hashed are the tokens of template, fragments and headers: comments of OpenCL C, of Mako and of Python are
left out, and so is the space between tokens.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import textwrap
from typing import TYPE_CHECKING

from . import texts
from .sentinels import SENTINELS

if TYPE_CHECKING:
    from .spec import KernelSpec

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
    from . import loopy_kernels

    if spec.producer == "mako":
        parts = _canonical_texts("templates", spec.text)
    else:
        version = loopy_kernels.MAKERS[spec.text].version
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
        text = text_of[place] = canonical_text(texts.read_text(*place), mako=place[0] == "templates")
        waiting += [("templates", fragment) for fragment in _FRAGMENT.findall(text)]
        waiting += [("clkernels", header) for header in _HEADER.findall(text)]
    return list(text_of.values())


@functools.lru_cache(maxsize=512)  # kernels share most of their headers
def canonical_text(text: str, *, mako: bool) -> str:
    """The tokens of a text, with what stands between them left out.

    Parameters
    ----------
    text : str
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
