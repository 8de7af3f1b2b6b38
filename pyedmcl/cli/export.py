"""``pyedmcl export``: a result, or its strongest pairs, as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import options
from .files import check_place
from .inputs import kept_edges, open_result
from .other_results import other_result, write
from .plot import Partial
from .talk import Talk
from .xmap import print_edges


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
    from ..io.edges import strongest_edges, write_edges
    from ..io.export import write_matrix
    from ..io.graphs import GRAPHS, graph_of_edges, write_networkx
    from ..launch.progress import reporting_to

    kept = kept_edges(store)
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
        write_matrix(output, store.rho, store.names, store.E, attrs=attributes, targets=store.targets)
    talk.summary(f"{output}: {store.shape[0]:,} x {store.shape[1]:,} map")
    talk.document({"output": target, "n_series": len(store.names), "complete": store.complete})
