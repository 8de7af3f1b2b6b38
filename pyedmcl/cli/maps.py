"""Commands from data to map: ``check``, ``suggest``, ``embed-dimension``, ``embedding-scan``, ``xmap`` and its grid."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ConstantSeriesWarning, InputError, ReadingWarning
from . import options
from .methods import Asked, derived
from .options import FILES
from .output import Talk, check_table, finished, in_options, running, table_of_windows, write_table

if TYPE_CHECKING:
    from ..results.edges import Edge
    from ..series.series import Series


# ``pyedmcl check``: what a table says about itself before anything is computed from it.


@derived("check", table=True)
def check(asked: Asked) -> None:
    """Look at a table before anything is computed from it: times, gaps, length, seasons, trends, ties, constants."""
    talk = asked.talk
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReadingWarning)  # which the reading shows
        series = asked.table()
    reading = series.reading
    from ..arguments import many

    checked = asked.call(series, doing="checking")
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
        "suggested": _suggested(asked, series), "reading": None if reading is None else reading.described(),
    })  # fmt: skip


_FEW_PAIRS = 1e8  # of rows, of all series, which take some seconds


def _suggested(asked: Asked, series: Series) -> list[dict[str, Any]] | None:
    """A line for each series on what to take; None where there is no device, or it would take long."""
    from ..errors import DeviceNotFoundError

    if series.n_series * series.n_steps**2 > _FEW_PAIRS:
        asked.talk.summary("'pyedmcl suggest' recommends E, tau, Theiler window and radius")
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the remarks say it
            found = asked.call(series, function="suggest", doing="finding E and tau").to_dict()
    except (DeviceNotFoundError, InputError):  # which 'pyedmcl suggest' tells
        return None
    rows = [dict(zip(found, row, strict=True)) for row in zip(*found.values(), strict=True)]
    for row in rows:
        taken = "take E={E}, tau={tau}, Theiler window {theiler}, radius {radius:.4g}"
        said = taken.format(**row) if row["E"] else row["reasons"].partition(". ")[0]
        asked.talk.summary(f"  {row['series']}: {said}")
    if rows:
        asked.talk.summary("'pyedmcl suggest' says why")
    return rows


# ``pyedmcl suggest``: E, tau, Theiler window and radius of each series, and why.


@derived("suggest", file=("TABLE.csv", "the recommendations"), table=True)
def suggest(asked: Asked) -> None:
    """Recommend E, tau, Theiler window and radius of each series, and say why."""
    result = asked.call(asked.table(), doing="finding E and tau")
    table, talk = result.to_dict(), asked.talk
    rows = list(zip(*table.values(), strict=True))
    shown = [[f"{value:.4g}" if isinstance(value, float) else str(value) for value in row[:-1]] for row in rows]
    talk.table(tuple(table)[:-1], shown[:_ROWS], right=tuple(table)[1:-1])
    talk.cut(len(shown), _ROWS)
    for row in rows[:_ROWS]:
        talk.summary(f"{row[0]}: {row[-1]}")
    asked.write(result, tuple(table), rows, f"{len(rows):,} series")
    asked.document({"suggested": [dict(zip(table, row, strict=True)) for row in rows],
                    "provenance": dict(result.provenance)})  # fmt: skip


# ``pyedmcl embed-dimension``: the best E of each series.


@derived("embed_dimension", file=("TABLE.csv", "series, E and the skill at each E"), table=True)
def embed_dimension(
    asked: Asked,
    target: Annotated[
        str | None,
        typer.Option("--target", metavar="Y", help="Series that each of them predicts. (default: itself)",
                     show_default=False),
    ] = None,
    picture: options.Picture = None,
) -> None:  # fmt: skip
    """Find the embedding dimension at which each series predicts itself best."""
    series = asked.table()
    target_series = None if target is None else asked.load([target])
    import numpy as np

    result = asked.call(series, target=target_series, doing="finding E")
    best = np.atleast_1d(np.asarray(result.E))
    skill = np.atleast_2d(np.asarray(result.rho))
    names = list(series.names)
    at_best = [float(row[E - 1]) for row, E in zip(skill, best.tolist(), strict=True)]
    if asked.output is None:
        rows = [(name, int(E), f"{rho:.4f}") for name, E, rho in zip(names, best, at_best, strict=True)]
        asked.talk.table(("series", "E", "rho"), rows, right=("E", "rho"))
    header = ["series", "E", "rho", *(f"rho_E{E}" for E in range(1, skill.shape[1] + 1))]
    asked.write(result, header, _rows(names, best, at_best, skill), f"E of {len(names):,} series")
    from ..plot import skill_against_E
    from ..plot.figure import as_label

    asked.draw(partial(skill_against_E, result), "skill against E", title=as_label(asked.input.name))
    asked.document({"names": names, "E": best, "rho": skill, "neighbors": result.provenance["neighbors"]})


def _rows(names: list[str], best: Any, at_best: list[float], skill: Any) -> list[list[object]]:
    return [
        [name, int(E), rho, *(float(value) for value in row)]
        for name, E, rho, row in zip(names, best, at_best, skill, strict=True)
    ]


# ``pyedmcl embedding-scan``: what helps to choose E and tau of each series.


_ROWS = 40  # of the table that is printed


@derived("embedding_scan", file=("TABLE.csv", "the skill of all combinations"), table=True)
def embedding_scan(
    asked: Asked,
    tolerance: Annotated[
        float,
        typer.Option("--tolerance", help="Take the smallest E whose skill is within this of the best.",
                     rich_help_panel="Embedding"),
    ] = 0.0,
    information: Annotated[
        str | None,
        typer.Option("--information", metavar="binned|kraskov", help="Also find the lag at which the mutual "
                     "information has its first minimum.", show_default=False, rich_help_panel="Embedding"),
    ] = None,
    false_neighbors: Annotated[
        bool,
        typer.Option("--false-neighbors", help="Also find the smallest E with 1 % of false nearest neighbours, at the "
                     "best tau.", rich_help_panel="Embedding"),
    ] = False,
    picture: options.Picture = None,
) -> None:  # fmt: skip
    """Find the E and tau at which each series predicts itself best, and what other criteria say of them."""
    series, talk = asked.table(), asked.talk
    scan = asked.call(series, doing="finding E and tau")
    best = scan.best(tolerance)
    rows = _best_rows(series.names, [best] if scan.single else best, scan.Tp)
    if information is not None:
        found = asked.call(series, function="mutual_information", method=information, doing="mutual information")
        _add(rows, "first_minimum", dict(zip(series.names, _each(found.first_minimum()), strict=True)))
    if false_neighbors:
        _add(rows, "unfolded", _unfolded(asked, series, rows))
    header = tuple(rows[0])
    shown = [
        tuple(f"{value:.4f}" if isinstance(value, float) else str(value) for value in row.values()) for row in rows
    ]
    talk.table(header, shown[:_ROWS], right=header[1:])
    talk.cut(len(shown), _ROWS)
    asked.write(scan, ("series", "E", "tau", "Tp", "rho"), _embedding_scan_rows(scan),
                f"skill of {scan.rho.size:,} combinations")  # fmt: skip
    asked.draw(scan.plot, "skill over E and tau")
    asked.document({
        "names": list(series.names), "axes": list(scan.axes),
        "E": list(scan.E), "tau": list(scan.tau), "Tp": list(scan.Tp), "rho": scan.rho, "best": rows,
        "provenance": dict(scan.provenance),
    })  # fmt: skip


def _each(value: Any) -> list[int]:
    import numpy as np

    return [int(one) for one in np.atleast_1d(value)]


def _best_rows(names: tuple[str, ...], found: list[dict[str, Any]], steps: tuple[int, ...]) -> list[dict[str, Any]]:
    """A row for each series and step ahead."""
    rows = []
    for name, best in zip(names, found, strict=True):
        for at, Tp in enumerate(steps):
            best_of_step = {key: value[at] if len(steps) > 1 else value for key, value in best.items()}
            rows.append({"series": name, "Tp": Tp, **best_of_step})
    return rows


def _add(rows: list[dict[str, Any]], name: str, values: dict[str, int]) -> None:
    for row in rows:
        row[name] = values[row["series"]]


def _unfolded(asked: Asked, series: Series, rows: list[dict[str, Any]]) -> dict[str, int]:
    """The smallest dimension with few false neighbours, of each series at its best lag; 0 where there is none."""
    lag_of = {row["series"]: row["tau"] for row in reversed(rows)}
    out: dict[str, int] = {}
    for tau in sorted(set(lag_of.values())):
        names = [name for name in series.names if lag_of[name] == tau]
        places = [series.names.index(name) for name in names]
        unfolded = asked.call(series.part(*places), function="false_neighbors", E_max=max(asked.words["E"]), tau=tau,
                              doing="false neighbours")  # fmt: skip
        out |= dict(zip(names, _each(unfolded.dimension()), strict=True))
    return out


def _embedding_scan_rows(scan: Any) -> list[list[Any]]:
    rho = scan.rho[None] if scan.single else scan.rho
    return [
        [name, E, tau, Tp, float(rho[i, j, k, at])]
        for i, name in enumerate(scan.names) for j, E in enumerate(scan.E) for k, tau in enumerate(scan.tau)
        for at, Tp in enumerate(scan.Tp)
    ]  # fmt: skip


# ``pyedmcl xmap``: from a file to the N x N map of cross-map skill.


EDGE_HEADER = ("cause (target)", "effect (library)", "rho", "E")


@derived("xmap", table=True)
def xmap(
    asked: Asked,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="OUT.zarr", help="Folder of the result, a Zarr v3 group; with --windows a table "
            "(.csv, .tsv, .json).", show_default=False
        ),
    ],
    targets: options.Targets = None,
    edges: Annotated[
        int, typer.Option("--edges", metavar="N", min=0, help="Also print the N strongest pairs.", show_default=False)
    ] = 0,
) -> None:  # fmt: skip
    """Map the cross-map skill of all pairs of series: which ones drive which?

    High skill in row i, column j is evidence that series j drives series i.
    After an interruption the same command continues where it ended.
    """
    talk, windowed = asked.talk, asked.words["windows"] is not None
    _check_output(output, windowed)
    series = asked.table()
    target_series = asked.targets(targets)
    flat = list(series.constant)
    talk.remark(f"{asked.input}: {series.n_series:,} series of {series.n_steps:,} steps")
    if flat:
        talk.remark(f"{len(flat)} series never change, so their skill is NaN: {_some(flat)}")
    was_finished = asked.words["resume"] and not windowed and finished(output)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConstantSeriesWarning)  # told above
        result = asked.call(series, targets=target_series, out=None if windowed else output, doing="cross mapping")
    if windowed:
        _write_windows(asked, result, output, edges)
        return
    if was_finished:
        talk.remark(f"{output} was complete already, so nothing was computed; --no-resume starts again")
    best = result.edges(top=edges) if edges else []
    talk.summary(f"{output}: {_size(result)}, {_dimensions(result.E)}{_seconds(result.provenance)}")
    if edges:
        print_edges(talk, best)
    asked.document({
        "n_series": series.n_series, "n_steps": series.n_steps, **_named(result), "E": result.E, "constant": flat,
        "edges": [edge.named() for edge in best], "provenance": dict(result.provenance),
    })  # fmt: skip


def _named(result: Any) -> dict[str, list[str]]:
    """The names of a map's series, and of its targets where these are others."""
    return {"names": list(result.names), **({} if result.targets is None else {"targets": list(result.targets)})}


