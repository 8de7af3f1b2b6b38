"""``pyedmcl xmap``: from a file to the N x N map of cross-map skill."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import ConstantSeriesWarning, InputError
from . import options
from .cluster import client_at
from .files import check_table, finished, table_of_windows, write_table
from .inputs import beside_groups, load, load_groups, parse_columns, parse_E, parse_ranges, parse_rule, parse_windows
from .talk import Talk

if TYPE_CHECKING:
    from ..data.series import Series
    from ..io.edges import Edge

FILES = (".csv", ".tsv", ".txt", ".npy", ".npz", ".h5", ".hdf5", ".parquet", ".feather", ".png", ".pdf", ".json")
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
    E: Annotated[
        str,
        typer.Option(
            "--E", metavar="auto|E|E,E,...", help="Embedding dimension of the targets; auto finds each one's own.",
            rich_help_panel="Embedding",
        ),
    ] = "auto",
    tau: options.Tau = 1,
    Tp: Annotated[
        int, typer.Option("--Tp", help="Steps from library state to target value.", rich_help_panel="Embedding")
    ] = 0,
    exclusion_radius: options.Exclusion = 0,
    knn: options.Knn = None,
    method: Annotated[
        str,
        typer.Option(
            "--method", metavar="simplex|smap",
            help="Predict by nearest neighbours, or by linear fits weighted by nearness.", rich_help_panel="Embedding",
        ),
    ] = "simplex",
    theta: Annotated[
        float, typer.Option("--theta", help="Localisation of --method smap.", rich_help_panel="Embedding")
    ] = 1.0,
    ridge: Annotated[
        float,
        typer.Option(
            "--ridge", help="Penalty of --method smap on the squared slopes.", rich_help_panel="Embedding"
        ),
    ] = 0.0,
    E_max: options.EMax = 20,
    E_rule: options.ERule = "best",
    columns: options.Columns = None,
    exclude: options.Exclude = None,
    targets: options.Targets = None,
    groups: options.Groups = None,
    lib: options.Library = None,
    pred: options.Predicted = None,
    folds: options.Folds = None,
    windows: options.Windows = None,
    skill: options.Skill = "pearson",
    regular: options.Regular = None,
    time_column: options.TimeColumn = None,
    dataset: options.Dataset = None,
    resume: Annotated[
        bool,
        typer.Option(
            "--resume/--no-resume", help="Continue a result that is there, or remove it and start anew.",
            rich_help_panel="Running",
        ),
    ] = True,
    join: options.Join = False,
    part: options.Part = None,
    keep: Annotated[
        str,
        typer.Option(
            "--keep", metavar="all|top:K|top:K:target|rho>X", rich_help_panel="Running",
            help="Keep the K strongest pairs of each library, or of each target, or those above X, instead of the map.",
        ),
    ] = "all",
    edges: Annotated[
        int, typer.Option("--edges", metavar="N", min=0, help="Also print the N strongest pairs.", show_default=False)
    ] = 0,
    neighbors: options.Neighbors = "exact",
    recall: options.Recall = 0.99,
    precision: options.Precision = "full",
    dtype: options.Dtype = "float32",
    device: options.Device = None,
    client: options.Client = None,
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
    dimension = parse_E(E)
    spans = parse_windows(windows)
    _check_output(output, spans is not None)
    labels = load_groups(input, chosen_columns, groups, dataset)
    series = load(input, chosen_columns, time_column, dataset)
    target_series = None if targets is None else targets_of(input, targets, time_column, dataset)
    flat = list(series.constant)
    talk.remark(f"{input}: {series.n_series:,} series of {series.n_steps:,} steps")
    if flat:
        talk.remark(f"{len(flat)} series never change, so their skill is NaN: {_some(flat)}")
    import pyedmcl

    was_finished = resume and spans is None and finished(output)
    with warnings.catch_warnings(), client_at(client) as workers, talk.progress("cross mapping") as report:
        warnings.simplefilter("ignore", ConstantSeriesWarning)  # told above
        result = pyedmcl.xmap(
            series, targets=target_series, E=dimension, tau=tau, Tp=Tp, exclusion_radius=exclusion_radius, knn=knn,
            method=method, theta=theta, ridge=ridge, E_max=E_max,
            E_rule=parse_rule(E_rule), groups=labels, regular=regular, lib_range=parse_ranges(lib, "--lib"),
            pred_range=parse_ranges(pred, "--pred"), folds=folds, windows=spans, skill=skill, keep=keep,
            out=output if spans is None else None, resume=resume, join=join,
            part=part, progress=report, neighbors=neighbors, recall=recall, precision=precision,
            dtype=dtype, device=device, client=workers,
        )  # fmt: skip
    if spans is not None:
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


def targets_of(input: Path, targets: str, time_column: str | None, dataset: str | None) -> Series:
    """The series of a file, where there is one of this name, or columns of the input."""
    if Path(targets).exists():
        return load(Path(targets), None, time_column, dataset)
    if Path(targets).suffix.lower() in FILES:
        raise InputError(f"--targets {targets}: there is no such file")
    return load(input, parse_columns(targets), time_column, dataset)


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
