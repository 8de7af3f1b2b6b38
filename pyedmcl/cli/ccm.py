"""``pyedmcl ccm``: convergent cross mapping of two series."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .ccm_options import First, Interval, LibSizes, Sample, Second, Seed, parse_pair_E, parse_sizes
from .files import check_pictures, check_result, table_of_windows, write_result
from .inputs import load, load_groups, parse_rule, parse_windows, part_of, shown_names
from .talk import Talk

if TYPE_CHECKING:
    from ..data.series import Series
    from ..edm.ccm.ccm_windows_result import WindowedCcm

_HEADER = ("cause", "effect", "library", "target", "lib_size", "mean", "q05", "q25", "median", "q75", "q95")


def two_series(
    input: Path, x: str | None, y: str | None, time_column: str | None, dataset: str | None
) -> tuple[Series, Series]:
    """Two series of a file: those named, or the only two there are."""
    if (x is None) != (y is None):
        raise typer.BadParameter("--x and --y: name both variables, or neither where the file has two series")
    if x is not None and x == y:
        raise typer.BadParameter(f"--x and --y both name {x!r}: two different series are needed")
    series = load(input, None if x is None or y is None else [x, y], time_column, dataset)
    if series.n_series != 2:
        raise typer.BadParameter(
            f"--x and --y are needed to choose two of the {series.n_series} series: {shown_names(series)}"
        )
    return part_of(series, 0), part_of(series, 1)


def ccm(
    input: options.Input,
    E: Annotated[
        str,
        typer.Option("--E", metavar="auto|E|E,E", rich_help_panel="Embedding",
                     help="Embedding dimension, or one for x and one for y; auto finds each one's own."),
    ] = "auto",
    x: First = None,
    y: Second = None,
    lib_sizes: LibSizes = None,
    sample: Sample = 100,
    seed: Seed = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="SKILL.csv", show_default=False,
                     help="Write mean and quantiles of the skill per direction and size (.csv, .tsv, .json), or the "
                     "whole result (.edm)."),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option("--plot", metavar="SKILL.png", help="Draw skill against library size.", show_default=False),
    ] = None,
    tau: options.Tau = 1,
    Tp: Interval = 0,
    exclusion_radius: options.Exclusion = 0,
    knn: options.Knn = None,
    E_max: options.EMax = 20,
    E_rule: options.ERule = "best",
    method: Annotated[
        str, typer.Option("--method", metavar="simplex|smap", help="How rows are predicted.")
    ] = "simplex",
    theta: Annotated[float, typer.Option("--theta", help="Localisation of --method smap.")] = 1.0,
    groups: options.Groups = None,
    windows: options.Windows = None,
    draw: options.Draw = "rows",
    regular: options.Regular = None,
    time_column: options.TimeColumn = None,
    dataset: options.Dataset = None,
    neighbors: options.Neighbors = "exact",
    recall: options.Recall = 0.99,
    dtype: options.Dtype = "float32",
    device: options.Device = None,
    progress: options.Progress = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Predict two series from random parts of each other's states: does skill grow with the library?

    "x predicts y" with growing skill says that y drives x.
    """
    talk = Talk(quiet=quiet, as_json=json, progress=progress)
    check_result(output)
    check_pictures(picture)
    dims, sizes = parse_pair_E(E), parse_sizes(lib_sizes)
    labels = load_groups(input, None if x is None else [x], groups, dataset, needed="--x and --y")
    one, other = two_series(input, x, y, time_column, dataset)
    import pyedmcl
    from pyedmcl.edm.ccm.ccm_windows_result import WindowedCcm

    with talk.progress("cross mapping") as report:
        result = pyedmcl.ccm(
            one, other, E=dims, tau=tau, Tp=Tp, lib_sizes=sizes, sample=sample, seed=seed,
            exclusion_radius=exclusion_radius, knn=knn, E_max=E_max,
            E_rule=parse_rule(E_rule), method=method, theta=theta, groups=labels, regular=regular,
            draw=draw, windows=parse_windows(windows), neighbors=neighbors, recall=recall, progress=report, dtype=dtype,
            device=device,
        )  # fmt: skip
    if picture is not None:
        result.plot(str(picture))
    if isinstance(result, WindowedCcm):
        _windows(talk, result, output)
        return
    if output is not None:
        write_result(output, result, _HEADER, _rows(result))
    from ..io.roles import role_columns

    directions = []
    for d, (library, target) in enumerate(result.links):
        test = result.convergence[d]
        first, last = int(result.lib_sizes.argmin()), int(result.lib_sizes.argmax())
        talk.summary(
            f"{library} predicts {target} ({target} drives {library}?): rho = {result.mean[d, first]:.3f} at "
            f"{result.lib_sizes[first]:,} rows, {result.mean[d, last]:.3f} at {result.lib_sizes[last]:,}; trend "
            f"tau = {test.tau:.2f}, p = {test.p_value:.2g}"
        )
        directions.append({**role_columns(library, target), "mean": result.mean[d], "median": result.median[d],
                      "tau": test.tau, "p_value": test.p_value, "gain": test.gain, "p_gain": test.p_gain,
                      "overlap": test.overlap})  # fmt: skip
    talk.remark(f"seed {result.seed}" + (f"; skill in {output}" if output is not None else ""))
    talk.document({"lib_sizes": result.lib_sizes, "sample": sample, "seed": result.seed, "E": list(result.E),
                   "directions": directions, "neighbors": result.provenance["neighbors"],
                   "output": None if output is None else str(output)})  # fmt: skip


def _windows(talk: Talk, result: WindowedCcm, output: Path | None) -> None:
    """Mean skill of each window, direction and size, as a table and in a file."""
    header, rows = table_of_windows(result)
    if output is not None:
        write_result(output, result, header, rows)
    largest = int(result.lib_sizes.max())
    shown = [[*map(str, row[:-1]), f"{row[-1]:.4f}"] for row in rows if row[-2] == largest]
    talk.table(header, shown, right=("start", "end", "lib_size", "mean"))
    talk.document({"seed": result.seed, "E": list(result.E), "width": result.width,
                   "windows": [dict(zip(header, row, strict=True)) for row in rows],
                   "output": None if output is None else str(output)})  # fmt: skip


def _rows(result: Any) -> list[list[Any]]:
    from ..io.roles import roles

    spread = result.quantiles((0.05, 0.25, 0.5, 0.75, 0.95))
    return [
        [*roles(library, target), int(size), float(result.mean[d, s]), *map(float, spread[d, s])]
        for d, (library, target) in enumerate(result.links) for s, size in enumerate(result.lib_sizes)
    ]  # fmt: skip
