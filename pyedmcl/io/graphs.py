"""Graphs as files of networkx: arrows from cause to effect."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ..files import output_path, writing
from .optional import need

GRAPHS = (".graphml", ".gexf")


def write_graph(path: str | os.PathLike[str], edges: Iterable[Any]) -> Path:
    """Write edges, each with ``library`` (effect), ``target`` (cause), ``rho`` and ``E``, as GraphML or GEXF.

    Raises
    ------
    OutputError
        Another suffix, or a folder that is not there.
    StoreWriteError
        The file cannot be written.
    MissingExtraError
        networkx is not installed.
    """
    place = output_path(path, GRAPHS, "a graph")
    networkx = need("networkx", "writing a graph", "graph")
    graph = networkx.DiGraph()
    for edge in edges:
        graph.add_edge(edge.target, edge.library, rho=float(edge.rho), E=int(edge.E))
    write_networkx(graph, place)
    return place


def write_networkx(graph: Any, place: Path) -> None:
    """Write a graph of networkx; the suffix chooses the format."""
    networkx, memory = need("networkx", "writing a graph", "graph"), io.BytesIO()
    write = networkx.write_graphml_xml if place.suffix.lower() == ".graphml" else networkx.write_gexf
    write(graph, memory)
    with writing(place, "the graph") as draft:
        draft.write(memory.getbuffer())
