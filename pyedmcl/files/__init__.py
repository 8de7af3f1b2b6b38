"""Files in and out: read series from tables and array files, write maps and their strongest links."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..results.edges import Edge as Edge
    from ..results.edges import strongest_edges as strongest_edges
    from ..results.edges import write_edges as write_edges
    from ..results.tables import write_matrix as write_matrix
    from .read import read_series as read_series

#: Public names and their modules. They are imported at use: results read files, too.
_PLACES = {
    "Edge": "results.edges",
    "read_series": "files.read",
    "strongest_edges": "results.edges",
    "write_edges": "results.edges",
    "write_matrix": "results.tables",
}

__all__ = ["Edge", "read_series", "strongest_edges", "write_edges", "write_matrix"]


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"..{_PLACES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
