"""Local memory that a kernel's text declares."""

from __future__ import annotations

import re

from ..errors import BuildError
from .usage import evaluate

_DEFINED = re.compile(r"^#define (\w+) (.+?)(?:\s*//.*)?$", re.MULTILINE)
_DECLARED = re.compile(r"(?<![\w(])(?:__)?local (?!const )(\w+) (\w[^;]*?)(?:__attribute__\s*\(\(.*?\)\))?\s*;")
_BYTES = {"uchar": 1, "ushort": 2, "int": 4, "uint": 4, "float": 4, "ulong": 8, "double": 8, "double2": 16, "moment": 8}
_DEPTH = 20  # macros that name macros


def local_bytes(text: str, entry: str) -> int:
    """Bytes of local memory that a work-group of the kernel ``entry`` has, without what a driver adds to align them.

    Parameters
    ----------
    text : str
        A kernel's OpenCL C without includes.
    entry : str
        One of its kernels.

    Raises
    ------
    BuildError
        A declaration cannot be understood.
    """
    macros = dict(reversed(_DEFINED.findall(text)))  # later ones of a name are for texts that have none
    real = int(macros["REAL_BITS"]) // 8 if "REAL_BITS" in macros else 4
    sizes = {**_BYTES, "real": real, **dict.fromkeys(("realv", "rowv"), real * int(macros.get("LANES", 1)))}
    total = 0
    for kind, names in _DECLARED.findall(_body(text, entry)):
        if kind not in sizes:
            raise BuildError(f"the size of {kind} in the local memory of {entry} is not known")
        for name in names.split(","):
            count = 1
            for extent in re.findall(r"\[(.*?)\]", name):
                count *= evaluate(_expanded(extent, macros), {})
            total += count * sizes[kind]
    return total


def _body(text: str, entry: str) -> str:
    """From the head of a kernel to the brace that ends it."""
    head = re.search(rf"\b(?:__)?kernel\b[^;{{}}]*\b{entry}\s*\(", text)
    if head is None:
        raise BuildError(f"the text has no kernel {entry}")
    end = text.find("\n}", head.end())
    return re.sub(r"//.*", "", text[head.end() : end])


def _expanded(expression: str, macros: dict[str, str]) -> str:
    """An expression without names of macros, and without casts."""
    for _ in range(_DEPTH):
        if not re.search(r"[A-Za-z_]", expression):
            break
        expression = re.sub(r"[A-Za-z_]\w*", lambda word: f"({macros.get(word[0], word[0])})", expression)
    return expression
