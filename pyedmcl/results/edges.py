"""The strongest links of a map, and links written as tables and graphs."""

from __future__ import annotations

import io
import json
import os
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..atomic_files import output_path, writing
from ..errors import InputError, need
from .result import ANSWER_ROWS, SMALL, Answer
from .tables import ROLES, Ends, checked_map, roles, row_blocks, row_writer, text_cell, text_of, write_members

# Graphs as files of networkx: arrows from cause to effect.


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


def strongest_answer(result: Any) -> Answer:
    """The strongest of ``result.edges()``, and how many there are; nothing was tested of them."""
    held = list(result.edges(SMALL))
    rows = [(edge.target, edge.library, edge.rho, edge.E) for edge in held[:ANSWER_ROWS]]
    columns = ("cause", "effect", "skill", "E")
    return Answer(columns, rows, len(held), "edges(top). Skill alone is no test of a cause")


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


#: Gives edges part by part, as arrays with the fields library and target (positions) and rho; may be called again.
Parts = Callable[[], Iterable[NDArray[Any]]]
_EDGES = 1 << 20  # edges that are written together


class Edge(NamedTuple):
    """One cell of a cross map.

    ``rho`` is the skill with which the embedding of ``library`` predicts ``target``: a high value is evidence that
    ``target`` drives ``library``. ``E`` is the target's embedding dimension.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> edge = pyedmcl.xmap(coupled_maps(n_series=4, n_steps=400).values, E=3).edges(top=1)[0]
    >>> edge.cause, edge.effect, round(edge.rho, 1)  # the strongest link: x2 drives x0
    ('x2', 'x0', 0.9)
    >>> edge.named()["cause"], edge.named()["effect"]
    ('x2', 'x0')
    """

    library: str
    target: str
    rho: float
    E: int

    @property
    def cause(self) -> str:
        """The target: it left its trace in the library, if the skill means a link."""
        return self.target

    @property
    def effect(self) -> str:
        """The library."""
        return self.library

    def __repr__(self) -> str:
        return f"Edge(cause={self.cause!r}, effect={self.effect!r}, rho={float(self.rho):.4g}, E={self.E})"

    def row(self) -> tuple[Any, ...]:
        """As a row of :data:`EDGE_COLUMNS`."""
        return (*roles(self.library, self.target), self.rho, self.E, E_OF)

    def named(self) -> dict[str, Any]:
        """Its values by the names of :data:`EDGE_COLUMNS`."""
        return dict(zip(EDGE_COLUMNS, self.row(), strict=True))


#: Of lists of edges as text and tables: both names of each role, and whose dimension E is.
EDGE_COLUMNS = (*ROLES, "rho", "E", "E_of")
#: A map takes the dimension of what it predicts.
E_OF = "cause"


class Strongest:
    """The largest of many values and the cells that they stand in, which come part by part; NaN is never among them.

    Parameters
    ----------
    top : int
        How many at most.

    Attributes
    ----------
    values : ndarray of float64
        Falling; equal ones by their cell.
    """

    def __init__(self, top: int) -> None:
        if isinstance(top, bool) or not isinstance(top, (int, np.integer)) or top < 1:
            raise InputError(f"top={top!r}: the number of edges must be an integer of at least 1")
        self._top = int(top)
        self.values = np.empty(0, np.float64)
        self.cells = np.empty(0, np.int64)

    def add(self, values: NDArray[Any], cells: NDArray[Any] | int) -> None:
        """Take more values; ``cells`` of each, or the first one where they are adjacent."""
        top = self._top
        full = len(self.values) >= top
        chosen = np.flatnonzero(values >= self.values[-1] if full else ~np.isnan(values))
        if len(chosen) > top:  # all that tie with the last one stay, the order below decides
            cut = np.partition(values[chosen], len(chosen) - top)[len(chosen) - top]
            chosen = chosen[values[chosen] >= cut]
        merged = np.concatenate([self.values, values[chosen]])
        places = np.concatenate([self.cells, chosen + cells if isinstance(cells, int) else cells[chosen]])
        order = np.lexsort((places, -merged))[:top]
        self.values, self.cells = merged[order], places[order]


