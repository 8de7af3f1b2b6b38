"""``pyedmcl plot``: the heat map of a result."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from . import options
from .inputs import kept_edges, open_result, parse_clusters
from .other_results import draw, other_result
from .show import SHOW
from .talk import Talk

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
    other = other_result(result)
    if other is not None:
        kind = draw(
            other, output, network=network, title=title, dpi=dpi, cluster=cluster,
            options={"top": top, "layout": layout, "clusters": parse_clusters(clusters)},
        )  # fmt: skip
        talk.summary(f"{output}: {'network' if network else 'picture'} of a {kind}")
        talk.document({"output": str(output), "kind": kind})
        return
    store = open_result(result, partial=partial)
    kept = kept_edges(store)
    from ..launch.progress import reporting_to
    from ..plot import heat_map
    from ..plot.network import causal_network

    placed: dict[str, Any] = {"layout": layout, "clusters": parse_clusters(clusters)}
    shown: dict[str, Any] = {"targets": store.targets, "title": title, "dpi": dpi}
    with talk.progress("drawing") as report, reporting_to(report):
        if kept is not None and network:
            kept.plot_network(output, top=top, title=title, dpi=dpi, **placed)
        elif kept is not None:
            kept.plot(output, title=title, dpi=dpi)
        elif network:
            causal_network(store.rho, store.names, output, top=top, **shown, **placed)
        else:
            heat_map(store.rho, store.names, output, cluster=cluster, **shown)
    talk.summary(f"{output}: {'network' if network else 'map'} of {len(store.names):,} series")
    talk.document({"output": str(output), "n_series": len(store.names), "complete": store.complete})
