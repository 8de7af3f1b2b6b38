"""OpenCL C 1.2 as CUDA C++: tokens that no header can explain are rewritten; ``opencl_c.cuh`` declares all else.

Rewritten are address spaces, attributes, literals of vectors and names of their components. The text is gone through
token by token, each macro's body by itself, and lines stay where they are. Nothing is guessed: a declaration that could
silently lose its address space is refused.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import BuildError

_TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?\*/)"
    r"|(?P<directive>(?m:^)[ \t]*\#[ \t]*(?:line|pragma|if|ifdef|ifndef|elif|else|endif|undef|error)\b(?:\\\n|[^\n])*)"
    r"|(?P<define>(?m:^)[ \t]*\#[ \t]*define[ \t]+\w+)|(?P<space>(?:\s|\\\n)+)|(?P<string>\"(?:\\.|[^\"\\])*\")"
    r"|(?P<name>[A-Za-z_]\w*)|(?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)|(?P<sign>->|.)",
    re.DOTALL,
)
_SOLID = ("name", "number", "string", "sign")
_PAIRS = {"(": ")", "[": "]", "{": "}"}
# Names after which a bracket is no list of arguments.
_STATEMENTS = ("return", "else", "do", "case")
_HEADS = ("if", "for", "while", "switch")
_COMPONENT = re.compile(r"[xyzw]|s[0-9a-fA-F]")
_HALVES = ("lo", "hi", "odd", "even")


@dataclass
class _Token:
    kind: str
    text: str


@functools.cache
def header() -> str:
    """What converted texts need before them."""
    return Path(__file__).with_name("opencl_c.cuh").read_text(encoding="utf-8")


def cuda_text(source: str) -> str:
    """The CUDA C++ of an OpenCL C text, with all that it needs.

    The text stands in a namespace, where its names of types and functions come before CUDA's own ones.

    Raises
    ------
    BuildError
        The text uses what has no counterpart here.
    """
    return f"{header()}\nnamespace opencl::text {{\n#line 1\n{convert(source)}\n}}\n"


def convert(source: str) -> str:
    """The text alone, as it stands behind the header. Raises BuildError."""
    tokens = [_Token(str(match.lastgroup), match[0]) for match in _TOKEN.finditer(source)]
    for part in _parts(tokens):
        try:
            _Converter(part).run()
        except _RefusedError as refusal:
            raise BuildError(f"a kernel cannot be made CUDA C++: {refusal}", log=str(refusal), source=source) from None
    return "".join(token.text for token in tokens)


class _RefusedError(Exception):
    """Why a text cannot be converted."""


def _parts(tokens: Sequence[_Token]) -> list[list[_Token]]:
    """The tokens of the text without blanks, then those of each macro's body; blanks are put right on the way."""
    plain: list[_Token] = []
    macros: list[list[_Token]] = []
    body: list[_Token] | None = None
    for at, token in enumerate(tokens):
        if token.kind == "comment":  # its lines are kept
            token.kind, token.text = "space", " " + "\n" * token.text.count("\n")
        elif token.kind == "directive" and "OPENCL" in token.text.partition("pragma")[2].split()[:1]:
            token.text = ""
        if token.kind == "define":
            body = []
            macros.append(body)
            if tokens[at + 1 : at + 2] and tokens[at + 1].text == "(":  # parameters are no call
                end = next(i for i in range(at + 1, len(tokens)) if tokens[i].text == ")")
                for parameter in tokens[at + 1 : end + 1]:
                    parameter.kind = "parameter"
        elif body is not None and token.kind in ("space", "directive") and "\n" in token.text.replace("\\\n", ""):
            body = None
        elif token.kind in _SOLID:
            (plain if body is None else body).append(token)
    return [plain, *macros]


