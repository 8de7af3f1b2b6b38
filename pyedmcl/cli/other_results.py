"""Results that are no map of ``pyedmcl xmap``: those that ``save`` wrote, and folders of other functions (``out=``)."""

from __future__ import annotations

import inspect
import os
from pathlib import Path
from typing import Any

from ..errors import InputError
from .exits import running

_TABLES = (".csv", ".tsv", ".json", ".parquet")
_ARRAYS = (".nc",)


def other_result(path: Path) -> Any:
    """The result at ``path``; None for what a map of ``pyedmcl xmap`` may be.

    Raises
    ------
    InputError, StoreError
        As for :func:`pyedmcl.open_result`.
    """
    from ..errors import StoreForeignError
    from ..io.saved import SUFFIX
    from ..jobs.zarr3 import METADATA

    if (path / METADATA).exists() if os.path.isdir(path) else path.suffix.lower() != SUFFIX:
        return None
    from ..edm.open_result import open_result

    try:
        return open_result(path)
    except StoreForeignError:
        if os.path.isdir(path):  # the commands say what they read
            return None
        raise


def given(name: str) -> bool:
    """Whether an option stands in the command line."""
    context = running()
    source = None if context is None else context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def draw(
    result: Any, output: Path, *, network: bool, options: dict[str, Any], title: str | None, dpi: int,
    cluster: bool = False,
) -> str:  # fmt: skip
    """Draw a result; says what it is. ``asked`` are arguments of pictures of networks.

    Raises
    ------
    InputError
        It has no picture of this kind, or none whose series could be put in order.
    """
    kind = type(result).__name__
    picture = getattr(result, "plot_network" if network else "plot", None)
    if network and picture is None and kind == "CausalNetwork":
        picture = result.plot
    if picture is None:
        raise InputError(f"a {kind} has no {'network' if network else 'picture'}")
    taken = inspect.signature(picture).parameters
    unused = [name for name in options if name not in taken and given(name)]
    if unused:
        raise InputError(f"{unused[0]}=: the picture of a {kind} has none; leave it out")
    options = {name: value for name, value in options.items() if name in taken}
    if cluster:
        if "cluster" not in taken:
            raise InputError(f"cluster=True: the picture of a {kind} has no series in rows and columns; leave it out")
        options["cluster"] = True
    picture(str(output), **options, title=title, dpi=dpi)
    return kind


def write(result: Any, output: Path, *, edges: bool = False, top: int = 100) -> tuple[str, int | None]:
    """Write the table, links, graph or arrays of a result, as the suffix asks; says what, and rows of a table.

    Raises
    ------
    OutputError
        The suffix is none of those that a result of this kind is written as.
    InputError
        It has no table.
    """
    import numpy as np

    from ..files import output_path, writing
    from ..io.graphs import GRAPHS
    from .files import write_table

    if edges and not hasattr(result, "edges"):
        raise InputError(f"--edges: a {type(result).__name__} has no pairs; leave it out for its table")
    if edges and "top" not in inspect.signature(result.edges).parameters:
        if given("top"):
            raise InputError(f"--top: all links of a {type(result).__name__} are written; leave it out")
        top = 0
    pixels = getattr(result, "_pixels", None)
    more = () if pixels is None else (".npy",)
    graphs = GRAPHS if hasattr(result, "write_graph") else ()
    place = output_path(output, (*_TABLES, *_ARRAYS, *graphs, *more), f"a {type(result).__name__}")
    if place.suffix.lower() in graphs:
        result.write_graph(place)
        return "graph", None
    if place.suffix.lower() in _ARRAYS:
        result.write_netcdf(place)
        return "arrays", None
    if place.suffix.lower() == ".npy":
        with writing(place, "the pixels") as draft:
            np.save(draft, np.asarray(pixels))
        return "pixels", None
    if edges:
        found = result.edges(top) if top else result.edges()
        rows = [edge.named() for edge in found] if top else found.to_dict("records")
        write_table(place, list(rows[0]) if rows else ["source", "target"], [list(row.values()) for row in rows])
        return "links", len(rows)
    if pixels is not None:
        write_table(place, [str(at) for at in range(pixels.shape[1])], pixels.tolist())
        return "pixels", len(pixels)
    if not hasattr(result, "to_frame"):
        raise InputError(f"a {type(result).__name__} has no table")
    return "table", _write_table(result, place)


def _write_table(result: Any, place: Path) -> int:
    from ..files import writing

    frame = result.to_frame()
    suffix, whole = place.suffix.lower(), frame.index.name is not None or not _numbered(frame.index)
    if suffix == ".parquet":
        with writing(place, "the table") as draft:
            frame.to_parquet(draft)
        return len(frame)
    from .files import write_table

    frame = frame.reset_index() if whole else frame
    write_table(place, [str(name) for name in frame.columns], frame.astype(object).to_numpy().tolist())
    return len(frame)


def _numbered(index: Any) -> bool:
    return type(index).__name__ == "RangeIndex"
