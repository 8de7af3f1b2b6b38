"""Commands from data to map: ``check``, ``suggest``, ``embed-dimension``, ``embedding-scan``, ``xmap`` and its grid."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ConstantSeriesWarning, InputError, ReadingWarning
from . import options
from .options import (
    FILES,
    beside_groups,
    client_at,
    load,
    load_groups,
    parse_columns,
    targets_of,
)
from .output import (
    Talk,
    check_pictures,
    check_result,
    check_table,
    finished,
    in_options,
    running,
    table_of_windows,
    write_result,
    write_table,
)

if TYPE_CHECKING:
    from ..results.edges import Edge
    from ..series.series import Series


# ``pyedmcl check``: what a table says about itself before anything is computed from it.


def check(
    input: options.Input,
    E_max: Any = 10,
    columns: options.Columns = None,
    exclude: options.Exclude = None,
    groups: Any = None,
    regular: Any = "insert",
    purpose: Any = "maps",
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

    from ..arguments import many

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
    suggested = _suggested(talk, series, labels, E_max=E_max, regular=regular or "insert")
    talk.document({
        "n_series": checked.n_series, "n_steps": checked.n_steps, "remarks": remarks, "suggested": suggested,
        "reading": None if reading is None else reading.described(),
    })  # fmt: skip


_FEW_PAIRS = 1e8  # of rows, of all series, which take some seconds


def _suggested(talk: Talk, series: Series, labels: Any, **options: Any) -> list[dict[str, Any]] | None:
    """A line for each series on what to take; None where there is no device, or it would take long."""
    import pyedmcl

    from ..errors import DeviceNotFoundError

    if series.n_series * series.n_steps**2 > _FEW_PAIRS:
        talk.summary("'pyedmcl suggest' recommends E, tau, Theiler window and radius")
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the remarks say it
            found = pyedmcl.suggest(series, groups=labels, **options).to_dict()
    except (DeviceNotFoundError, InputError):  # which 'pyedmcl suggest' tells
        return None
    rows = [dict(zip(found, row, strict=True)) for row in zip(*found.values(), strict=True)]
    for row in rows:
        talk.summary("  {series}: take E={E}, tau={tau}, Theiler window {theiler}, radius {radius:.4g}".format(**row)
                     if row["E"] else f"  {row['series']}: {row['reasons'].partition('. ')[0]}")  # fmt: skip
    if rows:
        talk.summary("'pyedmcl suggest' says why")
    return rows


# ``pyedmcl suggest``: E, tau, Theiler window and radius of each series, and why.


def suggest(
    input: options.Input,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="TABLE.csv", help="Write the recommendations (.csv, .tsv, .json), or "
                     "the whole result (.edm).", show_default=False),
    ] = None,
    E_max: Any = 10,
    columns: options.Columns = None,
    exclude: options.Exclude = None,
    groups: Any = None,
    regular: Any = None,
    time_column: options.TimeColumn = None,
    dataset: options.Dataset = None,
    dtype: Any = "float32",
    tune: Any = None,
    device: options.Device = None,
    progress: options.Progress = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Recommend E, tau, Theiler window and radius of each series, and say why."""
    talk = Talk(quiet=quiet, as_json=json, progress=progress)
    chosen_columns = beside_groups(parse_columns(columns), groups)
    check_result(output)
    labels = load_groups(input, chosen_columns, groups, dataset)
    series = load(input, chosen_columns, time_column, dataset)
    import pyedmcl

    with talk.progress("finding E and tau") as report:
        result = pyedmcl.suggest(
            series, E_max=E_max, groups=labels, regular=regular, progress=report, dtype=dtype, tune=tune, device=device
        )
    table = result.to_dict()
    rows = list(zip(*table.values(), strict=True))
    shown = [[f"{value:.4g}" if isinstance(value, float) else str(value) for value in row[:-1]] for row in rows]
    talk.table(tuple(table)[:-1], shown[:_ROWS], right=tuple(table)[1:-1])
    talk.cut(len(shown), _ROWS)
    for row in rows[:_ROWS]:
        talk.summary(f"{row[0]}: {row[-1]}")
    if output is not None:
        write_result(output, result, tuple(table), [list(row) for row in rows])
        talk.summary(f"{output}: {len(rows):,} series")
    talk.document({"output": None if output is None else str(output), "suggested": [
        dict(zip(table, row, strict=True)) for row in rows
    ], "provenance": dict(result.provenance)})  # fmt: skip