def strongest_edges(
    rho: Any, names: Sequence[str], E: Any, top: int, targets: Sequence[str] | None = None
) -> list[Edge]:
    """The ``top`` largest values of a series with another.

    Parameters
    ----------
    rho : array_like
        Shape (N, N) or (N, targets), row = library, column = target; an object with ``shape`` and slicing over rows is
        read in blocks.
    names : sequence of str
        N names.
    E : int or array_like
        Embedding dimension of each target, or one for all.
    top : int
        How many edges at most; memory grows with it and with a block of rows, not with the map.
    targets : sequence of str, optional
        Names of the targets, where these are not the N series.

    Returns
    -------
    list of Edge
        By falling rho, then by position of the library, then of the target. NaN never appears.

    Raises
    ------
    InputError
        For shapes that do not fit, and for a ``top`` below 1.

    Examples
    --------
    >>> from pyedmcl.files import strongest_edges
    >>> strongest_edges([[1.0, 0.25], [0.75, 1.0]], names=["prey", "hunter"], E=3, top=1)
    [Edge(cause='prey', effect='hunter', rho=0.75, E=3)]
    """
    rho, names, columns, dims = checked_map(rho, names, E, targets)
    strongest = Strongest(top)
    for start, values in between_series(rho, own_targets(names, targets)):
        strongest.add(values.reshape(-1), start * len(columns))
    return edges_of(strongest, names, dims, columns)


def own_targets(names: Sequence[str], targets: Sequence[str] | None) -> NDArray[np.int_]:
    """Which target each library is, -1 for none: itself, or among other targets the one of its name."""
    if targets is None:
        return np.arange(len(names))
    place = {name: column for column, name in enumerate(targets)}
    return np.array([place.get(name, -1) for name in names], int)


def are_two(names: Sequence[str], targets: Sequence[str] | None) -> NDArray[np.bool_]:
    """Of each pair (libraries, targets) whether it is of two series; see :func:`own_targets`."""
    itself = own_targets(names, targets)
    return np.asarray(itself[:, None] != np.arange(len(names if targets is None else targets)))


def blank_itself(rho: NDArray[Any], itself: NDArray[np.int_], first: int) -> None:
    """Write NaN where library rows, ``first`` and on, meet themselves as targets; see :func:`own_targets`."""
    columns = itself[first : first + len(rho)]
    rows = np.flatnonzero(columns >= 0)
    rho[rows, columns[rows]] = np.nan


