"""The command ``pyedmcl``: its commands, and what --version says."""

from __future__ import annotations

import importlib
import inspect
import platform
import shlex
import sys
from collections.abc import Iterator, MutableMapping
from importlib import metadata
from typing import Annotated, Any

import typer
import typer.main

from ..errors import DeviceNotFoundError
from ..functions import COMMANDS
from .methods import made
from .output import HELP, Command, Commands, ask_for_traceback, code_of, message_of, printable, run

# What ``pyedmcl --version`` says: what a report of an error has to tell of the machine.


_PACKAGES = ("numpy", "pyopencl", "mako")


def versions() -> Iterator[str]:
    """Lines: ours first, then Python with packages, then devices, of which that which would be chosen is marked."""
    from .. import __version__

    yield f"pyedmcl {__version__}"
    packages = ", ".join(f"{name} {_version(name)}" for name in _PACKAGES)
    yield f"Python {platform.python_version()} on {platform.platform()}, {packages}"
    yield from _devices()


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "of unknown version"


def _devices() -> Iterator[str]:
    from ..device.select import discover_every, select

    try:
        infos = discover_every()
        chosen = select(None, devices=infos).device
    except DeviceNotFoundError as error:
        yield f"no device: {error}"
        return
    for info in infos:
        mark = "* " if info == chosen else "  "
        yield f"{mark}{info.id} {info.name} ({info.runtime}, driver {info.driver})"


_GROUP = "db"


class _MadeWhenAsked(MutableMapping[str, Any]):
    """Commands by their names. Each is imported and made when it is first asked for: all of them take 0.2 seconds."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            if name not in self:
                raise KeyError(name)
            self._made[name] = typer.main.get_command(_alone(name))
        return self._made[name]

    def __setitem__(self, name: str, command: Any) -> None:
        raise TypeError(f"{name!r}: commands are those of pyedmcl.functions")

    __delitem__ = __setitem__  # type: ignore[assignment]

    def __contains__(self, name: object) -> bool:
        return name == _GROUP or name in COMMANDS

    def __iter__(self) -> Iterator[str]:
        return iter((*COMMANDS, _GROUP))

    def __len__(self) -> int:
        return len(COMMANDS) + 1


class _All(Commands):
    """The group of all commands."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands = _MadeWhenAsked()

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """List commands by what they say of themselves: to make one loads what it runs."""
        commands: Any = self.commands
        said = {name: Command(name, help=inspect.getdoc(_function(name))) for name in COMMANDS}
        self.commands = {**said, _GROUP: commands[_GROUP]}
        try:
            super().format_help(ctx, formatter)
        finally:
            self.commands = commands


def _alone(name: str) -> typer.Typer:
    """An app of one command, or that of a group of commands."""
    if name == _GROUP:
        from . import tune

        return tune.app  # that of db, with two more commands
    alone = typer.Typer(add_completion=False)
    alone.command(name, cls=Command, epilog=HELP)(made(_function(name)))
    return alone


def _function(name: str) -> Any:
    """The function of a command."""
    return getattr(importlib.import_module(f".{COMMANDS[name]}", __package__), name.replace("-", "_"))


app = typer.Typer(
    name="pyedmcl",
    cls=_All,
    help="Empirical dynamic modelling on any OpenCL device: from time series to a map of which drives which.",
    epilog=HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _app_version(value: bool) -> None:
    if value:
        for line in versions():
            typer.echo(printable(line))
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show versions and devices, and exit.", callback=_app_version, is_eager=True),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error.", callback=ask_for_traceback)
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; the entry point of the console script."""
    from ..call import ran_by

    ran_by(shlex.join(["pyedmcl", *sys.argv[1:]]))
    sys.exit(run(lambda: app(prog_name="pyedmcl"), code_of, message_of))
