"""From OpenCL C to what NVIDIA's driver runs: the text as CUDA C, and NVIDIA's compiler."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import BuildError, DeviceNotFoundError

# OpenCL C 1.2 as CUDA C++: tokens that no header can explain are rewritten; ``opencl_c.cuh`` declares all else.
#
# Rewritten are address spaces, attributes, literals of vectors and names of their components. The text is gone through
# token by token, each macro's body by itself, and lines stay where they are. Nothing is guessed: a declaration that
# could silently lose its address space is refused.


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
_COMPONENTS = re.compile(r"[xyzw]{1,4}|s[0-9a-fA-F]{1,16}")
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
            elif _COMPONENTS.fullmatch(word):
                places = ["xyzw".index(letter) for letter in word] if word[0] != "s" else [int(d, 16) for d in word[1:]]
                several = f"parts_<{', '.join(map(str, places))}>()"
                self._write(f"a[{places[0]}]" if len(places) == 1 else several, at)
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


# It needs no GPU. Packages bring it (``nvidia-cuda-nvrtc-cu12`` of ``pip install 'pyedmcl[cuda]'``, or of PyTorch, or
# of CuPy), and so do NVIDIA's toolkits.


HOW_TO_GET_IT = "pip install 'pyedmcl[cuda]'"
# Results must be those of other devices: nothing is fused that does not say so, quotients and roots are rounded, and
# the smallest numbers are not 0. Functions of the header that a text does not call are no matter.
_OPTIONS = ("--std=c++17", "--device-as-default-execution-space", "--fmad=false", "--prec-div=true", "--prec-sqrt=true",
            "--ftz=false", "--diag-suppress=177")  # fmt: skip
_WHEELS = ("nvidia/cu[0-9]*/lib", "nvidia/cuda_nvrtc/lib")
_TOOLKITS = ("usr/local/cuda*/lib64", "usr/lib/*-linux-gnu", "usr/lib64", "opt/cuda/lib64")
# Bytes of local memory that a kernel may declare; more has to be asked for at its launch.
_MOST_DECLARED = 48 << 10
_LOG_KEPT = 20_000
_HINTS_FROM = (8, 3)

Version = tuple[int, int]


def libraries(folders: Sequence[str] | None = None, root: Path = Path("/")) -> list[tuple[Version, Path]]:
    """Each NVRTC of this environment and of the system's toolkits, with its version; those of packages come first."""
    places = [place for folder in dict.fromkeys(sys.path if folders is None else folders) if folder
              for pattern in _WHEELS for place in Path(folder).glob(pattern)]  # fmt: skip
    places += [place for pattern in _TOOLKITS for place in sorted(root.glob(pattern))]
    found: dict[Path, Version] = {}
    for place in places:
        for file in sorted(place.glob("libnvrtc.so.[0-9]*")):
            # The version that counts is in the name of what it opens by itself.
            for beside in place.glob(f"libnvrtc-builtins.so.{file.name.split('.')[2]}.*"):
                major, minor = (int(part) for part in beside.name.split(".so.")[1].split(".")[:2])
                found.setdefault(file.resolve(), (major, minor))
    return [(version, file) for file, version in found.items()]


def best(found: Sequence[tuple[Version, Path]], driver: Version) -> Path | None:
    """The NVRTC that suits a driver: the newest that is not newer than it, else the oldest."""
    known = [each for each in found if each[0] <= driver]
    chosen = max(known, key=lambda each: each[0]) if known else min(found, key=lambda each: each[0], default=None)
    return None if chosen is None else chosen[1]


@functools.cache
def nvrtc(driver: Version) -> Nvrtc:
    """The compiler for a driver, which takes the PTX of the CUDA version that is named."""
    path = best(libraries(), driver)
    if path is None:
        raise DeviceNotFoundError(f"NVRTC, NVIDIA's compiler, is not installed: {HOW_TO_GET_IT}")
    try:
        return Nvrtc(path, driver)
    except OSError as error:
        raise DeviceNotFoundError(f"NVRTC cannot be loaded ({error}): {HOW_TO_GET_IT}") from error


