"""``pyedmcl network``: from a table of series to what drives what, with all tests and a verdict on each pair."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..registry import BUDGET
from . import options
from .ccm_options import LibSizes, Seed, parse_sizes
from .files import check_pictures, check_place, check_result, write_bytes, write_result
from .inputs import (
    beside_groups,
    load,
    load_groups,
    parse_clusters,
    parse_columns,
    parse_E,
    parse_integers,
    parse_or_auto,
    parse_rule,
)
from .talk import Talk

if TYPE_CHECKING:
    from ..edm.causes.causal_network_result import CausalNetwork

_GRAPHS = (".graphml", ".gexf")
_SHOWN = ("cause", "effect", "verdict", "rho", "Tp", "q_value", "gain", "other")
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
    E: Annotated[
        str,
        typer.Option("--E", metavar="auto|E|E,E,...", rich_help_panel="Embedding",
                     help="Embedding dimension of each series; auto finds each one's own, of at least 2."),
    ] = "auto",
    lags: Annotated[
        str,
        typer.Option("--lags", metavar="A:B|LIST|none", rich_help_panel="Legs",
                     help="Lags (Tp) at which skill is compared; none: no comparison."),
    ] = "-6:3",
    latest: Annotated[
        int | None,
        typer.Option("--latest", help="The latest best lag at which a cause is believed (default: 0 for smooth series, "
                     "else -1).", show_default=False, rich_help_panel="Legs"),
    ] = None,
    Tp: Annotated[
        int, typer.Option("--Tp", help="The only lag that is tested with --lags none.", rich_help_panel="Legs")
    ] = -1,
    surrogate: Annotated[
        str,
        typer.Option("--surrogate", metavar="auto|phase|...|none", rich_help_panel="Legs",
                     help="What surrogates keep, as for surrogate-test; none: no surrogates."),
    ] = "auto",
    n: Annotated[
        str,
        typer.Option("--n", metavar="auto|N", help="Surrogates of each series; auto draws as many as it takes.",
                     rich_help_panel="Legs"),
    ] = "auto",
    rate: Annotated[
        float, typer.Option("--rate", help="False discovery rate, and level of the test of convergence.",
                            rich_help_panel="Legs")
    ] = 0.05,
    budget: Annotated[
        int, typer.Option("--budget", help="For --n auto: surrogates of a pair, as a mean over all pairs.",
                          rich_help_panel="Legs")
    ] = BUDGET,
    period: Annotated[
        float | None, typer.Option("--period", help="Rows of a cycle (12, 12.42) for surrogates; auto looks for one.",
                                 show_default=False, rich_help_panel="Legs")
    ] = None,
    season: Annotated[
        str,
        typer.Option("--season", metavar="remove|keep", rich_help_panel="Legs",
                     help="What is done with a cycle that half of the series share."),
    ] = "remove",
    convergence: Annotated[
        bool, typer.Option("--convergence/--no-convergence", help="Whether skill must grow with the library.",
                           rich_help_panel="Legs")
    ] = True,
    partial: Annotated[
        bool, typer.Option("--partial/--no-partial", help="Whether indirect links are told from direct ones.",
                           rich_help_panel="Legs")
    ] = True,
    partial_surrogates: Annotated[
        int | None, typer.Option("--partial-surrogates", metavar="N", show_default=False, rich_help_panel="Legs",
                                 help="Also test what is left of a link without another series, with up to N "
                                      "surrogates of a link as a mean; no verdict depends on it.")
    ] = None,
    forecast: Annotated[
        bool, typer.Option("--forecast/--no-forecast", rich_help_panel="Legs",
                           help="Whether a cause that improves forecasts of its effect may decide a doubtful link.")
    ] = True,
    lib_sizes: LibSizes = None,
    sample: Annotated[
        int, typer.Option("--sample", help="Random libraries of each size.", rich_help_panel="Random libraries")
    ] = 10,
    seed: Seed = None,
    tau: options.Tau = 1,
    exclusion_radius: Annotated[
        str,
        typer.Option("--exclusion-radius", metavar="auto|STEPS", rich_help_panel="Embedding",
                     help="Neighbours up to this many steps away in time are left out; auto: as long as smooth series "
                          "remember, else 0."),
    ] = "auto",
    knn: options.Knn = None,
    E_max: Annotated[
        int, typer.Option("--E-max", help="Largest dimension that --E auto tries.", rich_help_panel="Embedding")
    ] = 10,
    E_rule: options.ERule = "best",
    columns: options.Columns = None,
    exclude: options.Exclude = None,
    groups: options.Groups = None,
    draw: options.Draw = "rows",
    regular: options.Regular = None,
    time_column: options.TimeColumn = None,
    dataset: options.Dataset = None,
    join: options.Join = False,
    part: options.Part = None,
    dtype: options.Dtype = "float32",
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
    lag_list = None if lags.strip().lower() == "none" else parse_integers(lags, "--lags")
    radius = parse_or_auto(exclusion_radius, "--exclusion-radius", 0)
    column_names = beside_groups(parse_columns(columns), groups)
    labels = load_groups(input, column_names, groups, dataset)
    series = load(input, column_names, time_column, dataset)
    import pyedmcl

    if graph:
        from ..io.optional import need

        need("networkx", "-o " + str(output), "graph")
    with talk.progress("network") as report:
        result = pyedmcl.causal_network(
            series, E=parse_E(E), tau=tau, lags=lag_list, latest=latest, Tp=Tp, n=parse_or_auto(n, "--n", 1), rate=rate,
            surrogate=None if surrogate.strip().lower() == "none" else surrogate, budget=budget, season=season,
            period=period, convergence=convergence, partial=partial, forecast=forecast,
            partial_surrogates=partial_surrogates, seed=seed,
            lib_sizes=parse_sizes(lib_sizes), sample=sample, exclusion_radius=radius,
            knn=knn, E_max=E_max, E_rule=parse_rule(E_rule), progress=report, dtype=dtype,
            device=device, out=folder, join=join, part=part, groups=labels, regular=regular, draw=draw,
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
        places = [columns.index(name) for name in _SHOWN]
        cells = [[row[place] for place in places] for row in linked[:_MOST_SHOWN]]
        for cell in cells:
            cell[-1] = cell[-1] if cell[2] == "indirect" else ""
        talk.table(_SHOWN, [[f"{cell:.3g}" if isinstance(cell, float) else str(cell) for cell in row] for row in cells],
                   right=_SHOWN[3:7])  # fmt: skip
        talk.cut(len(linked), _MOST_SHOWN)
    talk.document({"seed": result.seed, "rate": rate, "names": list(result.names), "E": result.E,
                   "methods": result.methods(), "surrogates": list(result.reasons),
                   "pairs": [dict(zip(columns, row, strict=True)) for row in rows], "written": written})  # fmt: skip


def _columns() -> tuple[str, ...]:
    from ..edm.causes.causal_network_result import COLUMNS

    return COLUMNS
