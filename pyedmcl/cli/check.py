"""``pyedmcl check``: what a table says about itself before anything is computed from it."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Annotated

import typer

from ..errors import ReadingWarning
from . import options
from .exits import in_options, running
from .inputs import beside_groups, load, load_groups, parse_columns
from .talk import Talk


def check(
    input: options.Input,
    E_max: Annotated[int, typer.Option("--E-max", help="Dimension for which there should be rows enough.")] = 10,
    columns: options.Columns = None,
    exclude: options.Exclude = None,
    groups: options.Groups = None,
    regular: options.Regular = "insert",
    purpose: Annotated[
        str, typer.Option("--purpose", metavar="maps|recurrence", help="What the table is for.")
    ] = "maps",
    time_column: options.TimeColumn = None,
    dataset: options.Dataset = None,
    progress: options.Progress = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Look at a table before anything is computed from it: times, gaps, length, seasons, trends, ties, constants."""
    talk = Talk(quiet=quiet, as_json=json, progress=progress)
    chosen_columns = beside_groups(parse_columns(columns), groups)
    labels = load_groups(input, chosen_columns, groups, dataset)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReadingWarning)  # which the reading shows
        series = load(input, chosen_columns, time_column, dataset)
    reading = series.reading
    import pyedmcl

    from ..data.columns import many

    with talk.progress("checking") as report:
        checked = pyedmcl.check(
            series, E_max=E_max, groups=labels, purpose=purpose, regular=regular or "insert", progress=report
        )
    for line in [] if reading is None else str(reading).split("\n"):
        talk.summary(in_options(line, running().command))
    size = f"{checked.n_series:,} series of {checked.n_steps:,} rows"
    talk.summary(f"{size}, {many(len(checked.remarks), 'remark')}")
    remarks = []
    for remark in checked.remarks:
        text = in_options(remark.text, running().command, others=("surrogate", "regular"))
        talk.summary(f"  {replace(remark, text=text)}")
        remarks.append({"code": remark.code, "series": remark.series, "text": text})
    talk.document({
        "n_series": checked.n_series, "n_steps": checked.n_steps, "remarks": remarks,
        "reading": None if reading is None else reading.described(),
    })  # fmt: skip