def _check_output(output: Path, windowed: bool) -> None:
    """Refuse, before anything is computed, a place that this result cannot be written to."""
    if windowed:
        check_table(output, "skill within windows")
    elif output.suffix.lower() in FILES:
        raise typer.BadParameter(
            f"{output}: -o names the folder of the result, such as {output.with_suffix('.zarr')}; afterwards "
            "'pyedmcl export' and 'pyedmcl plot' write files from it"
        )


def _write_windows(asked: Asked, result: Any, output: Path, edges: int) -> None:
    """A row for each window and pair."""
    header, rows = table_of_windows(result)
    write_table(output, header, rows)
    asked.talk.summary(f"{output}: {len(result.starts):,} windows of {result.width:,} rows, {len(rows):,} rows of skill"
                       f"{_seconds(result.provenance)}")  # fmt: skip
    best = result.edges(top=edges) if edges else []
    if best:
        print_edges(asked.talk, best)
    asked.document({
        "windows": len(result.starts), "width": result.width, **_named(result),
        "edges": [edge.named() for edge in best], "provenance": dict(result.provenance),
    })  # fmt: skip


def print_edges(talk: Talk, edges: Sequence[Edge]) -> None:
    """A table of edges on stdout."""
    rows = [(edge.target, edge.library, f"{edge.rho:.4f}", edge.E) for edge in edges]
    talk.table(EDGE_HEADER, rows, right=("rho", "E"))


