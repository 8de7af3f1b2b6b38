"""``pyedmcl plot``, ``export``, ``report`` and ``status``: results that are there."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options
from .maps import print_edges
from .options import draw, open_result, other_result, parse_clusters, parse_columns, result_in, write
from .output import SHOW, Talk, check_place

if TYPE_CHECKING:
    from ..jobs.status import Status


# ``pyedmcl plot``: the heat map of a result.


Partial = Annotated[bool, typer.Option("--partial", help="Use a result that is not finished; missing rows are NaN.")]


def plot(
    result: options.Result,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="MAP.png", show_default=False,
                     help="The picture: .png, .pdf, .svg; show, the default, opens a window."),
    ] = SHOW,
    title: Annotated[str | None, typer.Option("--title", metavar="TEXT", help="Title of the picture.")] = None,
    dpi: Annotated[int, typer.Option("--dpi", min=20, max=1200, help="Dots per inch.")] = 150,
    network: Annotated[
        bool, typer.Option("--network", help="Draw the strongest pairs as arrows from cause to effect instead.")
    ] = False,
    top: Annotated[int, typer.Option("--top", metavar="N", help="How many arrows.", min=1, max=400)] = 40,
    layout: options.Layout = "circle",
    clusters: options.Clusters = None,
    cluster: Annotated[
        bool, typer.Option("--cluster", help="Of a map: put series that are alike side by side. Needs SciPy.")
    ] = False,
    partial: Partial = False,
    progress: options.Progress = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Draw a result; of a map, rows are effects (libraries), columns are causes (targets)."""
    talk = Talk(quiet=quiet, as_json=json, progress=progress)
    from ..plot.figure import check_format

    check_format(output)
    asked: dict[str, Any] = {"network": network, "title": title, "dpi": dpi, "cluster": cluster}
    asked["options"] = {"top": top, "layout": layout, "clusters": parse_clusters(clusters)}
    other = other_result(result)
    if other is not None:
        kind = draw(other, output, **asked)
        talk.summary(f"{output}: {'network' if network else 'picture'} of a {kind}")
        talk.document({"output": str(output), "kind": kind})
        return
    store = open_result(result, partial=partial)
    from ..launch.progress import reporting_to

    with talk.progress("drawing") as report, reporting_to(report):
        draw(result_in(store), output, **asked)
    talk.summary(f"{output}: {'network' if network else 'map'} of {len(store.names):,} series")
    talk.document({"output": str(output), "n_series": len(store.names), "complete": store.complete})


# ``pyedmcl export``: a result, or its strongest pairs, as a file.


def export(
    result: options.Result,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", show_default=False,
            help="The map as .csv, .tsv, .npy, .npz, .h5, .nc or .parquet; with --edges, or of a result of "
            "'xmap --keep', a list as .csv, .tsv, .json, .npz or .parquet, or a graph as .graphml or .gexf; of another "
            "result a table, its arrays as .nc, or its links as .graphml or .gexf.",
        ),
    ] = None,
    edges: Annotated[
        bool, typer.Option("--edges", help="The strongest pairs instead of the map; printed where -o is not given.")
    ] = False,
    top: Annotated[int, typer.Option("--top", min=1, help="How many pairs.")] = 100,
    partial: Partial = False,
    progress: options.Progress = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Write the map of a result, or the list of its strongest pairs, to a file."""  # fmt: skip
    talk = Talk(quiet=quiet, as_json=json, progress=progress)
    if output is None and not edges:
        raise typer.BadParameter("-o FILE is needed for the map; only --edges can be printed without it")
    if output is not None:
        check_place(output)
    other = other_result(result)
    if other is not None:
        if output is None:
            raise typer.BadParameter("-o FILE is needed; only the pairs of a map of 'pyedmcl xmap' can be printed")
        what, rows = write(other, output, edges=edges, top=top)
        size = "" if rows is None else f", {rows:,} rows"
        talk.summary(f"{output}: the {what} of a {type(other).__name__}{size}")
        talk.document({"output": str(output), "kind": type(other).__name__, "rows": rows})
        return
    store = open_result(result, partial=partial)
    from ..launch.progress import reporting_to
    from ..results.edges import GRAPHS, graph_of_edges, strongest_edges, write_edges, write_networkx
    from ..results.tables import write_matrix

    held = result_in(store)
    kept = None if store.keep is None else held
    target = None if output is None else str(output)
    if edges:
        if kept is None:
            with talk.progress("reading") as report, reporting_to(report):
                strongest = strongest_edges(store.rho, store.names, store.E, top, store.targets)
        else:
            strongest = list(kept.edges(top))
        if output is None:
            print_edges(talk, strongest)
        else:
            if output.suffix.lower() in GRAPHS:
                write_networkx(graph_of_edges(strongest), output)
            else:
                write_edges(output, strongest)
            talk.summary(f"{output}: the {len(strongest):,} strongest pairs of {len(store.names):,} series")
        talk.document({"output": target, "complete": store.complete, "edges": [edge.named() for edge in strongest]})
        return
    assert output is not None
    if kept is not None:
        if output.suffix.lower() in GRAPHS:
            kept.write_graph(output)
        else:
            kept.save(output)
        talk.summary(f"{output}: {len(kept):,} pairs of {len(store.names):,} series (--keep {kept.keep})")
        talk.document({"output": target, "n_series": len(store.names), "complete": store.complete, "pairs": len(kept)})
        return
    attributes = store.manifest.attributes()["pyedmcl"]
    with talk.progress("writing") as report, reporting_to(report):
        if output.suffix.lower() == ".nc" and any(held.grids):
            held.write_netcdf(output)
        else:
            places = held.grids[0] if store.targets is not None else None
            write_matrix(output, store.rho, store.names, store.E, attributes, store.targets, places)
    talk.summary(f"{output}: {store.shape[0]:,} x {store.shape[1]:,} map")
    talk.document({"output": target, "n_series": len(store.names), "complete": store.complete})


# ``pyedmcl report``: results as one HTML file.


def report(
    results: Annotated[
        list[Path],
        typer.Argument(
            metavar="RESULT...", show_default=False,
            help="What 'xmap', 'xmap-grid' or 'ccm-matrix' wrote, finished or not, or files that save() wrote (.edm). "
            "Several become sections of one page.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="REPORT.html", help="The page.", show_default=False)
    ],
    title: Annotated[str | None, typer.Option("--title", metavar="TEXT", help="Title of the page.")] = None,
    top: Annotated[int, typer.Option("--top", metavar="N", help="How many links its tables list.", min=1)] = 500,
    cluster: Annotated[
        bool, typer.Option("--cluster", help="Put the series of maps in order of likeness (needs SciPy).")
    ] = False,
    pair: Annotated[
        list[str] | None,
        typer.Option("--pair", metavar="CAUSE,EFFECT", show_default=False,
                     help="Show the curves of this pair first; may be given again. Default: the strongest."),
    ] = None,
    rate: Annotated[float, typer.Option("--rate", help="False discovery rate at which links are significant.")] = 0.05,
    progress: options.Progress = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Write maps, tables, networks and curves of results as one HTML file that needs no network."""  # fmt: skip
    talk = Talk(quiet=quiet, as_json=json, progress=progress)
    from ..launch.progress import reporting_to
    from ..reporting.report import report as write

    pairs = [_pair(text) for text in pair or ()]
    with talk.progress("reading") as reported, reporting_to(reported):
        write(list(results), output, title=title, top=top, cluster=cluster, pairs=pairs or None, rate=rate)
    size = output.expanduser().stat().st_size
    counted = "1 result" if len(results) == 1 else f"{len(results)} results"
    talk.summary(f"{output}: report of {counted}, {size / 1e6:.2g} MB")
    talk.document({"output": str(output), "results": [str(path) for path in results], "bytes": size})


