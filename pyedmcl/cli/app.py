"""The command ``pyedmcl``."""

from __future__ import annotations

from typing import Annotated

import typer

from . import (
    ccm,
    ccm_matrix,
    db,
    demo,
    devices,
    embed_dimension,
    export,
    multiview,
    plot,
    predict_interval,
    predict_nonlinear,
    recurrence_plot,
    rqa,
    simplex,
    smap,
    surrogate_test,
    tune,
    xmap,
)
from .exits import HELP, Commands, ask_for_traceback

app = typer.Typer(
    name="pyedmcl",
    cls=Commands,
    help="Empirical dynamic modelling on any OpenCL device: from time series to a map of which drives which.",
    epilog=HELP,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(value: bool) -> None:
    if value:
        from .. import __version__

        typer.echo(f"pyedmcl {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_version, is_eager=True)
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of an error.", callback=ask_for_traceback)
    ] = False,
) -> None:
    pass


app.command("xmap", epilog=HELP)(xmap.xmap)
app.command("embed-dimension", epilog=HELP)(embed_dimension.embed_dimension)
app.command("simplex", epilog=HELP)(simplex.simplex)
app.command("smap", epilog=HELP)(smap.smap)
app.command("predict-nonlinear", epilog=HELP)(predict_nonlinear.predict_nonlinear)
app.command("predict-interval", epilog=HELP)(predict_interval.predict_interval)
app.command("multiview", epilog=HELP)(multiview.multiview)
app.command("ccm", epilog=HELP)(ccm.ccm)
app.command("ccm-matrix", epilog=HELP)(ccm_matrix.ccm_matrix)
app.command("surrogate-test", epilog=HELP)(surrogate_test.surrogate_test)
app.command("rqa", epilog=HELP)(rqa.rqa)
app.command("recurrence-plot", epilog=HELP)(recurrence_plot.recurrence_plot)
app.command("plot", epilog=HELP)(plot.plot)
app.command("export", epilog=HELP)(export.export)
app.command("tune", epilog=HELP)(tune.tune)
app.command("devices", epilog=HELP)(devices.devices)
app.command("demo", epilog=HELP)(demo.demo)
app.add_typer(db.app)


def main() -> None:
    """Run the command line; the entry point of the console script."""
    app(prog_name="pyedmcl")