def _size(result: Any) -> str:
    pairs = f"{len(result.names):,} x {len(result.E):,} pairs"
    return f"{len(result):,} of {pairs} kept ({result.keep})" if hasattr(result, "keep") else pairs


def _dimensions(E: Any) -> str:
    import numpy as np

    values = np.atleast_1d(np.asarray(E))
    low, high = int(values.min()), int(values.max())
    return f"E = {low}" if low == high else f"E = {low} to {high} (median {np.median(values):g})"


def _seconds(provenance: Any) -> str:
    device = provenance.get("device")
    name = device.get("name") if isinstance(device, dict) else device
    seconds = provenance.get("seconds")
    return (f", {seconds:.3g} s" if isinstance(seconds, (int, float)) else "") + (f" on {name}" if name else "")


def _some(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")


# ``pyedmcl xmap-grid``: cross maps for all combinations of E, tau, Tp, theta and folds.


@derived("xmap_grid", table=True)
def xmap_grid(
    asked: Asked,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FOLDER", help="Folder of the result: a Zarr v3 store for each map.",
                     show_default=False),
    ],
    saturation: Annotated[
        float,
        typer.Option("--saturation", metavar="TOLERANCE", help="For --table and --plot: the smallest E whose skill is "
                     "within this of the best, of each pair.", rich_help_panel="Embedding"),
    ] = 0.02,
    table: Annotated[
        Path | None,
        typer.Option("--table", metavar="TABLE.csv", help="Write skill and E of each pair (.csv, .tsv, .json).",
                     show_default=False),
    ] = None,
    picture: options.Picture = None,
    targets: options.Targets = None,
) -> None:  # fmt: skip
    """Map all pairs of series for many embeddings at once, and find the E at which the skill of each pair saturates.

    After an interruption the same command continues where it ended.
    """
    words = asked.words
    if table is not None:
        check_table(table)
    if (table is not None or picture is not None) and len(words["E"]) < 2:
        raise typer.BadParameter("--table and --plot show the E at which skill saturates: --E needs several values")
    from ..crossmap.grid import as_tolerance

    as_tolerance(saturation, "saturation")
    series = asked.table()
    fixed = {name: words[name] if len(words[name]) > 1 else words[name][0] for name in ("tau", "Tp")}
    grid = asked.call(series, targets=asked.targets(targets), out=output, **fixed, doing="cross mapping")
    lengths = " x ".join(f"{len(values)} {name}" for name, values in grid.axes.items())
    asked.talk.summary(f"{output}: maps of {grid.rho.shape[-2]:,} x {grid.rho.shape[-1]:,} pairs for {lengths}")
    if table is not None or picture is not None:
        _saturation(asked, grid, saturation, table)
    asked.document({
        "axes": {name: list(values) for name, values in grid.axes.items()},
        "fixed": dict(grid.fixed), **_named(grid), "provenance": dict(grid.provenance),
    })  # fmt: skip


def _saturation(asked: Asked, grid: Any, tolerance: float, table: Path | None) -> None:
    folded = grid.mean("fold") if "fold" in grid.axes else grid
    saturated = folded.saturation(tolerance)
    if table is not None:
        frame = saturated.to_frame()
        write_table(table, tuple(frame.columns), frame.itertuples(index=False, name=None))
        asked.talk.summary(f"{table}: skill and E of {len(frame):,} pairs")
    asked.draw(folded.plot, "skill over E")
