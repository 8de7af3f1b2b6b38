"""``pyedmcl rqa``, ``rqa-batch`` and ``recurrence-plot``, and what these commands share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .options import beside_groups, client_at, load, load_groups, parse_columns, part_of, shown_names
from .output import Talk, check_pictures, check_place, check_result, write_bytes, write_result

if TYPE_CHECKING:
    from ..recurrence.measures import RecurrenceResult
    from ..series.series import Series


_STATES = "Recurrence"

Column = Annotated[
    str | None,
    typer.Option(
        "--column", metavar="X", help="The series: a name, or digits for a position from 0. (default: the only one)",
        show_default=False,
    ),
]  # fmt: skip
Against = Annotated[
    str | None,
    typer.Option("--against", metavar="Y", help="Cross recurrence of X with this series.", show_default=False),
]
Together = Annotated[
    str | None,
    typer.Option(
        "--columns", metavar="A,B,...", help="In place of --column: several series whose values at one time are one "
        "state ('all' takes every series).", show_default=False,
    ),
]  # fmt: skip


def parse_radius(text: str, threshold: str) -> Any:
    """The radius as :func:`pyedmcl.rqa` takes it: one value, or a list for ``0.5,0.7``."""
    parse, form = _FORMS.get(threshold, (float, "a number"))
    try:
        values = [parse(item) for item in text.split(",")]
    except ValueError:
        raise typer.BadParameter(f"--radius {text}: {form} is needed, or several with commas") from None
    return values if len(values) > 1 else values[0]


def _corridor(text: str) -> tuple[float, float]:
    inner, outer = (float(part) for part in text.split(":"))
    return inner, outer


_FORMS: dict[str, tuple[Callable[[str], Any], str]] = {
    "corridor": (_corridor, "a pair such as 0.2:0.5"),
    "neighbours": (int, "a number of neighbours"),
}


def states(
    path: Path, column: str | None, together: str | None, against: str | None, time_column: str | None,
    dataset: str | None,
) -> tuple[Series, Series | None]:  # fmt: skip
    """The series that are embedded and, for cross recurrence, the other ones.

    Raises
    ------
    InputError
        For what cannot be read.
    typer.BadParameter
        Options that contradict each other, or do not say which series is meant.
    """
    if together is not None and column is not None:
        raise typer.BadParameter("--columns stands in place of --column: give one of them")
    if together is not None and against is not None:
        raise typer.BadParameter("--against compares single series: use it with --column")
    if against is not None and column is None:
        raise typer.BadParameter("--against needs --column")
    chosen_columns = None if together in (None, "all") else parse_columns(together)
    if column is not None:
        chosen_columns = [column, *([against] if against not in (None, column) else [])]
    series = load(path, chosen_columns, time_column, dataset)
    if column is None and together is None and series.n_series > 1:
        raise typer.BadParameter(
            f"--column is needed to say which of these series is meant: {shown_names(series)} (or --columns, for "
            "several as a state)"
        )
    if against is None:
        return series, None
    return part_of(series, 0), part_of(series, series.n_series - 1)


def title(x: Series, y: Series | None) -> str:
    """What was analysed, in few words."""
    shown = ", ".join(x.names[:3]) + (f" and {x.n_series - 3} more" if x.n_series > 3 else "")
    return shown if y is None else f"{shown} (x) and {y.names[0]} (y)"


# ``pyedmcl rqa``: quantify the recurrence of a series.


_SHOWN = ("RR", "DET", "L", "Lmax", "ENTR", "LAM", "TT", "Vmax", "TREND")


def rqa(
    input: options.Input,
    radius: Any,
    column: Column = None,
    against: Against = None,
    columns: Together = None,
    m: Any = 1,
    tau: Any = 1,
    metric: Any = "euclidean",
    theiler: Any = None,
    convention: Any = "pyrqa",
    threshold: Any = "fixed",
    normalize: Any = None,
    radius_unit: Any = "data",
    lmin: Any = 2,
    vmin: Any = 2,
    wmin: Any = 2,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="TABLE.csv",
            help="Write the measures, a row per radius (.csv, .tsv, .json), or the whole result (.edm).",
            show_default=False,
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="RP.png", help="Draw the recurrence plot.", show_default=False),
    ] = None,
    lines: Annotated[
        Path | None,
        typer.Option("--lines", metavar="LINES.png", help="Draw the histograms of lines.", show_default=False),
    ] = None,
    checkpoint: Any = None,
    join: Any = False,
    part: Any = None,
    pixels: Any = None,
    regular: Any = None,
    time_column: options.TimeColumn = None,
    dataset: options.Dataset = None,
    exact: Any = True,
    dtype: Any = "float32",
    embedded: Any = False,
    tile: Any = None,
    tune: Any = None,
    device: options.Device = None,
    client: Any = None,
    progress: options.Progress = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Quantify recurrence: how often, how long and how regularly the states of a series come back."""  # fmt: skip
    talk = Talk(quiet=quiet, as_json=json, progress=progress)
    radii = parse_radius(radius, threshold)
    if isinstance(radii, list) and (plot is not None or lines is not None):
        raise typer.BadParameter(f"--radius {radius}: a picture shows one radius")
    check_result(output)
    check_pictures(plot, lines)
    x, y = states(input, column, columns, against, time_column, dataset)
    from ..recurrence.rqa import rqa as quantify

    common: dict[str, Any] = {
        "m": m, "tau": tau, "metric": metric, "theiler": theiler, "convention": convention,
        "threshold": threshold,
        "regular": regular, "normalize": normalize, "radius_unit": radius_unit, "dtype": dtype, "exact": exact,
        "embedded": embedded, "tune": tune, "device": device,
    }  # fmt: skip
    with client_at(client) as workers, talk.progress("counting lines") as report:
        result: Any = quantify(
            x, y, radius=radii, tile=tile, lmin=lmin, vmin=vmin, wmin=wmin, progress=report, checkpoint=checkpoint,
            join=join, part=part, client=workers, **common,
        )  # fmt: skip
    results = list(result) if isinstance(radii, list) else [result]
    rows = [{"radius": one.radius, **one.to_dict()} for one in results]
    if output is not None:
        write_result(output, result, tuple(rows[0]), [[_cell(value) for value in row.values()] for row in rows])
    if plot is not None:
        _draw(talk, plot, results[0], x, y, radius=radii, pixels=pixels, **common)
    if lines is not None:
        results[0].plot(lines)
    files = {name: None if path is None else str(path)
             for name, path in (("output", output), ("plot", plot), ("lines", lines))}  # fmt: skip
    _tell(talk, results, title(x, y), convention, files)
    counts = results[0].counts
    talk.document({"series": list(x.names), "against": None if y is None else y.names[0], "n_rows": counts.n_rows,
                   "n_columns": counts.n_columns, "results": rows, **files,
                   "provenance": dict(results[0].provenance)})  # fmt: skip


