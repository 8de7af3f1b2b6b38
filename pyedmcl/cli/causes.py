"""``pyedmcl ccm``, ``ccm-matrix``, ``surrogate-test`` and ``network``: convergence, significance, and what drives what.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from ..functions import BUDGET
from . import options
from .maps import FILES
from .options import (
    First,
    Second,
    beside_groups,
    client_at,
    load,
    load_groups,
    parse_clusters,
    parse_columns,
    part_of,
    shown_names,
)
from .output import (
    Talk,
    check_pictures,
    check_place,
    check_result,
    check_table,
    table_of_windows,
    write_bytes,
    write_result,
    write_table,
)

if TYPE_CHECKING:
    from ..convergence.results import CcmMatrixResult, WindowedCcm
    from ..network.verdicts import CausalNetwork
    from ..series.series import Series
    from ..significance.significance import CcmSignificance


# ``pyedmcl ccm``: convergent cross mapping of two series.


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
    E: Any = "auto",
    x: First = None,
    y: Second = None,
    lib_sizes: Any = None,
    sample: Any = 100,
    seed: Any = None,
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
    tau: Any = 1,
    Tp: Any = 0,
    exclusion_radius: Any = 0,
    knn: Any = None,
    E_max: Any = 20,
    E_rule: Any = "best",
    method: Any = "simplex",
    theta: Any = 1.0,
    groups: Any = None,
    windows: Any = None,
    draw: Any = "rows",
    regular: Any = None,
    time_column: options.TimeColumn = None,
    dataset: options.Dataset = None,
    neighbors: Any = "exact",
    recall: Any = 0.99,
    dtype: Any = "float32",
    lib: Any = None,
    skill: Any = "pearson",
    tune: Any = None,
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
    labels = load_groups(input, None if x is None else [x], groups, dataset, needed="--x and --y")
    one, other = two_series(input, x, y, time_column, dataset)
    import pyedmcl

    from ..convergence.results import WindowedCcm

    with talk.progress("cross mapping") as report:
        result = pyedmcl.ccm(
            one, other, E=E, tau=tau, Tp=Tp, lib_sizes=lib_sizes, sample=sample, seed=seed,
            exclusion_radius=exclusion_radius, knn=knn, E_max=E_max,
            E_rule=E_rule, method=method, theta=theta, groups=labels, regular=regular,
            draw=draw, windows=windows, neighbors=neighbors, recall=recall, progress=report, dtype=dtype,
            lib_range=lib, skill=skill, tune=tune, device=device,
        )  # fmt: skip
    if picture is not None:
        result.plot(str(picture))
    if isinstance(result, WindowedCcm):
        _windows(talk, result, output)
        return
    if output is not None:
        write_result(output, result, _HEADER, _rows(result))
    from ..results.tables import role_columns

    directions = []
    for d, (library, target) in enumerate(result.links):
        test = result.convergence[d]
        first, last = int(result.lib_sizes.argmin()), int(result.lib_sizes.argmax())
        talk.summary(
            f"{library} predicts {target} ({target} drives {library}?): rho = {result.mean[d, first]:.3f} at "
            f"{result.lib_sizes[first]:,} rows, {result.mean[d, last]:.3f} at {result.lib_sizes[last]:,}; trend "
            f"{test.trend:.2f}"
        )
        directions.append({**role_columns(library, target), "mean": result.mean[d], "median": result.median[d],
                      "trend": test.trend, "gain": test.gain, "overlap": test.overlap})  # fmt: skip
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
    from ..results.tables import roles

    spread = result.quantiles((0.05, 0.25, 0.5, 0.75, 0.95))
    return [
        [*roles(library, target), int(size), float(result.mean[d, s]), *map(float, spread[d, s])]
        for d, (library, target) in enumerate(result.links) for s, size in enumerate(result.lib_sizes)
    ]  # fmt: skip


# ``pyedmcl ccm-matrix``: convergent cross mapping of all pairs, into a folder that another run can continue.


_SHOWN = 10  # pairs that are printed


def ccm_matrix(
    input: options.Input,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FOLDER", show_default=False,
                     help="Folder of the result: a Zarr group per library size; with --windows a table (.csv, .tsv, "
                     ".json)."),
    ],
    E: Any = "auto",
    lib_sizes: Any = None,
    sample: Any = 30,
    seed: Any = None,
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
    groups: Any = None,
    draw: Any = "rows",
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
    pairs: Annotated[
        Path | None,
        typer.Option("--pairs", metavar="PAIRS.csv", show_default=False,
                     help="Also write every pair's final skill, gain and trend (.csv, .tsv, .json)."),
    ] = None,
    picture: options.Picture = None,
    network: options.Network = None,
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
    """Map all pairs of series for several library sizes: where does skill grow with the library?

    After an interruption the same command continues where it ended; other library sizes are added to what is there.
    """
    talk = Talk(quiet=quiet, as_json=json, progress=progress)
    if pairs is not None:
        check_table(pairs)
    check_pictures(picture, network)
    if windows is not None:
        check_table(output, "skill within windows")
        if pairs is not None or network is not None:
            raise typer.BadParameter("--pairs and --network are of one matrix; leave them out with --windows")
    elif output.suffix.lower() in FILES:
        raise typer.BadParameter(f"{output}: -o names the folder of the result; --pairs writes a file")
    chosen_columns = beside_groups(parse_columns(columns), groups)
    labels = load_groups(input, chosen_columns, groups, dataset)
    series = load(input, chosen_columns, time_column, dataset)
    talk.remark(f"{input}: {series.n_series:,} series of {series.n_steps:,} steps")
    import pyedmcl

    from ..convergence.results import WindowedCcmMatrix

    with client_at(client) as workers, talk.progress("cross mapping") as report:
        result = pyedmcl.ccm_matrix(
            series, lib_sizes=lib_sizes, sample=sample, E=E, tau=tau, Tp=Tp, seed=seed,
            exclusion_radius=exclusion_radius, knn=knn, method=method, theta=theta, ridge=ridge, E_max=E_max,
            E_rule=E_rule, groups=labels, regular=regular, draw=draw,
            lib_range=lib, pred_range=pred, folds=folds,
            windows=windows, skill=skill, out=output if windows is None else None, resume=resume, join=join, part=part,
            progress=report, neighbors=neighbors, recall=recall, dtype=dtype, tune=tune, device=device, client=workers,
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
        from ..convergence.results import PAIR_COLUMNS

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
    from ..statistics import STEADY

    rows = [row for row in result.pairs() if row[3] > 0 and row[4] > STEADY]
    n = len(result.names) * (len(result.names) - 1)
    talk.summary(f"{len(rows):,} of {n:,} directions: skill grows steadily with the library (no test of a link)")
    shown = [(target, library, f"{rho:.4f}", f"{gain:.4f}", f"{trend:.2f}", E)
             for library, target, rho, gain, trend, E in rows[:_SHOWN]]  # fmt: skip
    if shown and not talk.quiet:
        header = ("cause (target)", "effect (library)", "rho", "gain", "trend", "E")
        talk.table(header, shown, right=header[2:])
    talk.remark_on_arrows(len(result.names), len(rows))


# ``pyedmcl surrogate-test``: is cross-map skill more than chance? One pair, or all pairs of a file.


_PAIR = ("cause", "effect", "library", "target", "rho", "surrogates_q95", "p_value", "q_value")
_PAIRS = ("cause", "effect", "library", "target", "rho", "p_value", "q_value", "E", "E_of")
_TESTED = 20


def surrogate_test(
    input: options.Input,
    E: Any = "auto",
    x: First = None,
    y: Second = None,
    surrogate: Any = "auto",
    n: Any = "auto",
    budget: Any = BUDGET,
    seed: Any = None,
    period: Any = None,
    rate: Any = 0.05,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="PAIRS.csv", show_default=False,
                     help="Write skill, p-value and q-value of each pair (.csv, .tsv, .json), or the whole result "
                     "(.edm)."),
    ] = None,
    picture: options.Picture = None,
    network: options.Network = None,
    tau: Any = 1,
    Tp: Any = 0,
    exclusion_radius: Any = 0,
    knn: Any = None,
    E_max: Any = 20,
    E_rule: Any = "best",
    columns: options.Columns = None,
    exclude: options.Exclude = None,
    groups: Any = None,
    regular: Any = None,
    windows: Any = None,
    time_column: options.TimeColumn = None,
    dataset: options.Dataset = None,
    dtype: Any = "float32",
    recurrence: Any = 0.1,
    tune: Any = None,
    device: options.Device = None,
    progress: options.Progress = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Test whether cross-map skill is more than chance, by random surrogates in the place of the target.

    With --x and --y for one pair in both directions; without for all pairs, adjusted for their number.
    """
    talk = Talk(quiet=quiet, as_json=json, progress=progress)
    check_result(output)
    check_pictures(picture, network)
    if not 0 < rate < 1:
        raise typer.BadParameter(f"--rate {rate:g}: a number between 0 and 1 is needed")
    of_pair = x is not None or y is not None
    if windows is not None and (of_pair or network is not None):
        raise typer.BadParameter("--windows: all pairs are tested, without --x, --y or --network; --columns names some")
    held = (None if x is None else [x]) if of_pair else parse_columns(columns)
    labels = load_groups(input, held, groups, dataset, needed="--x and --y" if of_pair else "--columns")
    import pyedmcl

    shared: dict[str, Any] = {
        "regular": regular, "tau": tau, "Tp": Tp, "surrogate": surrogate, "seed": seed, "period": period, "knn": knn,
        "dtype": dtype, "exclusion_radius": exclusion_radius, "recurrence": recurrence, "tune": tune, "device": device,
        "n": n, "rate": rate, "budget": budget, "E_max": E_max, "E_rule": E_rule, "groups": labels,
    }  # fmt: skip
    tested: _Tested
    if of_pair:
        if columns is not None:
            raise typer.BadParameter("--columns: of a pair only --x and --y are named")
        if network is not None:
            raise typer.BadParameter("--network: a pair has no network; leave --x and --y out for all pairs")
        tested = _of_a_pair(pyedmcl.ccm_significance(
            *two_series(input, x, y, time_column, dataset), E=E, **shared
        ))  # fmt: skip
        if picture is not None:
            tested.result.plot(str(picture))
    else:
        series = load(input, parse_columns(columns), time_column, dataset)
        with talk.progress("surrogates") as report:
            found = pyedmcl.xmap_significance(series, E=E, windows=windows, progress=report, **shared)
        if windows is not None:
            _tested_windows(talk, found, output, rate, picture)
            return
        tested = _of_all_pairs(found)
        if picture is not None:
            tested.result.plot(str(picture), rate)
        if network is not None:
            tested.result.plot_network(str(network), rate)
    result, header, rows = tested.result, tested.header, tested.rows
    if output is not None:
        write_result(output, result, header, rows)
    place = header.index("q_value")
    hits = [row for row in rows if row[place] <= rate]
    where = f"; pairs in {output}" if output is not None else ""
    talk.summary(f"{len(hits)} of {len(rows)} directions are significant at a false discovery rate of {rate:g} "
                 f"({'up to ' if n == 'auto' else ''}{result.n:,} surrogates by {surrogate}, seed {result.seed}; no p "
                 f"can be below {result.smallest_p:.2g}, and no q of a single pair below {result.smallest_q:.2g})"
                 f"{where}")  # fmt: skip
    talk.remark_on_surrogates(tested.targets, result.reasons)
    shown = rows if of_pair else hits[:_TESTED]
    if shown and not quiet:
        talk.table(header, [[f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row] for row in shown],
                   right=header[4:])  # fmt: skip
    talk.remark_on_arrows(tested.n_series, len(hits))
    talk.document({"surrogate": surrogate, "n": result.n, "seed": result.seed, "rate": rate, "significant": len(hits),
                   "smallest_p": result.smallest_p, "smallest_q": result.smallest_q,
                   "pairs": [dict(zip(header, row, strict=True)) for row in rows],
                   "output": None if output is None else str(output)})  # fmt: skip


