"""The command ``pyedmcl``."""

from __future__ import annotations

import importlib
import shlex
import sys
from collections.abc import Iterator, MutableMapping
from typing import Annotated, Any

import typer
import typer.main

from ..registry import COMMANDS
from .exits import HELP, Command, Commands, ask_for_traceback, code_of, message_of
from .reading import with_reading_options
from .streams import printable, run

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
        raise TypeError(f"{name!r}: commands are those of pyedmcl.registry")

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


def _alone(name: str) -> typer.Typer:
    """An app of one command, or that of a group of commands."""
    if name == _GROUP:
        from . import db_bar

        return db_bar.app  # that of db, with two more commands
    word = name.replace("-", "_")
    alone = typer.Typer(add_completion=False)
    function = getattr(importlib.import_module(f".{word}", __package__), word)
    alone.command(name, cls=Command, epilog=HELP)(with_reading_options(function))
    return alone


app = typer.Typer(
    name="pyedmcl",
    cls=_All,
    help="Empirical dynamic modelling on any OpenCL device: from time series to a map of which drives which.",
    epilog=HELP,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:
    if value:
        from .version import versions

        for line in versions():
            typer.echo(printable(line))
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", help="Show versions and devices, and exit.", callback=_version, is_eager=True)
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error.", callback=ask_for_traceback)
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line; the entry point of the console script."""
    from ..data.call import ran_by

    ran_by(shlex.join(["pyedmcl", *sys.argv[1:]]))
    sys.exit(run(lambda: app(prog_name="pyedmcl"), code_of, message_of))
