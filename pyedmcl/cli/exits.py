"""Exit codes, and how an error is told."""

from __future__ import annotations

import csv
import functools
import io
import os
import re
import traceback
import warnings
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from .. import errors
from .show import shown_pictures
from .streams import printable

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
    "kernel failed; 7 an optional package is not installed; 130 interrupted by Ctrl-C (the message says how to "
    "resume); 141 the reader of a pipe closed it before all was written."
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
    (errors.ClientError, COMPUTE),
    (errors.MissingExtraError, MISSING),
    (errors.PyedmclError, INPUT),
    (MemoryError, COMPUTE),
)

_DEBUG = "pyedmcl.debug"
#: What Python calls some parameters of commands.
_OTHERWISE = {
    "lib": ("lib_range",), "pred": ("pred_range",), "output": ("out",), "views": ("n_views",),
    "generate": ("generate_steps",), "pair": ("pairs",),
}  # fmt: skip
#: Options that some commands have, which warnings name in all.
_ELSEWHERE = ("groups", "surrogate", "regular")
#: Arguments whose values are words of ours, which need no quotes in a shell; names of columns may.
_OF_WORDS = ("E", "n", "regular", "season", "surrogate")

_running: ContextVar[Any] = ContextVar("running", default=None)


def running() -> Any:
    """The context of the command at work; None outside of one."""
    return _running.get()


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
        return printable(str(error))
    if isinstance(error, KeyboardInterrupt):
        return "Interrupted. Run the same command to start again."
    return f"This machine has not enough free memory: {error or 'an allocation failed'}. Use fewer series (--columns)."


def in_options(message: str, command: Any, others: Sequence[str] = ()) -> str:
    """A message that names arguments of Python (``columns=``) with the options of a command (``--columns``) instead.

    Parameters
    ----------
    message : str
    command : click.Command or None
    others : sequence of str
        Arguments that are options of other commands.
    """
    parameters = command.params if command is not None else ()
    for name in others:
        message = _as_option(message, name, f"--{name.replace('_', '-')}")
    for parameter in parameters:
        option = next((name for name in parameter.opts if name.startswith("--")), None)
        if option is None:
            continue
        for name in arguments_of(str(parameter.name)):
            if parameter.is_flag:
                message = re.sub(rf"(?<![\w-]){name}=True\b", option, message)
                off = next(iter(parameter.secondary_opts), None)
                message = message if off is None else re.sub(rf"(?<![\w-]){name}=False\b", off, message)
            else:
                message = _as_option(message, name, option)
    if any(parameter.name == "exclude" for parameter in parameters):
        message = re.sub(r"--columns ('?)-", r"--exclude \1", message)
    return message


def arguments_of(parameter: str) -> tuple[str, ...]:
    """What the argument of a function may be called that a parameter of a command stands for."""
    return (parameter, *_OTHERWISE.get(parameter, ()))


def _as_option(message: str, name: str, option: str) -> str:
    """A message with an option, and its value, in place of an argument and its value."""
    # A remedy: "use a smaller E_max or tau".
    message = re.sub(rf"(\b(?:smaller|larger) (?:[\w-]+(?:, | or ))*){name}\b", rf"\1{option}", message)
    if "_" in name:  # no series, such as x, which may stand there too
        message = re.sub(rf"^{name}(?=: )", option, message)
    if f"{name}=" not in message:
        return message
    message = re.sub(rf"(?<![\w-]){name}=None\b", option, message)
    if name in _OF_WORDS:
        message = re.sub(rf"(?<![\w-]){name}='([a-z]+)'", rf"{option} \1", message)
    message = re.sub(rf"(?<![\w-]){name}=(?=[\w'\"(\[-])", f"{option} ", message)
    return re.sub(rf"(?<![\w-]){name}=(?!=)", option, message)


class Commands(TyperGroup):
    """A group whose commands end with one clear message and an exit code for every error that we know."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        call: Callable[[Any], Any] = super().invoke
        try:
            return call(ctx)
        except tuple(kind for kind, _ in _CODES) as error:
            if ctx.find_root().meta.get(_DEBUG):
                typer.echo(printable(traceback.format_exc()), err=True)
            if isinstance(error, KeyboardInterrupt):
                typer.echo(message_of(error), err=True)
            else:
                command = self.get_command(ctx, ctx.invoked_subcommand) if ctx.invoked_subcommand else None
                text = in_options(message_of(error), command)
                typer.echo(typer.style("error: ", fg="red", bold=True) + text, err=True)
            raise typer.Exit(code_of(error)) from None
        except typer.BadParameter as error:
            error.message = printable(error.message)
            raise  # itself: that an argument is missing is said by its class, not by its message


class Command(TyperCommand):
    """A command that does not write over what it reads, nor two of its results to one place."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command.

        Raises
        ------
        OutputError
            A file that is to be written is an input, lies in one that is a folder, or is named twice.
        """
        token = _running.set(ctx)
        try:
            with shown_pictures(ctx):
                return self._run(ctx)
        finally:
            _running.reset(token)

    def _run(self, ctx: Any) -> Any:
        inputs, outputs = _paths(ctx, "argument"), _paths(ctx, "option")
        for place, output in enumerate(outputs):
            for given in inputs:
                if _same(given, output) or (os.path.isdir(given) and given.resolve() in output.resolve().parents):
                    raise errors.OutputError(f"{output}: this is {given}, which is read; name another place")
            if any(_same(output, other) for other in outputs[:place]):
                raise errors.OutputError(f"{output}: two results cannot be written to one place; name another one")
        leave_out(ctx.params)
        with warnings.catch_warnings():
            warnings.simplefilter("always", errors.PyedmclWarning)
            warnings.showwarning = functools.partial(_tell, ctx)
            return super().invoke(ctx)


def leave_out(params: dict[str, Any]) -> None:
    """Say ``--exclude a,b`` as ``--columns -a,-b``, which is what commands read.

    Raises
    ------
    typer.BadParameter
        Both are given.
    """
    names = params.get("exclude")
    if names is None:
        return
    if params.get("columns") is not None:
        raise typer.BadParameter("--exclude and --columns: name what is left out, or what is used")
    items = next(csv.reader([names], skipinitialspace=True), [])
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow([f"-{item.strip()}" for item in items])
    params["columns"] = line.getvalue()


def _tell(ctx: Any, message: Warning | str, category: type[Warning], *place: Any, **_: Any) -> None:
    """Show a warning as a remark of the command. Those of other packages mean nothing to a user: --debug shows them."""
    if issubclass(category, errors.PyedmclWarning):
        if not ctx.params.get("quiet"):
            text = printable(in_options(str(message), ctx.command, _ELSEWHERE))
            typer.echo(typer.style("warning: ", fg="yellow", bold=True) + text, err=True)
    elif ctx.find_root().meta.get(_DEBUG):
        typer.echo(printable(warnings.formatwarning(message, category, *place[:2])), err=True)


def _paths(ctx: Any, kind: str) -> list[Path]:
    """What was given for the arguments or options that take a path."""
    path_values = [ctx.params.get(p.name) for p in ctx.command.params if p.param_type_name == kind]
    flat = [one for value in path_values for one in (value if isinstance(value, (list, tuple)) else [value])]
    return [path.expanduser() for path in flat if isinstance(path, Path)]


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except (OSError, ValueError):  # one of them is not there, or no path
        return os.path.abspath(one) == os.path.abspath(other)