def _tested_windows(talk: Talk, result: Any, output: Path | None, rate: float, picture: Path | None) -> None:
    """Pairs that are significant in a window, and all pairs of all windows in a file."""
    header, rows = table_of_windows(result)
    if output is not None:
        write_result(output, result, header, rows)
    if picture is not None:
        result.plot(str(picture))
    hits = [row for row in rows if row[header.index("q_value")] <= rate]
    shown = [[f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in row] for row in hits]
    talk.table(header, shown[:_TESTED], right=("start", "end", *header[-6:]))
    talk.summary(f"{len(hits)} of {len(rows)} directions of windows are significant at a false discovery rate of "
                 f"{rate:g} (seed {result.seed})")  # fmt: skip
    talk.document({"seed": result.seed, "rate": rate, "significant": len(hits), "width": result.width,
                   "windows": [dict(zip(header, row, strict=True)) for row in rows],
                   "output": None if output is None else str(output)})  # fmt: skip


class _Tested(NamedTuple):
    """What a test found, as rows of a table below ``header``.

    Attributes
    ----------
    targets : list of str
        Those whose kind of surrogates has a reason; empty where the kind was named.
    """

    result: Any
    header: tuple[str, ...]
    rows: list[list[Any]]
    n_series: int
    targets: list[str]


