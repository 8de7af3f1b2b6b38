"""Arguments of adapters, checked by the types that their signatures declare."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from ..arguments import boolean, integer, real
from ..errors import InputError, shown

P = ParamSpec("P")
R = TypeVar("R")


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise InputError(f"{name}={shown(value)}: a text is needed")
    return value


#: Arguments of pyEDM 1.x, and what takes their place.
_OF_OLDER = {
    "numThreads": "leave it out: all of the device is used",
    "random": "leave it out: libraries are drawn at random",
    "replacement": "leave it out: libraries are drawn without replacement",
    "pathIn": "read the file with pandas.read_csv, and pass dataFrame=",
    "dataFile": "read the file with pandas.read_csv, and pass dataFrame=",
    "pathOut": "write the result with its to_csv",
    "predictFile": "write the result with its to_csv",
    "parameterList": "leave it out",
}

_KINDS: dict[str, Callable[[str, Any], Any]] = {
    "int": integer,
    "float": lambda name, value: real(name, value, "a finite number"),
    "bool": boolean,
    "str": _text,
}


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Refuse values that are not of the simple type (int, float, bool, str, or None beside one) that is declared.

    The peers have no such checks, and fail somewhere inside, or take ``"False"`` for True.
    """
    signature = inspect.signature(function)
    kinds = {}
    for name, parameter in signature.parameters.items():
        kind, _, optional = str(parameter.annotation).partition(" | ")
        if kind in _KINDS and optional in ("", "None"):
            kinds[name] = (_KINDS[kind], optional == "None")

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        unknown = [name for name in kwargs if name not in signature.parameters]
        if unknown and not any(p.kind is p.VAR_KEYWORD for p in signature.parameters.values()):
            hint = _OF_OLDER.get(unknown[0], f"it has {', '.join(signature.parameters)}")
            raise InputError(f"{function.__name__}: there is no argument {unknown[0]!r}; {hint}")
        bound = signature.bind(*args, **kwargs)
        for name, (check, optional) in kinds.items():
            if name in bound.arguments and not (optional and bound.arguments[name] is None):
                bound.arguments[name] = check(f"{function.__name__}: {name}", bound.arguments[name])
        return function(*bound.args, **bound.kwargs)

    return call
