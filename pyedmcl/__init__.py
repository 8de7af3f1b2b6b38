"""Vendor-neutral OpenCL kernels for nonlinear time-series analysis.

Importing this package touches no device; the functions load what they need at their first call.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .functions import FUNCTIONS

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .convergence.ccm import ccm as ccm
    from .convergence.ccm import ccm_lagged as ccm_lagged
    from .convergence.matrix import ccm_matrix as ccm_matrix
    from .convergence.matrix import open_ccm_matrix as open_ccm_matrix
    from .crossmap.grid import open_xmap_grid as open_xmap_grid
    from .crossmap.grid import xmap_grid as xmap_grid
    from .crossmap.xmap import open_xmap as open_xmap
    from .crossmap.xmap import xmap as xmap
    from .embedding.dimension import embed_dimension as embed_dimension
    from .embedding.neighbors import embed as embed
    from .embedding.neighbors import false_neighbors as false_neighbors
    from .embedding.neighbors import knn as knn
    from .embedding.scan import embedding_scan as embedding_scan
    from .export.kernel_source import kernel_source as kernel_source
    from .forecast.multiview import multiview as multiview
    from .forecast.simplex import simplex as simplex
    from .forecast.skill import predict_exclusion_radius as predict_exclusion_radius
    from .forecast.skill import predict_interval as predict_interval
    from .forecast.skill import predict_nonlinear as predict_nonlinear
    from .forecast.smap import smap as smap
    from .network.causal_network import causal_network as causal_network
    from .network.partial import partial_ccm as partial_ccm
    from .opening import open_result as open_result
    from .recurrence.batch import rqa_batch as rqa_batch
    from .recurrence.images import distance_plot as distance_plot
    from .recurrence.images import recurrence_plot as recurrence_plot
    from .recurrence.mutual_information import mutual_information as mutual_information
    from .recurrence.network import recurrence_network as recurrence_network
    from .recurrence.profile import lag_profile as lag_profile
    from .recurrence.rqa import joint_rqa as joint_rqa
    from .recurrence.rqa import rqa as rqa
    from .recurrence.windowed import windowed_rqa as windowed_rqa
    from .recurrence_tests import rqa_bands as rqa_bands
    from .recurrence_tests import rqa_significance as rqa_significance
    from .reporting.report import report as report
    from .significance.significance import ccm_significance as ccm_significance
    from .significance.xmap_significance import xmap_significance as xmap_significance
    from .statistics import compare as compare
    from .statistics import false_discovery as false_discovery
    from .suggestion import suggest as suggest
    from .surrogates.surrogate import surrogate as surrogate
    from .table_check import check as check

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
