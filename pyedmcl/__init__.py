"""Vendor-neutral OpenCL kernels for nonlinear time-series analysis.

Importing this package touches no device; the functions load what they need at their first call.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .edm.ccm import ccm, ccm_lagged
    from .edm.ccm_matrix import ccm_matrix, open_ccm_matrix
    from .edm.embed import embed
    from .edm.embed_dimension import embed_dimension
    from .edm.knn import knn
    from .edm.multiview import multiview
    from .edm.predict_exclusion_radius import predict_exclusion_radius
    from .edm.predict_interval import predict_interval
    from .edm.predict_nonlinear import predict_nonlinear
    from .edm.significance import ccm_significance, false_discovery
    from .edm.simplex import simplex
    from .edm.smap import smap
    from .edm.surrogate import surrogate
    from .edm.xmap import open_xmap, xmap
    from .edm.xmap_significance import xmap_significance
    from .recurrence.image.recurrence_plot import distance_plot, recurrence_plot
    from .recurrence.joint import joint_rqa
    from .recurrence.network import recurrence_network
    from .recurrence.rqa import rqa
    from .recurrence.windowed import windowed_rqa

_WHERE = {
    "knn": ".edm.knn",
    "simplex": ".edm.simplex",
    "smap": ".edm.smap",
    "predict_nonlinear": ".edm.predict_nonlinear",
    "embed_dimension": ".edm.embed_dimension",
    "ccm": ".edm.ccm",
    "ccm_lagged": ".edm.ccm",
    "ccm_matrix": ".edm.ccm_matrix",
    "open_ccm_matrix": ".edm.ccm_matrix",
    "ccm_significance": ".edm.significance",
    "false_discovery": ".edm.significance",
    "surrogate": ".edm.surrogate",
    "xmap_significance": ".edm.xmap_significance",
    "embed": ".edm.embed",
    "multiview": ".edm.multiview",
    "predict_exclusion_radius": ".edm.predict_exclusion_radius",
    "predict_interval": ".edm.predict_interval",
    "xmap": ".edm.xmap",
    "open_xmap": ".edm.xmap",
    "rqa": ".recurrence.rqa",
    "joint_rqa": ".recurrence.joint",
    "recurrence_plot": ".recurrence.image.recurrence_plot",
    "distance_plot": ".recurrence.image.recurrence_plot",
    "recurrence_network": ".recurrence.network",
    "windowed_rqa": ".recurrence.windowed",
}

__all__ = [
    "__version__",
    "ccm",
    "ccm_lagged",
    "ccm_matrix",
    "ccm_significance",
    "distance_plot",
    "embed",
    "embed_dimension",
    "false_discovery",
    "joint_rqa",
    "knn",
    "multiview",
    "open_ccm_matrix",
    "open_xmap",
    "predict_exclusion_radius",
    "predict_interval",
    "predict_nonlinear",
    "recurrence_network",
    "recurrence_plot",
    "rqa",
    "simplex",
    "smap",
    "surrogate",
    "windowed_rqa",
    "xmap",
    "xmap_significance",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(_WHERE[name], __name__)
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