class _Converter:
    """Rewrites tokens in place, looking at them as they were."""

    def __init__(self, tokens: Sequence[_Token]) -> None:
        self.tokens = tokens
        self.words = [token.text for token in tokens]
        self.other = self._matched()  # of each bracket, where its other one is; else -1

    def run(self) -> None:
        depth = at = 0
        while at < len(self.words):
            word = self.words[at]
            depth += (word == "{") - (word == "}")
            if self.tokens[at].kind == "name":
                at = self._name(at, word.strip("_") if word.startswith("__") else word, depth)
            elif word == "(":
                self._bracket(at)
            at += 1

    def _matched(self) -> list[int]:
        other, open_ones = [-1] * len(self.words), list[int]()
        for at, token in enumerate(self.tokens):
            if token.kind != "sign":
                continue
            if token.text in _PAIRS:
                open_ones.append(at)
            elif token.text in _PAIRS.values() and open_ones:
                other[at] = open_ones.pop()
                other[other[at]] = at
        return other

    def _before(self, at: int) -> str:
        return self.words[at - 1] if at else ""

    def _write(self, text: str, begin: int, end: int | None = None) -> None:
        """``text`` in place of the tokens from ``begin`` to before ``end``."""
        self.tokens[begin].text = text
        for token in self.tokens[begin + 1 : end or begin + 1]:
            token.text = ""

    def _name(self, at: int, word: str, depth: int) -> int:
        """Rewrite a name; returns the place of the last token that belongs to it."""
        if word == "kernel":
            self._write('extern "C" __global__', at)
        elif word in ("global", "private"):
            self._write("", at)
        elif word == "constant":
            self._write("static __constant__ const" if depth == 0 and self._declares(at) else "const", at)
        elif word == "local":
            self._write("__shared__" if self._declares(at) and self._of_memory(at) else "", at)
        elif word == "inline" and depth == 0:
            self._write(f"{'' if self._before(at) == 'static' else 'static '}__device__ __forceinline__", at)
        elif word == "attribute" and self.other[at + 1] > 0:
            return self._attribute(at, self.other[at + 1] + 1)
        elif self._before(at) in (".", "->"):
            if word in _HALVES:
                self._write(f"{word}_()", at)
            elif _COMPONENT.fullmatch(word):
                self._write(f"a[{'xyzw'.index(word) if len(word) == 1 else int(word[1], 16)}]", at)
        return at

    def _attribute(self, at: int, end: int) -> int:
        name, arguments = self.words[at + 3], self._split(at + 4)
        if name == "reqd_work_group_size":
            if arguments[1:] != [["1"], ["1"]]:
                raise _RefusedError("groups of more than one dimension are not provided for")
            self._write(f"__launch_bounds__({' '.join(arguments[0])})", at, end)
        elif name == "noinline":
            self._write("__noinline__", at, end)
        elif name != "aligned":
            self._write("", at, end)
        return end - 1

    def _declares(self, at: int) -> bool:
        """Whether an address space stands in a declaration by itself, and not in a parameter or a cast."""
        while at and self.tokens[at - 1].kind == "name":
            at -= 1
        return self._before(at) in ("", ";", "{", "}", ")")

    def _of_memory(self, at: int) -> bool:
        """Whether a declaration that begins with ``local`` is of memory, and not of pointers to it."""
        stars = extents = 0
        while at < len(self.words) and self.words[at] not in (";", "="):
            stars += self.words[at] == "*"
            extents += self.words[at] == "["
            at = max(self.other[at], at) + 1 if self.words[at] in _PAIRS else at + 1
        if stars and extents:
            raise _RefusedError("arrays of local memory and pointers to it are declared together")
        return not stars

    def _bracket(self, at: int) -> None:
        """Rewrite ``(type)(a, b)``, and the address of local memory as an integer, which PTX takes."""
        end = self.other[at]
        following = end + 1
        if end < 0 or self.words[following : following + 1] != ["("] or self._is_call(at):
            return
        if len(self._split(following)) > 1:
            self.tokens[at].text, self.tokens[end].text = "vector_of<", ">"
        elif self.words[at : at + 7] == ["(", "uint", ")", "(", "size_t", ")", "("]:
            self._write("local_address", at, at + 6)

    def _is_call(self, at: int) -> bool:
        """Whether a bracket holds arguments, or the head of a statement."""
        if not at:
            return False
        before = self.words[at - 1]
        if self.tokens[at - 1].kind == "name":
            return before not in _STATEMENTS
        if before == ")" and self.other[at - 1] >= 0:  # of a cast, or of the head of a statement, no call follows
            opened = self.other[at - 1]
            return self._is_call(opened) and self._before(opened) not in _HEADS
        return before == "]"

    def _split(self, at: int) -> list[list[str]]:
        """What stands between the commas of the bracket that opens at a place."""
        parts: list[list[str]] = [[]]
        end, at = self.other[at], at + 1
        while at < end:
            stop = self.other[at] + 1 if self.other[at] > at else at + 1
            if self.words[at] == ",":
                parts.append([])
            else:
                parts[-1] += self.words[at:stop]
            at = stop
        return parts