def _pair(text: str) -> tuple[str, str]:
    names = parse_columns(text)
    if names is None or len(names) != 2:
        raise typer.BadParameter(f"--pair {text!r}: the cause and the effect are needed, such as --pair x,y")
    return names[0], names[1]


# ``pyedmcl status``: how far a map or another run in a folder is, who computes it, and how long it will take.


_HEADER = ("process", "device", "state", "blocks done", "computing")
_SECONDS = 5.0  # between two looks


def status(
    result: Annotated[
        Path,
        typer.Argument(metavar="OUT", help="The folder that xmap, ccm-matrix, network or 'rqa --join' writes."),
    ],
    watch: Annotated[
        bool, typer.Option("--watch", help="Look again every few seconds, until all is done.")
    ] = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """Say how far a result is: what is done and claimed, by whom, how fast, and how long it will take.

    Processes that have joined (--join) are listed one by one, also those that were lost.
    """
    talk = Talk(as_json=json)
    from ..atomic_files import path_of
    from ..jobs.status import Observer

    observer = Observer(path_of(result, "OUT"))
    while True:
        state = observer.look()
        _tell(talk, state)
        if not watch or state.complete:
            return
        time.sleep(_SECONDS)


def _tell(talk: Talk, state: Status) -> None:
    for line in _lines(state):
        talk.summary(line)
    if state.processes:
        rows = [(str(one.holder), one.holder.device, one.state, f"{one.done:,}", ", ".join(one.computing))
                for one in state.processes]  # fmt: skip
        talk.table(_HEADER, rows, right=("blocks done",))
    talk.document(
        {
            "output": str(state.path),
            "done": state.done,
            "total": state.total,
            "E_done": state.E_done,
            "E_total": state.E_total,
            "step": state.step,
            "claimed": state.claimed,
            "stale": state.stale,
            "blocks_per_second": state.rate,
            "seconds_left": state.seconds_left,
            "processes": [
                {
                    "host": one.holder.host,
                    "pid": one.holder.pid,
                    "device": one.holder.device,
                    "state": one.state,
                    "done": one.done,
                    "computing": one.computing,
                }
                for one in state.processes
            ],
        }
    )


def _lines(state: Status) -> list[str]:
    if state.complete:
        return [f"{state.path}: all {state.total:,} blocks are done"]
    if state.total is None:
        return [
            f"{state.path}: not finished; {state.done:,} blocks are done and kept, and the same command continues "
            "there; how many are left shows only as it goes on",
            *([state.step] if state.step else []),
        ]
    line = f"{state.path}: {state.done:,} of {state.total:,} blocks are done ({100 * state.done / state.total:.1f} %)"
    if state.claimed:
        line += f", {state.claimed:,} claimed"
    if state.stale:
        line += f" ({state.stale:,} by processes that are lost)"
    lines = [line]
    if state.E_total:
        lines.append(f"E is searched: {state.E_done:,} of {state.E_total:,} blocks are done")
    if state.rate is not None and state.seconds_left is not None:
        lines.append(f"{state.rate:.3g} blocks a second lately, about {_duration(state.seconds_left)} left")
    return lines


def _duration(seconds: float) -> str:
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.0f} seconds"