def _of_a_pair(pair: CcmSignificance) -> _Tested:
    """Both directions."""
    import numpy as np

    from ..results.tables import roles

    rows = [[*roles(*pair.links[d]), float(pair.rho[d]), float(np.nanquantile(pair.surrogates[d], 0.95)),
             float(pair.p_value[d]), float(pair.q_value[d])] for d in (0, 1)]  # fmt: skip
    return _Tested(pair, _PAIR, rows, 2, [link[1] for link in pair.links] if pair.reasons else [])


def _of_all_pairs(result: Any) -> _Tested:
    """Pairs off the diagonal, the highest skill first."""
    from ..results.tables import roles

    names, n = result.names, len(result.names)
    rows = [
        [*roles(names[i], names[j]), float(result.rho[i, j]), float(result.p_value[i, j]),
         float(result.q_value[i, j]), int(result.E[j]), "cause"]
        for i in range(n) for j in range(n) if i != j
    ]  # fmt: skip
    rows.sort(key=lambda row: -row[4] if row[4] == row[4] else 2.0)
    return _Tested(result, _PAIRS, rows, n, list(names) if result.reasons else [])


# ``pyedmcl network``: from a table of series to what drives what, with all tests and a verdict on each pair.


_GRAPHS = (".graphml", ".gexf")
_HEADS = ("cause", "effect", "verdict", "rho", "Tp", "q_value", "gain", "other")
_LINKED = ("direct", "link", "indirect")
_MOST_SHOWN = 40


