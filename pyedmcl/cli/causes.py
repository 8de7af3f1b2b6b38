"""``pyedmcl ccm``, ``ccm-matrix``, ``surrogate-test`` and ``network``: convergence, significance, and what drives what.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from . import options
from .methods import Asked, derived
from .options import FILES, First, Second, parse_clusters, part_of, shown_names
from .output import (
    Talk,
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


def two_series(asked: Asked, x: str | None, y: str | None) -> tuple[Series, Series]:
    """Two series of a file: those named, or the only two there are."""
    if (x is None) != (y is None):
        raise typer.BadParameter("--x and --y: name both variables, or neither where the file has two series")
    if x is not None and x == y:
        raise typer.BadParameter(f"--x and --y both name {x!r}: two different series are needed")
    asked.label(None if x is None else [x], needed="--x and --y")
    series = asked.load(None if x is None or y is None else [x, y])
    if series.n_series != 2:
        raise typer.BadParameter(
            f"--x and --y are needed to choose two of the {series.n_series} series: {shown_names(series)}"
        )
    return part_of(series, 0), part_of(series, 1)


@derived("ccm", file=("SKILL.csv", "mean and quantiles of the skill per direction and size"))
def ccm(asked: Asked, x: First = None, y: Second = None, picture: options.Picture = None) -> None:
    """Predict two series from random parts of each other's states: does skill grow with the library?

    "x predicts y" with growing skill says that y drives x.
    """
    result = asked.call(*two_series(asked, x, y), doing="cross mapping")
    asked.draw(result.plot)
    from ..convergence.results import WindowedCcm
    from ..results.tables import role_columns

    if isinstance(result, WindowedCcm):
        _windows(asked, result)
        return
    asked.write(result, _HEADER, _rows(result))
    directions = []
    for d, (library, target) in enumerate(result.links):
        test = result.convergence[d]
        first, last = int(result.lib_sizes.argmin()), int(result.lib_sizes.argmax())
        asked.talk.summary(
            f"{library} predicts {target} ({target} drives {library}?): rho = {result.mean[d, first]:.3f} at "
            f"{result.lib_sizes[first]:,} rows, {result.mean[d, last]:.3f} at {result.lib_sizes[last]:,}; trend "
            f"{test.trend:.2f}"
        )
        directions.append({**role_columns(library, target), "mean": result.mean[d], "median": result.median[d],
                      "trend": test.trend, "gain": test.gain, "overlap": test.overlap})  # fmt: skip
    asked.talk.remark(f"seed {result.seed}{asked.where('skill')}")
    asked.document({"lib_sizes": result.lib_sizes, "sample": asked.words["sample"], "seed": result.seed,
                    "E": list(result.E), "directions": directions,
                    "neighbors": result.provenance["neighbors"]})  # fmt: skip


def _windows(asked: Asked, result: WindowedCcm) -> None:
    """Mean skill of each window, direction and size, as a table and in a file."""
    header, rows = table_of_windows(result)
    asked.write(result, header, rows)
    largest = int(result.lib_sizes.max())
    shown = [[*map(str, row[:-1]), f"{row[-1]:.4f}"] for row in rows if row[-2] == largest]
    asked.talk.table(header, shown, right=("start", "end", "lib_size", "mean"))
    asked.document({"seed": result.seed, "E": list(result.E), "width": result.width,
                    "windows": [dict(zip(header, row, strict=True)) for row in rows]})  # fmt: skip


def _rows(result: Any) -> list[list[Any]]:
    from ..results.tables import roles

    spread = result.quantiles((0.05, 0.25, 0.5, 0.75, 0.95))
    return [
        [*roles(library, target), int(size), float(result.mean[d, s]), *map(float, spread[d, s])]
        for d, (library, target) in enumerate(result.links) for s, size in enumerate(result.lib_sizes)
    ]  # fmt: skip


# ``pyedmcl ccm-matrix``: convergent cross mapping of all pairs, into a folder that another run can continue.


_SHOWN = 10  # pairs that are printed


@derived("ccm_matrix", table=True)
def ccm_matrix(
    asked: Asked,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FOLDER", show_default=False,
                     help="Folder of the result: a Zarr group per library size; with --windows a table (.csv, .tsv, "
                     ".json)."),
    ],
    pairs: Annotated[
        Path | None,
        typer.Option("--pairs", metavar="PAIRS.csv", show_default=False,
                     help="Also write every pair's final skill, gain and trend (.csv, .tsv, .json)."),
    ] = None,
    picture: options.Picture = None,
    network: options.Network = None,
) -> None:  # fmt: skip
    """Map all pairs of series for several library sizes: where does skill grow with the library?

    After an interruption the same command continues where it ended; other library sizes are added to what is there.
    """
    talk, sample, windowed = asked.talk, asked.words["sample"], asked.words["windows"] is not None
    if pairs is not None:
        check_table(pairs)
    if windowed:
        check_table(output, "skill within windows")
        if pairs is not None or network is not None:
            raise typer.BadParameter("--pairs and --network are of one matrix; leave them out with --windows")
    elif output.suffix.lower() in FILES:
        raise typer.BadParameter(f"{output}: -o names the folder of the result; --pairs writes a file")
    series = asked.table()
    talk.remark(f"{asked.input}: {series.n_series:,} series of {series.n_steps:,} steps")
    result = asked.call(series, out=None if windowed else output, doing="cross mapping")
    asked.draw(result.plot)
    if windowed:
        header, rows = table_of_windows(result)
        write_table(output, header, rows)
        talk.summary(f"{output}: {len(result.starts):,} windows of {result.width:,} rows, {len(rows):,} rows of skill, "
                     f"seed {result.seed}")  # fmt: skip
        asked.document({"windows": len(result.starts), "width": result.width, "names": list(result.names),
                        "lib_sizes": result.lib_sizes, "sample": sample, "seed": result.seed})  # fmt: skip
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
    asked.document({"n_series": series.n_series, "n_steps": series.n_steps, "names": list(result.names),
                    "E": result.E, "lib_sizes": result.lib_sizes, "sample": sample, "seed": result.seed,
                    "method": result.method, "theta": result.theta, "pairs": None if pairs is None else str(pairs),
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


@derived("xmap_significance", "ccm_significance", file=("PAIRS.csv", "skill, p-value and q-value of each pair"),
         table=True, without=("resume", "join", "part"))  # fmt: skip
def surrogate_test(
    asked: Asked, x: First = None, y: Second = None, picture: options.Picture = None, network: options.Network = None
) -> None:  # fmt: skip
    """Test whether cross-map skill is more than chance, by random surrogates in the place of the target.

    With --x and --y for one pair in both directions; without for all pairs, adjusted for their number.
    """
    talk, words = asked.talk, asked.words
    rate = words["rate"]
    if not 0 < rate < 1:
        raise typer.BadParameter(f"--rate {rate:g}: a number between 0 and 1 is needed")
    of_pair = x is not None or y is not None
    if words["windows"] is not None and (of_pair or network is not None):
        raise typer.BadParameter("--windows: all pairs are tested, without --x, --y or --network; --columns names some")
    if of_pair and asked.columns is not None:
        raise typer.BadParameter("--columns: of a pair only --x and --y are named")
    if of_pair and network is not None:
        raise typer.BadParameter("--network: a pair has no network; leave --x and --y out for all pairs")
    asked.refuse_unused("ccm_significance" if of_pair else "xmap_significance")
    if of_pair:
        found = asked.call(*two_series(asked, x, y), function="ccm_significance", doing="surrogates")
        asked.draw(found.plot)
        tested = _of_a_pair(found)
    else:
        found = asked.call(asked.table(), doing="surrogates")
        if words["windows"] is not None:
            _tested_windows(asked, found, rate)
            return
        asked.draw(found.plot, rate=rate)
        if network is not None:
            found.plot_network(str(network), rate)
        tested = _of_all_pairs(found)
    result, header, rows = tested.result, tested.header, tested.rows
    asked.write(result, header, rows)
    place = header.index("q_value")
    hits = [row for row in rows if row[place] <= rate]
    talk.summary(f"{len(hits)} of {len(rows)} directions are significant at a false discovery rate of {rate:g} "
                 f"({'up to ' if words['n'] == 'auto' else ''}{result.n:,} surrogates by {words['surrogate']}, seed "
                 f"{result.seed}; no p can be below {result.smallest_p:.2g}, and no q of a single pair below "
                 f"{result.smallest_q:.2g}){asked.where('pairs')}")  # fmt: skip
    talk.remark_on_surrogates(tested.targets, result.reasons)
    shown = rows if of_pair else hits[:_TESTED]
    if shown and not talk.quiet:
        talk.table(header, [_cells(row) for row in shown], right=header[4:])
    talk.remark_on_arrows(tested.n_series, len(hits))
    asked.document({"surrogate": words["surrogate"], "n": result.n, "seed": result.seed, "rate": rate,
                    "significant": len(hits), "smallest_p": result.smallest_p, "smallest_q": result.smallest_q,
                    "pairs": [dict(zip(header, row, strict=True)) for row in rows]})  # fmt: skip


def _cells(row: Sequence[Any], digits: int = 4) -> list[str]:
    return [f"{cell:.{digits}g}" if isinstance(cell, float) else str(cell) for cell in row]


def _tested_windows(asked: Asked, result: Any, rate: float) -> None:
    """Pairs that are significant in a window, and all pairs of all windows in a file."""
    header, rows = table_of_windows(result)
    asked.write(result, header, rows)
    asked.draw(result.plot)
    hits = [row for row in rows if row[header.index("q_value")] <= rate]
    asked.talk.table(header, [_cells(row) for row in hits[:_TESTED]], right=("start", "end", *header[-6:]))
    asked.talk.summary(f"{len(hits)} of {len(rows)} directions of windows are significant at a false discovery rate of "
                       f"{rate:g} (seed {result.seed})")  # fmt: skip
    asked.document({"seed": result.seed, "rate": rate, "significant": len(hits), "width": result.width,
                    "windows": [dict(zip(header, row, strict=True)) for row in rows]})  # fmt: skip


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


@derived("causal_network", table=True)
def network(
    asked: Asked,
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
) -> None:  # fmt: skip
    """Find which series drives which, directly or through others, and say how that is known.

    A link has a higher skill than with surrogates, grows with the library, is best at a lag before the effect, and is
    explained by no other series. docs/causality.md has the rules; each of the four can be switched off.
    """
    graph = output is not None and output.suffix.lower() in _GRAPHS
    folder = output if output is not None and not output.suffix else None
    if folder is not None:
        output = folder / "pairs.csv"
    else:
        check_result(output, "a network, if not to a folder (a name without an ending),", _GRAPHS)
    if text is not None:
        check_place(text)
    drawn_clusters = parse_clusters(clusters)
    series = asked.table()
    if graph:
        from ..errors import need

        need("networkx", "-o " + str(output), "graph")
    result = asked.call(series, out=folder, doing="network")
    _write(result, output, text)
    asked.draw(result.plot, layout=layout, clusters=drawn_clusters)
    _tell(asked, result, [str(path) for path in (output, text, picture) if path is not None])


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


def _tell(asked: Asked, result: CausalNetwork, written: list[str]) -> None:
    """Say on the terminal, or as JSON, what was found and where it was written."""
    talk = asked.talk
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
        talk.table(_HEADS, [_cells(row, 3) for row in cells], right=_HEADS[3:7])
        talk.cut(len(linked), _MOST_SHOWN)
    talk.document({"seed": result.seed, "rate": asked.words["rate"], "names": list(result.names), "E": result.E,
                   "methods": result.methods(), "surrogates": list(result.reasons),
                   "pairs": [dict(zip(columns, row, strict=True)) for row in rows], "written": written})  # fmt: skip


def _columns() -> tuple[str, ...]:
    from ..network.verdicts import COLUMNS

    return COLUMNS
