"""What the public call at work was given: for the provenance of its result.

It travels beside the calls, as :mod:`pyedmcl.launch.progress` does: the functions that read data, choose seeds and
write provenance lie deep below the one that was called, and nothing else depends on it.
"""

from __future__ import annotations

import functools
import inspect
import platform
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, ParamSpec, TypeVar

from .parallel import meanwhile

P = ParamSpec("P")
R = TypeVar("R")

_MANY_BYTES = 1 << 17  # whose digest takes longer than to hand it to a thread
_FEW = 32  # items of a sequence that is kept as it was given
_OMITTED = ("progress", "client", "device", "tune")  # what decides no answer, or is told elsewhere


@dataclass
class Call:
    """A public function at work."""

    function: str
    # What was given, as far as it is numbers, texts or a few of them.
    arguments: dict[str, Any]
    # Name of an argument to what describes its data.
    data: dict[str, Callable[[], dict[str, Any]]] = field(default_factory=dict)
    # The seed that was given or drawn.
    seed: int | None = None
    # Names of all arguments that the function has.
    parameters: tuple[str, ...] = ()
    # What is said once, however often it is met.
    told: set[str] = field(default_factory=set)

    def described(self) -> dict[str, Any]:
        """As plain data: what somebody else would need to make the same call."""
        entries = {name: describe() for name, describe in self.data.items()}
        reading = {name: entry["reading"] for name, entry in entries.items() if "reading" in entry}
        data = {name: {key: entry[key] for key in entry if key != "reading"} for name, entry in entries.items()}
        return {
            "data": data, "seed": self.seed, "command": _command, "function": self.function,
            "arguments": self.arguments, "reading": reading,
        }  # fmt: skip


_call: ContextVar[Call | None] = ContextVar("call", default=None)
_command: str | None = None
NOTHING: dict[str, Any] = {"data": {}, "seed": None, "command": None, "function": None, "arguments": {}, "reading": {}}


def ran_by(command: str) -> None:
    """From now on results are made by this command line."""
    global _command
    _command = command


def described_call() -> dict[str, Any]:
    """The public call at work as plain data; see :meth:`Call.described`."""
    call = _call.get()
    return dict(NOTHING, command=_command) if call is None else call.described()


def takes(argument: str) -> bool:
    """Whether the public function at work has an argument, so that a message may name it."""
    call = _call.get()
    return call is None or argument in call.parameters


def versions() -> dict[str, str]:
    """Of what computes beside us."""
    import numpy as np

    return {"python": platform.python_version(), "numpy": np.__version__}


def noticed(what: str, describe: Callable[[], dict[str, Any]], nbytes: int = 0) -> None:
    """An argument's data, ``nbytes`` bytes, were read, which ``describe`` tells a result of.

    That takes a second for each gigabyte, so it is done for many bytes while the call does its work.
    """
    call = _call.get()
    if call is not None and what not in call.data:
        call.data[what] = describe if nbytes < _MANY_BYTES else meanwhile(describe)


def said_first(remark: str) -> bool:
    """Whether the call at work has not yet made a remark, which it makes once."""
    call = _call.get()
    if call is None:
        return True
    first = remark not in call.told
    call.told.add(remark)
    return first


def noticed_seed(seed: int) -> None:
    """The call at work draws from this seed."""
    call = _call.get()
    if call is not None and call.seed is None:
        call.seed = seed


def recorded(function: Callable[P, R]) -> Callable[P, R]:
    """Keep what a public function is called with, while it runs."""
    names = tuple(inspect.signature(function).parameters)

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        passed: dict[str, Any] = dict(zip(names, args, strict=False)) | kwargs
        kept = {name: _plain(value) for name, value in passed.items() if name not in _OMITTED}
        arguments = {name: value for name, value in kept.items() if value is not _LEFT_OUT}
        token = _call.set(Call(function.__name__, arguments, parameters=names))
        try:
            return function(*args, **kwargs)
        finally:
            _call.reset(token)

    return call


_LEFT_OUT = object()


def _plain(value: Any) -> Any:
    """A number, a text or a few of them as plain data; what is more than that is left out."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, PurePath):
        return str(value)
    dtype = getattr(value, "dtype", None)
    ndim = getattr(value, "ndim", None)
    if dtype is not None and isinstance(ndim, int) and ndim == 0:  # a number of NumPy, which may not be loaded here
        return value.item() if getattr(dtype, "kind", "") in tuple("biufU") else _LEFT_OUT
    if isinstance(value, (list, tuple, range)) and len(value) <= _FEW:
        items = [_plain(item) for item in value]
        return _LEFT_OUT if any(item is _LEFT_OUT for item in items) else items
    return _LEFT_OUT
