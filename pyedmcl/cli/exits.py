"""Exit codes, and how an error is told."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperGroup

from .. import errors

OK = 0
UNEXPECTED = 1
USAGE = 2
INPUT = 3
DEVICE = 4
OUTPUT = 5
COMPUTE = 6
MISSING = 7
INTERRUPTED = 130

HELP = (
    "Exit codes: 0 ok; 1 an unexpected failure (a bug: please report it); 2 wrong usage; 3 the input or a parameter "
    "cannot be used; 4 no such device; 5 the output was refused or cannot be written; 6 device out of memory or a "
    "kernel failed; 7 an optional package is not installed; 130 interrupted by Ctrl-C (the message says how to resume)."
)

# The first class that fits decides; several of these are also built-in errors.
_CODES: tuple[tuple[type[BaseException], int], ...] = (
    (KeyboardInterrupt, INTERRUPTED),
    (errors.DeviceNotFoundError, DEVICE),
    (errors.StoreError, OUTPUT),
    (errors.DeviceMemoryError, COMPUTE),
    (errors.BuildError, COMPUTE),
    (errors.LaunchError, COMPUTE),
    (errors.WrongResultError, COMPUTE),
    (errors.MissingExtraError, MISSING),
    (errors.PyedmclError, INPUT),
    (MemoryError, COMPUTE),
)

_DEBUG = "pyedmcl.debug"


def ask_for_traceback(context: typer.Context, value: bool) -> bool:
    """Callback of ``--debug``, which may stand before or after the command."""
    if value:
        context.find_root().meta[_DEBUG] = True
    return value


def code_of(error: BaseException) -> int:
    """The exit code of an error; 1 for one that is not ours."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), UNEXPECTED)


def message_of(error: BaseException) -> str:
    """What to print for an error that has an exit code of its own."""
    if isinstance(error, errors.PyedmclError):
        return str(error)
    if isinstance(error, KeyboardInterrupt):
        return "Interrupted. Run the same command to start again."
    return f"This machine has not enough free memory: {error or 'an allocation failed'}. Use fewer series (--columns)."


class Commands(TyperGroup):
    """A group whose commands end with one clear message and an exit code for every error that we know."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        call: Callable[[Any], Any] = super().invoke
        try:
            return call(ctx)
        except tuple(kind for kind, _ in _CODES) as error:
            if ctx.find_root().meta.get(_DEBUG):
                traceback.print_exc(file=sys.stderr)
            if isinstance(error, KeyboardInterrupt):
                typer.echo(message_of(error), err=True)
            else:
                typer.echo(typer.style("error: ", fg="red", bold=True) + message_of(error), err=True)
            raise typer.Exit(code_of(error)) from None
