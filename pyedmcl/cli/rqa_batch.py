"""``pyedmcl rqa-batch``: quantify the recurrence of many series."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from . import options
from . import recurrence as shared
from .files import check_result, write_result
from .inputs import beside_groups, load, load_groups, parse_columns
from .talk import Talk

_SHOWN = ("RR", "DET", "L", "ENTR", "LAM", "TT")
_ROWS = 20  # of the table that is printed


def rqa_batch(
    input: options.Input,
    radius: Annotated[
        str,
        typer.Option(
            "--radius", metavar="R[,R,...]", help=shared.RADIUS_HELP, show_default=False,
            rich_help_panel="Recurrence",
        ),
    ],
    groups: options.Groups = None,
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
    m: shared.M = 1,
    tau: shared.Tau = 1,
    metric: shared.Metric = "euclidean",
    theiler: shared.Theiler = None,
    convention: shared.Convention = "pyrqa",
    threshold: shared.Threshold = "fixed",
    normalize: shared.Normalize = None,
    radius_unit: shared.RadiusUnit = "data",
    lmin: shared.Lmin = 2,
    vmin: shared.Vmin = 2,
    wmin: shared.Wmin = 2,
    errors: Annotated[
        str,
        typer.Option(
            "--errors", metavar="nan|raise", help="Series that cannot be used: rows of NaN and a warning, or the end.",
            rich_help_panel="Recurrence",
        ),
    ] = "nan",
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
    """Quantify the recurrence of each series of a file, or of each group of its rows, in one run."""  # fmt: skip
    talk = Talk(quiet=quiet, as_json=json, progress=progress)
    radii = shared.parse_radius(radius, threshold)
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
            theiler=shared.parse_theiler(theiler), lmin=lmin, vmin=vmin, wmin=wmin, convention=convention,
            threshold=threshold, normalize=normalize, radius_unit=radius_unit, errors=errors, exact=exact, dtype=dtype,
            device=device, progress=report,
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
    measures = {name: found.measure(name).tolist() for name in _SHOWN}
    shown = [table[name] for name in first] + list(measures.values())
    rows = [[_text(value) for value in row] for row in zip(*(column[:_ROWS] for column in shown), strict=True)]
    talk.table((*first, *measures), rows, right=("radius_used", *measures))
    talk.cut(len(table["series"]), _ROWS)


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return ":".join(map(_text, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _cell(value: Any) -> Any:
    return ":".join(map(repr, value)) if isinstance(value, tuple) else value