# ``pyedmcl embed-dimension``: the best E of each series.


def embed_dimension(
    input: options.Input,
    target: Annotated[
        str | None,
        typer.Option("--target", metavar="Y", help="Series that each of them predicts. (default: itself)",
                     show_default=False),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="TABLE.csv",
            help="Write series, E and the skill at each E (.csv, .tsv, .json), or the whole result (.edm).",
            show_default=False,
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option("--plot", metavar="SKILL.png", help="Draw skill against E.", show_default=False),
    ] = None,
    E_max: Any = 20,
    E_rule: Any = "best",
    tau: Any = 1,
    Tp: Any = 1,
    exclusion_radius: Any = 0,
    knn: Any = None,
    lib: Any = None,
    pred: Any = None,
    columns: options.Columns = None,
    exclude: options.Exclude = None,
    groups: Any = None,
    regular: Any = None,
    time_column: options.TimeColumn = None,
    dataset: options.Dataset = None,
    neighbors: Any = "exact",
    recall: Any = 0.99,
    dtype: Any = "float32",
    tune: Any = None,
    device: options.Device = None,
    client: Any = None,
    progress: options.Progress = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Find the embedding dimension at which each series predicts itself best."""  # fmt: skip
    talk = Talk(quiet=quiet, as_json=json, progress=progress)
    chosen_columns = beside_groups(parse_columns(columns), groups)
    check_result(output)
    check_pictures(plot)
    labels = load_groups(input, chosen_columns, groups, dataset)
    series = load(input, chosen_columns, time_column, dataset)
    target_series = None if target is None else load(input, [target], time_column, dataset)
    import numpy as np

    import pyedmcl

    with client_at(client) as workers, talk.progress("finding E") as report:
        result = pyedmcl.embed_dimension(
            series, target=target_series, E_max=E_max,
            E_rule=E_rule, tau=tau, Tp=Tp, exclusion_radius=exclusion_radius, knn=knn,
            groups=labels, regular=regular, lib_range=lib,
            pred_range=pred, progress=report, neighbors=neighbors, recall=recall, dtype=dtype,
            tune=tune, device=device, client=workers,
        )  # fmt: skip
    best = np.atleast_1d(np.asarray(result.E))
    skill = np.atleast_2d(np.asarray(result.rho))
    names = list(series.names)
    at_best = [float(row[E - 1]) for row, E in zip(skill, best.tolist(), strict=True)]
    if output is not None:
        header = ["series", "E", "rho", *(f"rho_E{E}" for E in range(1, skill.shape[1] + 1))]
        write_result(output, result, header, _rows(names, best, at_best, skill))
        talk.summary(f"{output}: E of {len(names):,} series")
    else:
        rows = [(name, int(E), f"{rho:.4f}") for name, E, rho in zip(names, best, at_best, strict=True)]
        talk.table(("series", "E", "rho"), rows, right=("E", "rho"))
    if plot is not None:
        from ..plot import skill_against_E
        from ..plot.figure import as_label

        skill_against_E(result, plot, title=as_label(input.name))
        talk.summary(f"{plot}: skill against E")
    talk.document(
        {
            "output": None if output is None else str(output),
            "names": names,
            "E": best,
            "rho": skill,
            "neighbors": result.provenance["neighbors"],
        }
    )


def _rows(names: list[str], best: Any, at_best: list[float], skill: Any) -> list[list[object]]:
    return [
        [name, int(E), rho, *(float(value) for value in row)]
        for name, E, rho, row in zip(names, best, at_best, skill, strict=True)
    ]


# ``pyedmcl embedding-scan``: what helps to choose E and tau of each series.


_ROWS = 40  # of the table that is printed


def embedding_scan(
    input: options.Input,
    E: Any = "1:10",
    tau: Any = "1:5",
    Tp: Any = "1",
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
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="TABLE.csv", help="Write the skill of all combinations "
                     "(.csv, .tsv, .json), or the whole result (.edm).", show_default=False),
    ] = None,
    plot: options.Picture = None,
    exclusion_radius: Any = 0,
    knn: Any = None,
    columns: options.Columns = None,
    exclude: options.Exclude = None,
    regular: Any = None,
    time_column: options.TimeColumn = None,
    dataset: options.Dataset = None,
    neighbors: Any = "exact",
    recall: Any = 0.99,
    dtype: Any = "float32",
    tune: Any = None,
    device: options.Device = None,
    progress: options.Progress = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Find the E and tau at which each series predicts itself best, and what other criteria say of them."""
    talk = Talk(quiet=quiet, as_json=json, progress=progress)
    chosen_columns = parse_columns(columns)
    check_result(output)
    check_pictures(plot)
    series = load(input, chosen_columns, time_column, dataset)
    import pyedmcl

    with talk.progress("finding E and tau") as report:
        scan = pyedmcl.embedding_scan(
            series, E=E, tau=tau, Tp=Tp, exclusion_radius=exclusion_radius, knn=knn, neighbors=neighbors,
            recall=recall, regular=regular, progress=report, dtype=dtype, tune=tune, device=device,
        )  # fmt: skip
        best = scan.best(tolerance)
        rows = _best_rows(series.names, [best] if scan.single else best, scan.Tp)
        if information is not None:
            least = pyedmcl.mutual_information(
                series, method=information, regular=regular, device=device
            ).first_minimum()
            _add(rows, "first_minimum", dict(zip(series.names, _each(least), strict=True)))
        if false_neighbors:
            _add(rows, "unfolded", _unfolded(
                series, rows, E, exclusion_radius=exclusion_radius, regular=regular, dtype=dtype, device=device
            ))
    header = tuple(rows[0])
    shown = [
        tuple(f"{value:.4f}" if isinstance(value, float) else str(value) for value in row.values()) for row in rows
    ]
    talk.table(header, shown[:_ROWS], right=header[1:])
    talk.cut(len(shown), _ROWS)
    if output is not None:
        write_result(output, scan, ("series", "E", "tau", "Tp", "rho"), _embedding_scan_rows(scan))
        talk.summary(f"{output}: skill of {scan.rho.size:,} combinations")
    if plot is not None:
        scan.plot(str(plot))
        talk.summary(f"{plot}: skill over E and tau")
    talk.document({
        "output": None if output is None else str(output), "names": list(series.names), "axes": list(scan.axes),
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


def _unfolded(series: Any, rows: list[dict[str, Any]], dims: list[int], **options: Any) -> dict[str, int]:
    """The smallest dimension with few false neighbours, of each series at its best lag; 0 where there is none."""
    import pyedmcl


    lag_of = {row["series"]: row["tau"] for row in reversed(rows)}
    out: dict[str, int] = {}
    for tau in sorted(set(lag_of.values())):
        names = [name for name in series.names if lag_of[name] == tau]
        places = [series.names.index(name) for name in names]
        unfolded = pyedmcl.false_neighbors(
            series.part(*places), E_max=max(dims), tau=tau, **options
        )
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


def xmap(
    input: options.Input,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="OUT.zarr", help="Folder of the result, a Zarr v3 group; with --windows a table "
            "(.csv, .tsv, .json).", show_default=False
        ),
    ],
    E: Any = "auto",
    tau: Any = 1,
    Tp: Any = 0,
    exclusion_radius: Any = 0,
    knn: Any = None,
    method: Any = "simplex",
    theta: Any = 1.0,
    ridge: Any = 0.0,
    E_max: Any = 20,
    E_rule: Any = "best",
    columns: options.Columns = None,
    exclude: options.Exclude = None,
    targets: options.Targets = None,
    groups: Any = None,
    lib: Any = None,
    pred: Any = None,
    folds: Any = None,
    windows: Any = None,
    skill: Any = "pearson",
    regular: Any = None,
    time_column: options.TimeColumn = None,
    dataset: options.Dataset = None,
    resume: Any = True,
    join: Any = False,
    part: Any = None,
    keep: Any = "all",
    edges: Annotated[
        int, typer.Option("--edges", metavar="N", min=0, help="Also print the N strongest pairs.", show_default=False)
    ] = 0,
    neighbors: Any = "exact",
    recall: Any = 0.99,
    precision: Any = "full",
    dtype: Any = "float32",
    tune: Any = None,
    device: options.Device = None,
    client: Any = None,
    progress: options.Progress = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Map the cross-map skill of all pairs of series: which ones drive which?

    High skill in row i, column j is evidence that series j drives series i.
    After an interruption the same command continues where it ended.
    """
    talk = Talk(quiet=quiet, as_json=json, progress=progress)
    chosen_columns = beside_groups(parse_columns(columns), groups)
    _check_output(output, windows is not None)
    labels = load_groups(input, chosen_columns, groups, dataset)
    series = load(input, chosen_columns, time_column, dataset)
    target_series = None if targets is None else targets_of(input, targets, time_column, dataset)
    flat = list(series.constant)
    talk.remark(f"{input}: {series.n_series:,} series of {series.n_steps:,} steps")
    if flat:
        talk.remark(f"{len(flat)} series never change, so their skill is NaN: {_some(flat)}")
    import pyedmcl

    was_finished = resume and windows is None and finished(output)
    with warnings.catch_warnings(), client_at(client) as workers, talk.progress("cross mapping") as report:
        warnings.simplefilter("ignore", ConstantSeriesWarning)  # told above
        result = pyedmcl.xmap(
            series, targets=target_series, E=E, tau=tau, Tp=Tp, exclusion_radius=exclusion_radius, knn=knn,
            method=method, theta=theta, ridge=ridge, E_max=E_max,
            E_rule=E_rule, groups=labels, regular=regular, lib_range=lib,
            pred_range=pred, folds=folds, windows=windows, skill=skill, keep=keep,
            out=output if windows is None else None, resume=resume, join=join,
            part=part, progress=report, neighbors=neighbors, recall=recall, precision=precision,
            dtype=dtype, tune=tune, device=device, client=workers,
        )  # fmt: skip
    if windows is not None:
        _write_windows(talk, result, output, edges)
        return
    if was_finished:
        talk.remark(f"{output} was complete already, so nothing was computed; --no-resume starts again")
    best = result.edges(top=edges) if edges else []
    talk.summary(f"{output}: {_size(result)}, {_dimensions(result.E)}{_seconds(result.provenance)}")
    if edges:
        print_edges(talk, best)
    talk.document(
        {
            "output": str(output),
            "n_series": series.n_series,
            "n_steps": series.n_steps,
            "names": list(result.names),
            **({} if result.targets is None else {"targets": list(result.targets)}),
            "E": result.E,
            "constant": flat,
            "edges": [edge.named() for edge in best],
            "provenance": dict(result.provenance),
        }
    )


def _check_output(output: Path, windowed: bool) -> None:
    """Refuse, before anything is computed, a place that this result cannot be written to."""
    if windowed:
        check_table(output, "skill within windows")
    elif output.suffix.lower() in FILES:
        raise typer.BadParameter(
            f"{output}: -o names the folder of the result, such as {output.with_suffix('.zarr')}; afterwards "
            "'pyedmcl export' and 'pyedmcl plot' write files from it"
        )


def _write_windows(talk: Talk, result: Any, output: Path, edges: int) -> None:
    """A row for each window and pair."""
    header, rows = table_of_windows(result)
    write_table(output, header, rows)
    talk.summary(f"{output}: {len(result.starts):,} windows of {result.width:,} rows, {len(rows):,} rows of skill"
                 f"{_seconds(result.provenance)}")  # fmt: skip
    best = result.edges(top=edges) if edges else []
    if best:
        print_edges(talk, best)
    talk.document({
        "output": str(output), "windows": len(result.starts), "width": result.width, "names": list(result.names),
        **({} if result.targets is None else {"targets": list(result.targets)}),
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


_EMBEDDING = "Embedding"


def xmap_grid(
    input: options.Input,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FOLDER", help="Folder of the result: a Zarr v3 store for each map.",
                     show_default=False),
    ],
    E: Any = "1:10",
    tau: Any = "1",
    Tp: Any = "0",
    theta: Any = None,
    saturation: Annotated[
        float,
        typer.Option("--saturation", metavar="TOLERANCE", help="For --table and --plot: the smallest E whose skill is "
                     "within this of the best, of each pair.", rich_help_panel=_EMBEDDING),
    ] = 0.02,
    table: Annotated[
        Path | None,
        typer.Option("--table", metavar="TABLE.csv", help="Write skill and E of each pair (.csv, .tsv, .json).",
                     show_default=False),
    ] = None,
    plot: options.Picture = None,
    exclusion_radius: Any = 0,
    knn: Any = None,
    columns: options.Columns = None,
    exclude: options.Exclude = None,
    targets: options.Targets = None,
    groups: Any = None,
    lib: Any = None,
    pred: Any = None,
    folds: Any = None,
    regular: Any = None,
    time_column: options.TimeColumn = None,
    dataset: options.Dataset = None,
    resume: Any = True,
    join: Any = False,
    part: Any = None,
    neighbors: Any = "exact",
    recall: Any = 0.99,
    precision: Any = "full",
    dtype: Any = "float32",
    ridge: Any = 0.0,
    tune: Any = None,
    device: options.Device = None,
    client: Any = None,
    progress: options.Progress = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Map all pairs of series for many embeddings at once, and find the E at which the skill of each pair saturates.

    After an interruption the same command continues where it ended.
    """
    talk = Talk(quiet=quiet, as_json=json, progress=progress)
    chosen_columns = parse_columns(columns)
    if table is not None:
        check_table(table)
    check_pictures(plot)
    if (table is not None or plot is not None) and len(E) < 2:
        raise typer.BadParameter("--table and --plot show the E at which skill saturates: --E needs several values")
    from ..crossmap.grid import as_tolerance

    as_tolerance(saturation, "saturation")
    labels = load_groups(input, chosen_columns, groups, dataset)
    series = load(input, chosen_columns, time_column, dataset)
    target_series = None if targets is None else targets_of(input, targets, time_column, dataset)
    import pyedmcl

    with warnings.catch_warnings(), client_at(client) as workers, talk.progress("cross mapping") as report:
        grid = pyedmcl.xmap_grid(
            series, E=E, tau=tau if len(tau) > 1 else tau[0], Tp=Tp if len(Tp) > 1 else Tp[0],
            theta=theta, targets=target_series, groups=labels, regular=regular,
            exclusion_radius=exclusion_radius, knn=knn, lib_range=lib,
            pred_range=pred, folds=folds,
            out=output, resume=resume, join=join, part=part,
            neighbors=neighbors, recall=recall, progress=report, precision=precision, dtype=dtype,
            ridge=ridge, tune=tune, device=device, client=workers,
        )  # fmt: skip
    lengths = " x ".join(f"{len(values)} {name}" for name, values in grid.axes.items())
    talk.summary(f"{output}: maps of {grid.rho.shape[-2]:,} x {grid.rho.shape[-1]:,} pairs for {lengths}")
    if table is not None or plot is not None:
        _saturation(grid, saturation, table, plot, talk)
    talk.document({
        "output": str(output), "axes": {name: list(values) for name, values in grid.axes.items()},
        "fixed": dict(grid.fixed), "names": list(grid.names),
        **({} if grid.targets is None else {"targets": list(grid.targets)}), "provenance": dict(grid.provenance),
    })  # fmt: skip


def _saturation(grid: Any, tolerance: float, table: Path | None, plot: Path | None, talk: Talk) -> None:
    folded = grid.mean("fold") if "fold" in grid.axes else grid
    saturated = folded.saturation(tolerance)
    if table is not None:
        frame = saturated.to_frame()
        write_table(table, tuple(frame.columns), frame.itertuples(index=False, name=None))
        talk.summary(f"{table}: skill and E of {len(frame):,} pairs")
    if plot is not None:
        folded.plot(str(plot))
        talk.summary(f"{plot}: skill over E")

