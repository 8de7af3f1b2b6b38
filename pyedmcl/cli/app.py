"""The command ``pyedmcl``."""

from __future__ import annotations

import importlib
import shlex
import sys
from typing import Annotated

import typer

from ..registry import COMMANDS
from . import db_bar
from .exits import HELP, Command, Commands, ask_for_traceback, code_of, message_of
from .streams import printable, run

app = typer.Typer(
    name="pyedmcl",
    cls=Commands,
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


for _command in COMMANDS:
    _name = _command.replace("-", "_")
    app.command(_command, cls=Command, epilog=HELP)(getattr(importlib.import_module(f".{_name}", __package__), _name))
app.add_typer(db_bar.app)  # that of db, with two more commands


def main() -> None:
    """Run the command line; the entry point of the console script."""
    from ..data.call import ran_by

    ran_by(shlex.join(["pyedmcl", *sys.argv[1:]]))
    sys.exit(run(lambda: app(prog_name="pyedmcl"), code_of, message_of))
