"""Vendor-neutral OpenCL kernels for nonlinear time-series analysis.

Importing this package touches no device; the functions load what they need at their first call.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .registry import FUNCTIONS

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .edm.causes.causal_network import causal_network as causal_network
    from .edm.causes.partial_ccm import partial_ccm as partial_ccm
    from .edm.ccm.ccm import ccm as ccm
    from .edm.ccm.ccm import ccm_lagged as ccm_lagged
    from .edm.ccm.ccm_matrix import ccm_matrix as ccm_matrix
    from .edm.ccm.ccm_matrix import open_ccm_matrix as open_ccm_matrix
    from .edm.check import check as check
    from .edm.embedding.embed import embed as embed
    from .edm.embedding.embed_dimension import embed_dimension as embed_dimension
    from .edm.embedding.embedding_scan import embedding_scan as embedding_scan
    from .edm.embedding.false_neighbors import false_neighbors as false_neighbors
    from .edm.embedding.knn import knn as knn
    from .edm.forecasts.multiview import multiview as multiview
    from .edm.forecasts.predict_exclusion_radius import predict_exclusion_radius as predict_exclusion_radius
    from .edm.forecasts.predict_interval import predict_interval as predict_interval
    from .edm.forecasts.predict_nonlinear import predict_nonlinear as predict_nonlinear
    from .edm.forecasts.simplex import simplex as simplex
    from .edm.forecasts.smap import smap as smap
    from .edm.maps.open_xmap import open_xmap as open_xmap
    from .edm.maps.xmap import xmap as xmap
    from .edm.maps.xmap_grid import open_xmap_grid as open_xmap_grid
    from .edm.maps.xmap_grid import xmap_grid as xmap_grid
    from .edm.open_result import open_result as open_result
    from .edm.shared.false_discovery import false_discovery as false_discovery
    from .edm.significance.significance import ccm_significance as ccm_significance
    from .edm.significance.xmap_significance import xmap_significance as xmap_significance
    from .edm.surrogates.surrogate import surrogate as surrogate
    from .export.kernel_source import kernel_source as kernel_source
    from .recurrence.batch import rqa_batch as rqa_batch
    from .recurrence.image.recurrence_plot import distance_plot as distance_plot
    from .recurrence.image.recurrence_plot import recurrence_plot as recurrence_plot
    from .recurrence.joint import joint_rqa as joint_rqa
    from .recurrence.mutual_information import mutual_information as mutual_information
    from .recurrence.network import recurrence_network as recurrence_network
    from .recurrence.profile import lag_profile as lag_profile
    from .recurrence.rqa import rqa as rqa
    from .recurrence.windowed import windowed_rqa as windowed_rqa
    from .reporting.report import report as report

__all__ = ["__version__", *sorted(FUNCTIONS)]


def __getattr__(name: str) -> Any:
    if name not in FUNCTIONS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f".{FUNCTIONS[name]}", __name__)
    value = getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
