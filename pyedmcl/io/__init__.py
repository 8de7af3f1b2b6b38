"""Files in and out: read series from tables and array files, write maps and their strongest edges."""

from __future__ import annotations

from .edges import Edge, strongest_edges, write_edges
from .export import write_matrix
from .read import read_series

__all__ = ["Edge", "read_series", "strongest_edges", "write_edges", "write_matrix"]
