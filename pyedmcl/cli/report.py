"""``pyedmcl report``: results as one HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import options
from .inputs import parse_columns
from .talk import Talk


def report(
    results: Annotated[
        list[Path],
        typer.Argument(
            metavar="RESULT...", show_default=False,
            help="What 'xmap', 'xmap-grid' or 'ccm-matrix' wrote, finished or not, or files that save() wrote (.edm). "
            "Several become sections of one page.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="REPORT.html", help="The page.", show_default=False)
    ],
    title: Annotated[str | None, typer.Option("--title", metavar="TEXT", help="Title of the page.")] = None,
    top: Annotated[int, typer.Option("--top", metavar="N", help="How many links its tables list.", min=1)] = 500,
    cluster: Annotated[
        bool, typer.Option("--cluster", help="Put the series of maps in order of likeness (needs SciPy).")
    ] = False,
    pair: Annotated[
        list[str] | None,
        typer.Option("--pair", metavar="CAUSE,EFFECT", show_default=False,
                     help="Show the curves of this pair first; may be given again. Default: the strongest."),
    ] = None,
    rate: Annotated[float, typer.Option("--rate", help="False discovery rate at which links are significant.")] = 0.05,
    progress: options.Progress = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Write maps, tables, networks and curves of results as one HTML file that needs no network."""  # fmt: skip
    talk = Talk(quiet=quiet, as_json=json, progress=progress)
    from ..launch.progress import reporting_to
    from ..reporting.report import report as write

    pairs = [_pair(text) for text in pair or ()]
    with talk.progress("reading") as reported, reporting_to(reported):
        write(list(results), output, title=title, top=top, cluster=cluster, pairs=pairs or None, rate=rate)
    size = output.expanduser().stat().st_size
    counted = "1 result" if len(results) == 1 else f"{len(results)} results"
    talk.summary(f"{output}: report of {counted}, {size / 1e6:.2g} MB")
    talk.document({"output": str(output), "results": [str(path) for path in results], "bytes": size})


def _pair(text: str) -> tuple[str, str]:
    names = parse_columns(text)
    if names is None or len(names) != 2:
        raise typer.BadParameter(f"--pair {text!r}: the cause and the effect are needed, such as --pair x,y")
    return names[0], names[1]
