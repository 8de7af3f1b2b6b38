"""``pyedmcl ccm-matrix``: convergent cross mapping of all pairs, into a folder that another run can continue."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options
from .ccm_options import Interval, LibSizes, Sample, Seed, parse_sizes
from .cluster import client_at
from .files import check_pictures, check_table, table_of_windows, write_table
from .inputs import beside_groups, load, load_groups, parse_columns, parse_E, parse_ranges, parse_rule, parse_windows
from .talk import Talk
from .xmap import FILES

if TYPE_CHECKING:
    from ..edm.ccm.ccm_matrix_result import CcmMatrixResult

_SHOWN = 10  # pairs that are printed
_RATE = 0.05


def ccm_matrix(
    input: options.Input,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FOLDER", show_default=False,
                     help="Folder of the result: a Zarr group per library size; with --windows a table (.csv, .tsv, "
                     ".json)."),
    ],
    E: Annotated[
        str,
        typer.Option("--E", metavar="auto|E|E,E,...", rich_help_panel="Embedding",
                     help="Embedding dimension of the libraries; auto finds each one's own."),
    ] = "auto",
    lib_sizes: LibSizes = None,
    sample: Sample = 30,
    seed: Seed = None,
    tau: options.Tau = 1,
    Tp: Interval = 0,
    exclusion_radius: options.Exclusion = 0,
    knn: options.Knn = None,
    method: Annotated[
        str,
        typer.Option("--method", metavar="simplex|smap", rich_help_panel="Embedding",
                     help="Predict by nearest neighbours, or by linear fits weighted by nearness."),
    ] = "simplex",
    theta: Annotated[
        float, typer.Option("--theta", help="Localisation of --method smap.", rich_help_panel="Embedding")
    ] = 1.0,
    ridge: Annotated[
        float,
        typer.Option("--ridge", help="Penalty of --method smap on the squared slopes.", rich_help_panel="Embedding"),
    ] = 0.0,
    E_max: options.EMax = 20,
    E_rule: options.ERule = "best",
    columns: options.Columns = None,
    exclude: options.Exclude = None,
    groups: options.Groups = None,
    draw: options.Draw = "rows",
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
        typer.Option("--resume/--no-resume", help="Continue a result that is there, or start these sizes anew.",
                     rich_help_panel="Running"),
    ] = True,
    join: options.Join = False,
    part: options.Part = None,
    pairs: Annotated[
        Path | None,
        typer.Option("--pairs", metavar="PAIRS.csv", show_default=False,
                     help="Also write every pair's final skill, gain and trend (.csv, .tsv, .json)."),
    ] = None,
    picture: options.Picture = None,
    network: options.Network = None,
    neighbors: options.Neighbors = "exact",
    recall: options.Recall = 0.99,
    dtype: options.Dtype = "float32",
    device: options.Device = None,
    client: options.Client = None,
    progress: options.Progress = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Map all pairs of series for several library sizes: where does skill grow with the library?

    After an interruption the same command continues where it ended; other library sizes are added to what is there.
    """
    talk = Talk(quiet=quiet, as_json=json, progress=progress)
    if pairs is not None:
        check_table(pairs)
    check_pictures(picture, network)
    spans = parse_windows(windows)
    if spans is not None:
        check_table(output, "skill within windows")
        if pairs is not None or network is not None:
            raise typer.BadParameter("--pairs and --network are of one matrix; leave them out with --windows")
    elif output.suffix.lower() in FILES:
        raise typer.BadParameter(f"{output}: -o names the folder of the result; --pairs writes a file")
    sizes, dimension = parse_sizes(lib_sizes), parse_E(E)
    chosen_columns = beside_groups(parse_columns(columns), groups)
    labels = load_groups(input, chosen_columns, groups, dataset)
    series = load(input, chosen_columns, time_column, dataset)
    talk.remark(f"{input}: {series.n_series:,} series of {series.n_steps:,} steps")
    import pyedmcl
    from pyedmcl.edm.ccm.ccm_matrix_windows_result import WindowedCcmMatrix

    with client_at(client) as workers, talk.progress("cross mapping") as report:
        result = pyedmcl.ccm_matrix(
            series, lib_sizes=sizes, sample=sample, E=dimension, tau=tau, Tp=Tp, seed=seed,
            exclusion_radius=exclusion_radius, knn=knn, method=method, theta=theta, ridge=ridge, E_max=E_max,
            E_rule=parse_rule(E_rule), groups=labels, regular=regular, draw=draw,
            lib_range=parse_ranges(lib, "--lib"), pred_range=parse_ranges(pred, "--pred"), folds=folds,
            windows=spans, skill=skill, out=output if spans is None else None, resume=resume, join=join, part=part,
            progress=report, neighbors=neighbors, recall=recall, dtype=dtype, device=device, client=workers,
        )  # fmt: skip
    if picture is not None:
        result.plot(str(picture))
    if isinstance(result, WindowedCcmMatrix):
        header, rows = table_of_windows(result)
        write_table(output, header, rows)
        talk.summary(f"{output}: {len(result.starts):,} windows of {result.width:,} rows, {len(rows):,} rows of skill, "
                     f"seed {result.seed}")  # fmt: skip
        talk.document({"output": str(output), "windows": len(result.starts), "width": result.width,
                       "names": list(result.names), "lib_sizes": result.lib_sizes, "sample": sample,
                       "seed": result.seed})  # fmt: skip
        return
    shown = ", ".join(f"{size:,}" for size in result.lib_sizes)
    talk.summary(f"{output}: {series.n_series:,} x {series.n_series:,} pairs for libraries of {shown} rows, "
                 f"{sample} samples, seed {result.seed}")  # fmt: skip
    if pairs is not None:
        from ..edm.ccm.ccm_matrix_result import PAIR_COLUMNS

        table = result.table()
        write_table(pairs, PAIR_COLUMNS, table)
        talk.summary(f"{pairs}: {len(table):,} pairs")
    tell_convergence(talk, result)
    if network is not None:
        result.plot_network(str(network))
    talk.document({"output": str(output), "n_series": series.n_series, "n_steps": series.n_steps,
                   "names": list(result.names), "E": result.E, "lib_sizes": result.lib_sizes, "sample": sample,
                   "seed": result.seed, "method": result.method, "theta": result.theta,
                   "pairs": None if pairs is None else str(pairs),
                   "neighbors": result.provenance["neighbors"]})  # fmt: skip


def tell_convergence(talk: Talk, result: CcmMatrixResult) -> None:
    """The pairs whose skill converges most, and how many do."""
    rows = [row for row in result.pairs() if row[3] > 0 and not row[6] > _RATE]
    n = len(result.names) * (len(result.names) - 1)
    tests = f", with a trend at a false discovery rate of {_RATE:g}" if len(result.lib_sizes) > 2 else ""
    talk.summary(f"{len(rows):,} of {n:,} directions converge: skill grows with the library{tests}")
    shown = [(target, library, f"{rho:.4f}", f"{gain:.4f}", f"{q:.3g}", E)
             for library, target, rho, gain, _, _, q, E in rows[:_SHOWN]]  # fmt: skip
    if shown and not talk.quiet:
        header = ("cause (target)", "effect (library)", "rho", "gain", "q", "E")
        talk.table(header, shown, right=header[2:])
    talk.remark_on_arrows(len(result.names), len(rows))
