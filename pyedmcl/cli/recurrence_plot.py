"""``pyedmcl recurrence-plot``: the plot alone, of series of any length."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from . import options
from . import recurrence as shared
from .files import check_pictures, check_place, write_bytes
from .talk import Talk


def recurrence_plot(
    input: options.Input,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="RP.png", show_default=False,
            help="The picture (.png, .pdf, .svg), the pixels as numbers (.npy), or the whole result (.edm).",
        ),
    ],
    radius: Annotated[
        str | None,
        typer.Option(
            "--radius", metavar="R", help=shared.RADIUS_HELP + " Without it distances are drawn.", show_default=False,
            rich_help_panel="Recurrence",
        ),
    ] = None,
    column: shared.Column = None,
    against: shared.Against = None,
    columns: shared.Together = None,
    m: shared.M = 1,
    tau: shared.Tau = 1,
    metric: shared.Metric = "euclidean",
    convention: shared.Convention = "pyrqa",
    threshold: shared.Threshold = "fixed",
    normalize: shared.Normalize = None,
    radius_unit: shared.RadiusUnit = "data",
    pixels: shared.Pixels = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="Only the pixels, without axes; .png, and needs no matplotlib.")
    ] = False,
    black: Annotated[
        float | None,
        typer.Option("--black", metavar="SHARE", help="Share of recurrent cells drawn black. (default: chosen)",
                     show_default=False),
    ] = None,
    regular: options.Regular = None,
    time_column: options.TimeColumn = None,
    dataset: options.Dataset = None,
    exact: shared.Exact = True,
    dtype: options.Dtype = "float32",
    device: options.Device = None,
    progress: options.Progress = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Draw which states come back when, or, without --radius, how far apart they are."""  # fmt: skip
    talk = Talk(quiet=quiet, as_json=json, progress=progress)
    if radius is None and black is not None:
        raise typer.BadParameter("--black is a share of recurrent cells: give --radius")
    _check(output, plain)
    radii = None if radius is None else shared.parse_radius(radius, threshold)
    x, y = shared.states(input, column, columns, against, time_column, dataset)
    import pyedmcl

    from ..plot.figure import as_label

    common: dict[str, Any] = {
        "m": m, "tau": tau, "metric": metric, "normalize": normalize, "pixels": pixels, "dtype": dtype,
        "regular": regular, "device": device,
    }  # fmt: skip
    with talk.progress("drawing") as report:
        if radii is None:
            drawn: Any = pyedmcl.distance_plot(x, y, progress=report, **common)
        else:
            drawn = pyedmcl.recurrence_plot(
                x, y, radius=radii, convention=convention, threshold=threshold, radius_unit=radius_unit, exact=exact,
                progress=report, **common,
            )
    values = drawn.means if radii is None else drawn.counts
    shade = {} if black is None else {"black": black}
    if output.suffix.lower() == ".npy":
        _save_numbers(output, values)
    elif output.suffix.lower() == ".edm":
        drawn.save(output)
    elif plain:
        drawn.save(output, **shade)
    else:
        drawn.plot(output, title=f"{as_label(shared.title(x, y))}, m = {m}, tau = {tau}", **shade)
    down, across = values.shape
    talk.summary(
        f"{output}: {across:,} x {down:,} pixels of {drawn.n_columns:,} x {drawn.n_rows:,} "
        + ("distances" if radii is None else "cells")
    )
    talk.document(
        {
            "output": str(output),
            "series": list(x.names),
            "against": None if y is None else y.names[0],
            "pixels": [down, across],
            "n_rows": drawn.n_rows,
            "n_columns": drawn.n_columns,
            "radius": None if radii is None else drawn.radius,
            "recurrent": None if radii is None else int(drawn.counts.sum()),
            "provenance": dict(drawn.provenance),
        }
    )


def _check(output: Path, plain: bool) -> None:
    """Refuse, before anything is computed, what cannot be written."""
    if output.suffix.lower() in (".npy", ".edm"):
        check_place(output)
    elif plain:
        from ..plot.png import check_png

        check_png(output)
    else:
        check_pictures(output)


def _save_numbers(path: Path, values: Any) -> None:
    import io

    import numpy as np

    memory = io.BytesIO()
    np.save(memory, values)
    write_bytes(path, memory.getbuffer())
