"""Graphs as files of networkx: arrows from cause to effect."""

from __future__ import annotations

import io
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..files import output_path, writing
from .optional import need

#: Characters that XML 1.0 has no place for.
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
GRAPHS = (".graphml", ".gexf")


class Graph:
    """What results have in common that ``to_networkx`` makes a graph of."""

    if TYPE_CHECKING:

        def to_networkx(self, *args: Any, **kwargs: Any) -> Any: ...

    def write_graph(self, path: str | os.PathLike[str], *args: Any, **kwargs: Any) -> Path:
        """Write ``to_networkx()``, with its arguments, as GraphML or GEXF; the suffix chooses. Needs networkx.

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
        write_networkx(self.to_networkx(*args, **kwargs), place)
        return place


def graph_of(nodes: Iterable[str], E: Mapping[str, int], edges: Iterable[tuple[str, str, Mapping[str, Any]]]) -> Any:
    """A networkx.DiGraph.

    Parameters
    ----------
    nodes : iterable of str
        All series.
    E : mapping of str to int
        Of those that have one.
    edges : iterable of (str, str, mapping)
        Cause, effect, and values of the edge, of which those that are missing (None, NaN) are left out: formats of
        graphs know none.

    Raises
    ------
    MissingExtraError
        networkx is not installed.
    """
    graph = need("networkx", "to_networkx()", "graph").DiGraph()
    for name in nodes:
        graph.add_node(name, **({"E": int(E[name])} if name in E else {}))
    for cause, effect, values in edges:
        attributes = {key: value for key, value in values.items() if value is not None and value == value}
        graph.add_edge(cause, effect, **attributes)
    return graph


def graph_of_edges(edges: Iterable[Any]) -> Any:
    """:func:`graph_of` edges that have ``library`` (effect), ``target`` (cause), ``rho`` and ``E`` (of the target)."""
    held = list(edges)
    E = {edge.target: edge.E for edge in held}
    nodes = dict.fromkeys(name for edge in held for name in (edge.target, edge.library))
    return graph_of(nodes, E, ((edge.target, edge.library, {"rho": float(edge.rho)}) for edge in held))


def write_networkx(graph: Any, place: Path) -> None:
    """Write a graph of networkx; the suffix chooses the format. What XML cannot hold is written as escapes."""
    networkx, memory = need("networkx", "writing a graph", "graph"), io.BytesIO()
    graph = networkx.relabel_nodes(graph, _xml_text)
    for _, _, values in graph.edges(data=True):
        values.update({key: _xml_text(value) for key, value in values.items() if isinstance(value, str)})
    write = networkx.write_graphml_xml if place.suffix.lower() == ".graphml" else networkx.write_gexf
    write(graph, memory)
    with writing(place, "the graph") as draft:
        draft.write(memory.getbuffer())


def _xml_text(text: str) -> str:
    return _NO_XML.sub(lambda sign: sign[0].encode("unicode_escape").decode(), text)