def _draw(talk: Talk, path: Path, result: RecurrenceResult, x: Series, y: Series | None, **options: Any) -> None:
    """Draw the recurrence plot of the radius that was quantified."""
    from ..plot.figure import as_label
    from ..recurrence.images import recurrence_plot

    with talk.progress("drawing") as report:
        drawn = recurrence_plot(x, y, progress=report, **options)
    embedding = f"m = {options['m']}, tau = {options['tau']}"
    drawn.plot(path, title=f"{as_label(title(x, y))}, {embedding}, RR = {result.recurrence_rate:.4g}")


def _tell(
    talk: Talk, results: list[RecurrenceResult], name: str, convention: str, files: Mapping[str, str | None]
) -> None:
    """Show the measures: all of them for one radius, the usual ones side by side for several."""
    from ..recurrence.measures import SHORT_NAMES

    if len(results) > 1:
        header = ("radius", *_SHOWN)
        talk.table(header, [_row(result) for result in results], right=header)
    else:
        table = [(short, long.replace("_", " "), _number(results[0][short])) for short, long in SHORT_NAMES.items()]
        talk.table(("", "measure", "value"), table, right=("value",))
    written = "".join(f"; {path}" for path in files.values() if path is not None)
    counts = results[0].counts
    talk.summary(f"{name}: {counts.n_rows:,} x {counts.n_columns:,} points, convention {convention}{written}")


def _row(result: Any) -> list[str]:
    radius = result.radius
    shown = ":".join(f"{part:.6g}" for part in radius) if isinstance(radius, tuple) else f"{radius:.6g}"
    return [shown, *(_number(result[name]) for name in _SHOWN)]


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"


def _cell(value: Any) -> Any:
    return ":".join(map(repr, value)) if isinstance(value, tuple) else value


# ``pyedmcl rqa-batch``: quantify the recurrence of many series.


_BATCH_SHOWN = ("RR", "DET", "L", "ENTR", "LAM", "TT")
_ROWS = 20  # of the table that is printed