class Nvrtc:
    """NVRTC of a file.

    Parameters
    ----------
    driver : (int, int), optional
        The CUDA version of the driver, whose PTX must not be newer.
    """

    def __init__(self, path: Path, driver: Version | None = None) -> None:
        # It opens them by their bare names, which the linker knows once they are loaded.
        for beside in sorted(path.parent.glob("libnvrtc-builtins.so.*")):
            ctypes.CDLL(str(beside))
        self.path, self.driver, self._library = path, driver, ctypes.CDLL(str(path))
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
        self.version = f"{major.value}.{minor.value}"
        count = ctypes.c_int()
        self._library.nvrtcGetNumSupportedArchs(ctypes.byref(count))
        held = (ctypes.c_int * count.value)()
        self._library.nvrtcGetSupportedArchs(held)
        self._targets = sorted(held)

    def target(self, capability: int) -> str:
        """The architecture to compile for, for a GPU of a compute capability such as 90. Raises DeviceNotFoundError."""
        fitting = [each for each in self._targets if each <= capability]
        if not fitting:
            raise DeviceNotFoundError(
                f"NVRTC {self.version} knows no GPU older than compute capability {self._targets[0] / 10:.1f}, and "
                f"this one has {capability / 10:.1f}: {HOW_TO_GET_IT} brings one that does"
            )
        return f"compute_{fitting[-1]}"

    def ptx(self, text: str, target: str, options: Sequence[str] = ()) -> tuple[str, str]:
        """PTX of CUDA C++ as the driver takes it, and what the compiler said."""
        flags = [f"--gpu-architecture={target}", *_OPTIONS, *options]
        with self._program(text) as program:
            given = (ctypes.c_char_p * len(flags))(*[flag.encode() for flag in flags])
            code = self._library.nvrtcCompileProgram(program, len(flags), given)
            log = self._read(program, "ProgramLog").strip("\0\n ")
            if code:
                raise BuildError(f"NVRTC {self.version} refused a kernel:\n{log[:_LOG_KEPT]}", log=log, source=text)
            made = self._read(program, "PTX")
        return for_driver(with_exact_groups(with_dynamic_memory(made)), self.driver), log

    @contextlib.contextmanager
    def _program(self, text: str) -> Iterator[ctypes.c_void_p]:
        program = ctypes.c_void_p()
        self._library.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"kernel.cu", 0, None, None)
        try:
            yield program
        finally:
            self._library.nvrtcDestroyProgram(ctypes.byref(program))

    def _read(self, program: ctypes.c_void_p, what: str) -> str:
        size = ctypes.c_size_t()
        getattr(self._library, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
        held = ctypes.create_string_buffer(size.value)
        getattr(self._library, f"nvrtcGet{what}")(program, held)
        return held.value.decode(errors="replace")


_ENTRY = re.compile(r"\.entry\s+(\w+)\s*\((.*?)\)", re.DOTALL)
_SHARED = re.compile(
    r"^[ \t]*(?:\.visible |\.weak )?\.shared \.align (\d+) \.[bfsu](\d+) ([\w$]+)(?:\[(\d+)\])?;[^\n]*\n", re.MULTILINE
)
_ASKED = re.compile(r"^// local memory of (\w+): (\d+) bytes$", re.MULTILINE)


def entries(ptx: str) -> dict[str, int]:
    """The kernels of a text, and how many arguments each takes."""
    return {match[1]: match[2].count(".param") for match in _ENTRY.finditer(ptx)}


def shared_bytes(ptx: str) -> dict[str, int]:
    """Bytes of local memory that each kernel of a text declares."""
    arrays = {name: size for name, (_, size) in _arrays(ptx).items()}
    return {entry: sum(arrays[name] for name in used) for entry, used in _used(ptx, arrays).items()}


def asked_bytes(ptx: str) -> dict[str, int]:
    """Bytes of local memory that a launch has to ask for, by kernel; 0 for those that declare what they need."""
    return {**dict.fromkeys(entries(ptx), 0), **{match[1]: int(match[2]) for match in _ASKED.finditer(ptx)}}


def _arrays(ptx: str) -> dict[str, tuple[int, int]]:
    """Alignment and bytes of each array of local memory."""
    return {match[3]: (int(match[1]), int(match[2]) // 8 * int(match[4] or 1)) for match in _SHARED.finditer(ptx)}


def _used(ptx: str, names: Sequence[str] | dict[str, int]) -> dict[str, list[str]]:
    """Which of some names each kernel has; functions that it calls are taken to be written out in it."""
    heads = [*_ENTRY.finditer(ptx)]
    ends = [head.start() for head in heads[1:]] + [len(ptx)]
    words = [set(re.findall(r"[\w$]+", ptx[head.start() : end])) for head, end in zip(heads, ends, strict=True)]
    return {head[1]: [name for name in names if name in within] for head, within in zip(heads, words, strict=True)}


def with_dynamic_memory(ptx: str) -> str:
    """The text with all of its local memory in one array that launches size, where it declares more than is allowed.

    NVIDIA's OpenCL grants a kernel all that a multiprocessor has, but ptxas refuses declarations of more than 48 KiB. A
    line at the head says for each kernel what its launch has to ask for; see :func:`asked_bytes`.
    """
    arrays = _arrays(ptx)
    if sum(size for _, size in arrays.values()) <= _MOST_DECLARED:
        return ptx
    place: dict[str, int] = {}
    needs: dict[str, int] = {}
    for entry, used in _used(ptx, {name: size for name, (_, size) in arrays.items()}).items():
        end = 0
        for name in sorted(used, key=lambda name: -arrays[name][0]):  # wider alignments first leave no gaps
            alignment, size = arrays[name]
            # An array lies at one place, whichever kernels use it.
            place.setdefault(name, -(-end // alignment) * alignment)
            end = max(end, place[name] + size)
        needs[entry] = end
    names = "|".join(sorted(map(re.escape, place), key=len, reverse=True))
    use = rf"(?<![\w$])({names})(?![\w$])(?:\+(\d+))?"
    moved = re.sub(use, lambda at: f"local_memory+{place[at[1]] + int(at[2] or 0)}", _SHARED.sub("", ptx))
    said = "".join(f"// local memory of {entry}: {size} bytes\n" for entry, size in needs.items() if size)
    head = ".address_size 64\n"
    return said + moved.replace(head, f"{head}\n.extern .shared .align 128 .b8 local_memory[];\n", 1)


def with_exact_groups(ptx: str) -> str:
    """The text with each group's size as the one that it has, not the most that it may have: registers follow it."""
    return re.sub(r"\.maxntid (\d+)(?:, 1, 1)?[ \t]*\n", r".reqntid \1, 1, 1\n", ptx)


def ptx_version(cuda: Version) -> Version:
    """The newest PTX that a driver of a CUDA version takes, by NVIDIA's table of PTX releases."""
    major, minor = cuda
    if major >= 13:
        return major - 4, minor
    return major - 4, minor - (major == 12 and minor >= 6)


def for_driver(ptx: str, driver: Version | None) -> str:
    """The text with no newer version of PTX than the driver takes; kernels need nothing of the newer ones."""
    head = re.search(r"^\.version (\d+)\.(\d+)", ptx, re.MULTILINE)
    if driver is None or head is None or (int(head[1]), int(head[2])) <= (most := ptx_version(driver)):
        return ptx
    lower = f"{ptx[: head.start()]}.version {most[0]}.{most[1]}{ptx[head.end() :]}"
    if most < _HINTS_FROM:  # of how much of a wide load is used
        lower = re.sub(r'^\s*\.pragma "used_bytes_mask \w+";\n', "", lower, flags=re.MULTILINE)
    return lower
