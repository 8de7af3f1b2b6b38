"""Vendor-neutral OpenCL kernels for nonlinear time-series analysis.

Importing this package touches no device; the functions load what they need at their first call.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .edm.embed_dimension import embed_dimension
    from .edm.knn import knn
    from .edm.simplex import simplex
    from .edm.xmap import open_xmap, xmap

_WHERE = {
    "knn": ".edm.knn",
    "simplex": ".edm.simplex",
    "embed_dimension": ".edm.embed_dimension",
    "xmap": ".edm.xmap",
    "open_xmap": ".edm.xmap",
}

__all__ = ["__version__", "embed_dimension", "knn", "open_xmap", "simplex", "xmap"]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_WHERE[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