def rqa_batch(
    input: options.Input,
    radius: Any,
    groups: Any = None,
    columns: options.Columns = None,
    exclude: options.Exclude = None,
    against: Annotated[
        str | None,
        typer.Option(
            "--against", metavar="A,B,...", help="Cross recurrence of each of --columns with one of these series.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="TABLE.csv", help="Write all measures, a row per series and radius "
            "(.csv, .tsv, .json), or the whole result (.edm).", show_default=False,
        ),
    ] = None,
    m: Any = 1,
    tau: Any = 1,
    metric: Any = "euclidean",
    theiler: Any = None,
    convention: Any = "pyrqa",
    threshold: Any = "fixed",
    normalize: Any = None,
    radius_unit: Any = "data",
    lmin: Any = 2,
    vmin: Any = 2,
    wmin: Any = 2,
    errors: Any = "nan",
    regular: Any = None,
    time_column: options.TimeColumn = None,
    dataset: options.Dataset = None,
    exact: Any = True,
    dtype: Any = "float32",
    tile: Any = None,
    tune: Any = None,
    device: options.Device = None,
    progress: options.Progress = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Quantify the recurrence of each series of a file, or of each group of its rows, in one run."""  # fmt: skip
    talk = Talk(quiet=quiet, as_json=json, progress=progress)
    radii = parse_radius(radius, threshold)
    chosen, keys, others = (parse_columns(text) for text in (columns, groups, against))
    if others is not None and (chosen is None or len(chosen) != len(others)):
        raise typer.BadParameter("--against needs --columns, and as many series as these")
    check_result(output)
    chosen = beside_groups(chosen, groups)
    labels = load_groups(input, chosen, groups, dataset)
    series = load(input, chosen, time_column, dataset)
    y = None if others is None else load(input, others, time_column, dataset)
    import pyedmcl

    with talk.progress("counting lines") as report:
        result = pyedmcl.rqa_batch(
            series, y, groups=labels, regular=regular, m=m, tau=tau, radius=radii, metric=metric,
            theiler=theiler, lmin=lmin, vmin=vmin, wmin=wmin, convention=convention,
            threshold=threshold, normalize=normalize, radius_unit=radius_unit, errors=errors, exact=exact, dtype=dtype,
            tile=tile, tune=tune, device=device, progress=report,
        )  # fmt: skip
    table = _table(result, keys or [], series.names)
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    if output is not None:
        write_result(output, result, tuple(table), [[_cell(value) for value in row.values()] for row in rows])
    _show(talk, result, table, [*(keys or []), "series", "radius_used"])
    n = len(result.x)
    talk.summary(f"{n:,} series, {len(rows):,} results, convention {convention}" + (f"; {output}" if output else ""))
    talk.document({
        "series": list(series.names), "against": None if y is None else list(y.names), "groups": keys or [],
        "results": rows, "output": None if output is None else str(output), "provenance": dict(result.provenance),
    })  # fmt: skip


def _table(found: Any, keys: list[str], names: tuple[str, ...]) -> dict[str, list[Any]]:
    """Columns of all results, with the names of groups and series."""
    out = found.to_dict()
    groups = out.pop("group", [])
    named = {keys[0]: groups} if len(keys) == 1 else {
        key: [group[at] for group in groups] for at, key in enumerate(keys)
    }  # fmt: skip
    out["series"] = [names[place] for place in out["series"]]
    return {**named, **out}


def _show(talk: Talk, found: Any, table: dict[str, list[Any]], first: list[str]) -> None:
    measures = {name: found.measure(name).tolist() for name in _BATCH_SHOWN}
    shown = [table[name] for name in first] + list(measures.values())
    rows = [[_text(value) for value in row] for row in zip(*(column[:_ROWS] for column in shown), strict=True)]
    talk.table((*first, *measures), rows, right=("radius_used", *measures))
    talk.cut(len(table["series"]), _ROWS)


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return ":".join(map(_text, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


# ``pyedmcl recurrence-plot``: the plot alone, of series of any length.


def recurrence_plot(
    input: options.Input,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="RP.png", show_default=False,
            help="The picture (.png, .pdf, .svg), the pixels as numbers (.npy), or the whole result (.edm).",
        ),
    ],
    radius: Any = None,
    column: Column = None,
    against: Against = None,
    columns: Together = None,
    m: Any = 1,
    tau: Any = 1,
    metric: Any = "euclidean",
    convention: Any = "pyrqa",
    threshold: Any = "fixed",
    normalize: Any = None,
    radius_unit: Any = "data",
    pixels: Any = None,
    plain: Annotated[
        bool, typer.Option("--plain", help="Only the pixels, without axes; .png, and needs no matplotlib.")
    ] = False,
    black: Annotated[
        float | None,
        typer.Option("--black", metavar="SHARE", help="Share of recurrent cells drawn black. (default: chosen)",
                     show_default=False),
    ] = None,
    regular: Any = None,
    time_column: options.TimeColumn = None,
    dataset: options.Dataset = None,
    exact: Any = True,
    dtype: Any = "float32",
    embedded: Any = False,
    tune: Any = None,
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
    radii = None if radius is None else parse_radius(radius, threshold)
    x, y = states(input, column, columns, against, time_column, dataset)
    import pyedmcl

    from ..plot.figure import as_label

    common: dict[str, Any] = {
        "m": m, "tau": tau, "metric": metric, "normalize": normalize, "pixels": pixels, "dtype": dtype,
        "regular": regular, "embedded": embedded, "tune": tune, "device": device,
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
        drawn.plot(output, title=f"{as_label(title(x, y))}, m = {m}, tau = {tau}", **shade)
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
        from ..plot.figure import check_png

        check_png(output)
    else:
        check_pictures(output)


def _save_numbers(path: Path, values: Any) -> None:
    import io

    import numpy as np

    memory = io.BytesIO()
    np.save(memory, values)
    write_bytes(path, memory.getbuffer())