def network(
    input: options.Input,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="PAIRS.csv", show_default=False,
                     help="Write all pairs with tests and verdicts (.csv, .tsv, .json), direct links as a graph "
                          "(.graphml, .gexf; needs networkx), or the whole result (.edm). A name without an ending: a "
                          "folder, in which finished parts are kept, so that the same command continues there, and at "
                          "last pairs.csv."),
    ] = None,
    text: Annotated[
        Path | None,
        typer.Option("--text", metavar="WORDS.txt", show_default=False,
                     help="Write a paragraph for the methods section, and sentences on each link."),
    ] = None,
    picture: options.Picture = None,
    layout: options.Layout = "circle",
    clusters: options.Clusters = None,
    E: Any = "auto",
    lags: Any = "-6:3",
    latest: Any = None,
    Tp: Any = -1,
    surrogate: Any = "auto",
    n: Any = "auto",
    rate: Any = 0.05,
    budget: Any = BUDGET,
    period: Any = None,
    season: Any = "remove",
    convergence: Any = True,
    partial: Any = True,
    partial_surrogates: Any = None,
    forecast: Any = True,
    lib_sizes: Any = None,
    sample: Any = 10,
    seed: Any = None,
    tau: Any = 1,
    exclusion_radius: Any = "auto",
    knn: Any = None,
    E_max: Any = 10,
    E_rule: Any = "best",
    columns: options.Columns = None,
    exclude: options.Exclude = None,
    groups: Any = None,
    draw: Any = "rows",
    regular: Any = None,
    time_column: options.TimeColumn = None,
    dataset: options.Dataset = None,
    resume: Any = True,
    join: Any = False,
    part: Any = None,
    dtype: Any = "float32",
    recurrence: Any = 0.1,
    tune: Any = None,
    device: options.Device = None,
    progress: options.Progress = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Find which series drives which, directly or through others, and say how that is known.

    A link has a higher skill than with surrogates, grows with the library, is best at a lag before the effect, and is
    explained by no other series. docs/causality.md has the rules; each of the four can be switched off.
    """
    talk = Talk(quiet=quiet, as_json=json, progress=progress)
    graph = output is not None and output.suffix.lower() in _GRAPHS
    folder = output if output is not None and not output.suffix else None
    if folder is not None:
        output = folder / "pairs.csv"
    else:
        check_result(output, "a network, if not to a folder (a name without an ending),", _GRAPHS)
    check_pictures(picture)
    if text is not None:
        check_place(text)
    drawn_clusters = parse_clusters(clusters)
    column_names = beside_groups(parse_columns(columns), groups)
    labels = load_groups(input, column_names, groups, dataset)
    series = load(input, column_names, time_column, dataset)
    import pyedmcl

    if graph:
        from ..errors import need

        need("networkx", "-o " + str(output), "graph")
    with talk.progress("network") as report:
        result = pyedmcl.causal_network(
            series, E=E, tau=tau, lags=lags, latest=latest, Tp=Tp, n=n, rate=rate, surrogate=surrogate, budget=budget,
            season=season, period=period, convergence=convergence, partial=partial, forecast=forecast,
            partial_surrogates=partial_surrogates, seed=seed, lib_sizes=lib_sizes, sample=sample,
            exclusion_radius=exclusion_radius, knn=knn, E_max=E_max, E_rule=E_rule, progress=report, dtype=dtype,
            recurrence=recurrence, tune=tune, device=device, out=folder, resume=resume, join=join, part=part,
            groups=labels, regular=regular, draw=draw,
        )  # fmt: skip
    _write(result, output, text)
    if picture is not None:
        result.plot(str(picture), layout=layout, clusters=drawn_clusters)
    _tell(talk, result, rate, [str(path) for path in (output, text, picture) if path is not None])


def _write(result: CausalNetwork, output: Path | None, text: Path | None) -> None:
    """Write the pairs (as a graph where the file's ending says so), and the sentences for a paper."""
    if output is not None and output.suffix.lower() in _GRAPHS:
        result.write_graph(output)
    elif output is not None:
        table = [["" if cell is None else cell for cell in row] for row in result.rows()]
        write_result(output, result, _columns(), table)
    if text is not None:
        sentences = [result.methods(), *(result.statement(row[0], row[1]) for row in result.rows(_LINKED))]
        write_bytes(text, ("\n\n".join(sentences) + "\n").encode(errors="surrogatepass"))


def _tell(talk: Talk, result: CausalNetwork, rate: float, written: list[str]) -> None:
    """Say on the terminal, or as JSON, what was found and where it was written."""
    if result.season:
        talk.remark(f"a cycle of {result.season:.4g} rows was removed from {', '.join(result.without_season)}")
    talk.remark_on_surrogates(result.names, result.reasons)
    rows, linked, columns = result.rows(), result.rows(_LINKED), _columns()
    talk.summary(f"{len(rows):,} pairs: {result.summary()} (seed {result.seed}){'; see ' if written else ''}"
                 f"{', '.join(written)}")  # fmt: skip
    if linked and not talk.quiet:
        places = [columns.index(name) for name in _HEADS]
        cells = [[row[place] for place in places] for row in linked[:_MOST_SHOWN]]
        for cell in cells:
            cell[-1] = cell[-1] if cell[2] == "indirect" else ""
        talk.table(_HEADS, [[f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in row] for row in cells],
                   right=_HEADS[3:7])  # fmt: skip
        talk.cut(len(linked), _MOST_SHOWN)
    talk.document({"seed": result.seed, "rate": rate, "names": list(result.names), "E": result.E,
                   "methods": result.methods(), "surrogates": list(result.reasons),
                   "pairs": [dict(zip(columns, row, strict=True)) for row in rows], "written": written})  # fmt: skip


def _columns() -> tuple[str, ...]:
    from ..network.verdicts import COLUMNS

    return COLUMNS
