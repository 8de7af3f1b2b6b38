"""From a kernel's spec and values to a compiled program, with errors a person can read."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from ..device.quirks import Quirks, quirks_for
from ..device.runtimes import KeptFiles
from ..errors import BuildError
from . import texts as render
from .kernel_spec import GROUP, KernelSpec, evaluate
from .texts import read_text

if TYPE_CHECKING:
    from ..device.executor import Executor, Kernel
    from ..device.info import DeviceInfo


# Local memory that a kernel's text declares.


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


_PLACE = re.compile(r'"?([\w.]+\.(?:mako|clh))"?[:(](\d+)')
_NAMELESS = re.compile(r"<\w+>:(\d+):\d+: error:")
_MARKER = re.compile(r'#line (\d+) "([^"]+)"')
_CONTEXT = 3
#: What is built within :func:`noting`.
_noted: ContextVar[list[tuple[KernelSpec, dict[str, Any]]] | None] = ContextVar("noted", default=None)


def source(spec: KernelSpec, values: Mapping[str, Any]) -> str:
    """The OpenCL C text of a kernel, whoever produces it."""
    spec.check(values)
    if spec.producer == "mako":
        return render.render(spec.text, values)
    from . import loopy_source

    return loopy_source.produce(spec.text, values)


def text_for(spec: KernelSpec, values: Mapping[str, Any], info: DeviceInfo) -> str:
    """:func:`source`, with what the device's quirks ask for: how to fuse, how to take a minimum, what comes first."""
    return _text(spec, tuple(sorted(values.items())), quirks_for(info))


# Rendering takes a millisecond, a launch some microseconds: the same text is asked for again and again. It is to be the
# same object then, whose hash is known. The first text of a process takes a hundred milliseconds, in which Mako and the
# templates are read: between processes texts are kept.
@functools.lru_cache(maxsize=512)
def _text(spec: KernelSpec, given: tuple[tuple[str, Any], ...], quirks: Quirks) -> str:
    values = dict(given)
    lone = all(values.get(name, 1) == 1 for name in GROUP)
    return render.prelude(quirks, lone) + _kept_source(spec, {**values, **quirks.values})


def _kept_source(spec: KernelSpec, values: Mapping[str, Any]) -> str:
    """:func:`source`, from the user's cache folder where it is there."""
    if spec.producer != "mako":  # others keep theirs by themselves
        return source(spec, values)
    spec.check(values)
    kept, key = KeptFiles("texts", render.digest_of_makers()), [repr(sorted(values.items()))]
    text = kept.load(spec.text, key)
    if text is None:
        text = source(spec, values).encode()
        kept.keep(spec.text, key, text)
    return text.decode()


def excerpt(log: str, text: str) -> str:
    """The lines of our own texts that a driver's log points at, marked.

    Most compilers name file and line as ``#line`` told them. NVIDIA's counts the lines of the text it was given, which
    is followed back here.
    """
    places = [(match[1], int(match[2])) for match in _PLACE.finditer(log)]
    places += [place for match in _NAMELESS.finditer(log) if (place := _origin(text, int(match[1])))]
    shown: list[str] = []
    for name, line in list(dict.fromkeys(places))[:3]:
        folder = "templates" if name.endswith(".mako") else "clkernels"
        shown.append(f"{folder}/{name}:{line}")
        for number in range(max(1, line - _CONTEXT), line + _CONTEXT + 1):
            text = _line(folder, name, number)
            if text:
                shown.append(f"{'>' if number == line else ' '} {number:4d} | {text}")
    return "\n".join(shown)


def _origin(text: str, number: int) -> tuple[str, int] | None:
    """File and line that line ``number`` of a produced text came from."""
    lines = text.splitlines()
    for at in range(min(number, len(lines)) - 1, -1, -1):
        marker = _MARKER.match(lines[at])
        if marker:
            return marker[2], int(marker[1]) + number - at - 2
    return None


def _line(folder: str, name: str, number: int) -> str:
    try:
        lines = read_text(folder, name).splitlines()
    except BuildError:
        return ""
    return lines[number - 1] if 0 < number <= len(lines) else ""


def build(executor: Executor, spec: KernelSpec, values: Mapping[str, Any], entry: str | None = None) -> Kernel:
    """Compile ``spec`` for a device and return the kernel, ready to launch.

    Parameters
    ----------
    values : mapping
        Specialisation and tuned parameters. The device's own quirks (how to fuse, how to take a minimum) are added.
    entry : str, optional
        Which kernel of the program; the one of the spec's name by default.
    """
    noted = _noted.get()
    if noted is not None:
        noted.append((spec, dict(values)))
    text = text_for(spec, values, executor.info)
    try:
        program = executor.build(text, quirks_for(executor.info).build_options)
        return program.kernel(entry or spec.name, spec.slots(entry or spec.name, values))
    except BuildError as error:
        log = error.log or str(error)
        where = excerpt(log, text)
        failure = BuildError(
            f"kernel {spec.name} did not compile on {executor.info.name} ({executor.info.driver})\n"
            f"values: {dict(sorted(values.items()))}\n{where}\n{log[-4000:]}",
            log=error.log,
            source=text,
        )
        failure.kernel = spec.name
        raise failure from error


def build_ahead(executor: Executor, several: Iterable[tuple[KernelSpec, Mapping[str, Any]]]) -> None:
    """Compile kernels, each with its values, all of which :func:`build` will be asked for soon."""
    quirks = quirks_for(executor.info)
    if quirks.compilers < 2:
        return  # which would only render texts
    texts = [text_for(spec, values, executor.info) for spec, values in several]
    executor.build_ahead(texts, quirks.build_options)


def build_meanwhile(executor: Executor, spec: KernelSpec, values: Mapping[str, Any]) -> bool:
    """Whether :func:`build` need not be waited for; else it is compiled in the background, when there is time."""
    text = text_for(spec, values, executor.info)
    return executor.build_meanwhile(text, quirks_for(executor.info).build_options)


@contextlib.contextmanager
def noting() -> Iterator[list[tuple[KernelSpec, dict[str, Any]]]]:
    """Within the block, what engines build is noted: the kernel and its values, in their order."""
    noted: list[tuple[KernelSpec, dict[str, Any]]] = []
    token = _noted.set(noted)
    try:
        yield noted
    finally:
        _noted.reset(token)


def is_noting() -> bool:
    """Whether this is within :func:`noting`."""
    return _noted.get() is not None
