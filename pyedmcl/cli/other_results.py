"""Results that are no map of ``pyedmcl xmap``: those that ``save`` wrote, and folders of ``pyedmcl ccm-matrix``."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..errors import InputError

_TABLES = (".csv", ".tsv", ".json", ".parquet")


def other_result(path: Path) -> Any:
    """The result at ``path``; None for what a map of ``pyedmcl xmap`` may be.

    Raises
    ------
    InputError, StoreError
        As for :func:`pyedmcl.open_result`.
    """
    from ..errors import StoreForeignError
    from ..io.saved import SUFFIX

    if os.path.isdir(path):
        from ..edm.ccm_matrix_store import sizes_there

        try:
            if (path / "zarr.json").exists() or not sizes_there(path):
                return None
        except StoreForeignError:
            return None
    elif path.suffix.lower() != SUFFIX:
        return None
    from ..edm.open_result import open_result

    return open_result(path)


def draw(result: Any, output: Path, *, network: bool, top: int, title: str | None, dpi: int) -> str:
    """Draw a result; says what it is.

    Raises
    ------
    InputError
        It has no picture of this kind.
    """
    kind = type(result).__name__
    name = "plot_network" if network else "plot"
    picture = getattr(result, name, None)
    if picture is None:
        raise InputError(f"a {kind} has no {'network' if network else 'picture'}")
    picture(str(output), **({"top": top} if network else {}), title=title, dpi=dpi)
    return kind


def write(result: Any, output: Path) -> int:
    """Write the table of a result; says how many rows it has.

    Raises
    ------
    OutputError
        The suffix is not that of a table.
    InputError
        It has no table.
    """
    from ..files import output_path, writing

    place = output_path(output, _TABLES, f"the table of a {type(result).__name__}")
    if not hasattr(result, "to_frame"):
        raise InputError(f"a {type(result).__name__} has no table")
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