def between_series(rho: Any, itself: NDArray[np.int_]) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Blocks of rows (start, float64) of a map, with NaN where a series meets itself."""
    for start, block in row_blocks(rho, 8):
        values = block.astype(np.float64)
        blank_itself(values, itself, start)
        yield start, values


def edges_of(
    strongest: Strongest, names: Sequence[str], E: Any, targets: Sequence[str] | None = None
) -> list[Edge]:
    """The cells of a map of ``names``, and of ``targets`` where these are others, as edges."""
    targets = names if targets is None else targets
    n = len(targets)
    return [Edge(names[cell // n], targets[cell % n], float(value), int(E[cell % n]))
            for value, cell in zip(strongest.values, strongest.cells.tolist(), strict=True)]  # fmt: skip


def write_edges(path: str | os.PathLike[str], edges: Sequence[Edge]) -> Path:
    """Write edges as .csv, .tsv or .parquet (see :data:`EDGE_COLUMNS`), .json (a list of objects) or .npz.

    In .npz, library and target are positions in the array ``names``.

    Parameters
    ----------
    path : path
        A file that is there is replaced once the new one is complete.
    edges : sequence of Edge
        As of :func:`strongest_edges` or of a result's ``edges()``.

    Returns
    -------
    pathlib.Path

    Raises
    ------
    InputError
        For another suffix or a folder that is not there.
    StoreWriteError
        If the file cannot be written; a file that was there is kept then.
    MissingExtraError
        If Parquet needs a package that is not installed.

    Examples
    --------
    >>> import tempfile
    >>> from pyedmcl.files import Edge, write_edges
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = write_edges(f"{folder}/edges.csv", [Edge("hunter", "prey", 0.75, 3)])
    ...     print(path.read_text(), end="")
    cause,effect,library,target,rho,E,E_of
    prey,hunter,hunter,prey,0.75,3,cause
    """
    E = dict.fromkeys((edge.library for edge in edges), 0) | {edge.target: edge.E for edge in edges}
    positions = {name: i for i, name in enumerate(E)}
    part = np.array(
        [(positions[edge.library], positions[edge.target], edge.rho) for edge in edges],
        [("library", np.int32), ("target", np.int32), ("rho", np.float64)],
    )
    return write_edge_parts(path, lambda: (part,), list(E), list(E.values()), {})


def write_edge_parts(
    path: str | os.PathLike[str], parts: Parts, names: Sequence[str], E: Any, attrs: Mapping[str, Any],
    targets: Sequence[str] | None = None,
) -> Path:  # fmt: skip
    """Write edges part by part; the suffix chooses the format.

    Parameters
    ----------
    path : path
        As for :func:`write_edges`.
    parts : callable
        See :data:`Parts`.
    E : ndarray of int
        Of each target.
    attrs : mapping
        Provenance for the format that has a place for it (Parquet).
    targets : sequence of str, optional
        Names of the targets, where ``names`` are those of libraries alone.
    """
    path = output_path(path, tuple(_WRITERS), "a list of edges")
    with writing(path, "the list of edges") as draft:
        ends = Ends(names, names if targets is None else targets, targets is None)
        _WRITERS[path.suffix.lower()](draft, path.suffix.lower(), parts, ends, np.asarray(E, np.int32), attrs)
    return path


def _rows(parts: Parts, names: Ends, E: Any) -> Iterator[Edge]:
    for piece in _pieces(parts):
        columns = piece["library"].tolist(), piece["target"].tolist(), piece["rho"]
        for library, target, rho in zip(*columns, strict=True):
            yield Edge(names.libraries[library], names.targets[target], rho, int(E[target]))


def _pieces(parts: Parts) -> Iterator[NDArray[Any]]:
    """The parts as pieces of one size, so that neither many small parts nor a large one cost much; the last is less."""
    held: list[NDArray[Any]] = []
    for part in parts():
        for begin in range(0, len(part), _EDGES):
            held.append(part[begin : begin + _EDGES])
            if sum(map(len, held)) >= _EDGES:
                yield np.concatenate(held)
                held = []
    if held:
        yield np.concatenate(held)


def _write_text(draft: IO[bytes], suffix: str, parts: Parts, names: Ends, E: Any, attrs: Any) -> None:
    with text_of(draft) as handle:
        writer = row_writer(handle, "\t" if suffix == ".tsv" else ",")
        writer.writerow(EDGE_COLUMNS)
        writer.writerows(map(text_cell, edge.row()) for edge in _rows(parts, names, E))


def _write_json(draft: IO[bytes], suffix: str, parts: Parts, names: Ends, E: Any, attrs: Any) -> None:
    with text_of(draft) as handle:
        separator = "[\n "
        for edge in _rows(parts, names, E):
            handle.write(separator + json.dumps({**edge.named(), "rho": float(edge.rho)}, ensure_ascii=False))
            separator = ",\n "
        handle.write("[]\n" if separator[0] == "[" else "\n]\n")


def _write_parquet(draft: IO[bytes], suffix: str, parts: Parts, names: Ends, E: Any, attrs: Any) -> None:
    pyarrow = need("pyarrow", "writing Parquet")
    parquet = need("pyarrow.parquet", "writing Parquet")
    labels = [pyarrow.array([str(name) for name in side], pyarrow.string()) for side in names[:2]]
    kinds = [*((role, pyarrow.string()) for role in ROLES),
             ("rho", pyarrow.from_numpy_dtype(_rho_type(parts))), ("E", pyarrow.int32()),
             ("E_of", pyarrow.string())]  # fmt: skip
    schema = pyarrow.schema(kinds, {"pyedmcl": json.dumps(dict(attrs), default=str)})
    with parquet.ParquetWriter(draft, schema) as writer:
        for piece in _pieces(parts):
            columns = list(roles(*(
                side.take(pyarrow.array(np.ascontiguousarray(piece[end])))
                for side, end in zip(labels, ("library", "target"), strict=True)
            )))
            columns.append(pyarrow.array(np.ascontiguousarray(piece["rho"])))
            columns.append(pyarrow.array(E[piece["target"]]))
            columns.append(pyarrow.repeat(E_OF, len(piece)))
            writer.write_table(pyarrow.Table.from_arrays(columns, schema=schema))


def _write_npz(draft: IO[bytes], suffix: str, parts: Parts, names: Ends, E: Any, attrs: Any) -> None:
    n = sum(map(len, parts()))
    columns: dict[str, tuple[Any, Callable[[NDArray[Any]], NDArray[Any]]]] = {
        "library": (np.int32, lambda piece: piece["library"]),
        "target": (np.int32, lambda piece: piece["target"]),
        "rho": (_rho_type(parts), lambda piece: piece["rho"]),
        "E": (np.int32, lambda piece: E[piece["target"]]),
    }
    with zipfile.ZipFile(draft, "w") as archive:
        for name, (kind, column) in columns.items():  # a member is written from its beginning to its end
            dtype = np.dtype(kind)
            head = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (n,)}
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array_header_1_0(member, head)
                for piece in _pieces(parts):
                    member.write(np.ascontiguousarray(column(piece), dtype).data)
        members = names.members().items()
        write_members(archive, {key: np.array([str(name) for name in side]) for key, side in members})


def _rho_type(parts: Parts) -> np.dtype[Any]:
    return next((part.dtype["rho"] for part in parts()), np.dtype(np.float32))


_WRITERS: dict[str, Callable[[IO[bytes], str, Parts, Ends, Any, Any], None]] = {
    ".csv": _write_text, ".tsv": _write_text, ".json": _write_json, ".parquet": _write_parquet, ".npz": _write_npz,
}  # fmt: skip
