"""kEDM's names on any OpenCL device: ``import pyedmcl.compat.kedm as kedm``.

Signatures, defaults, returns and semantics are those of kEDM 0.10.1; what differs, and why, is listed in
``docs/kedm.md``.
"""

from __future__ import annotations

from .ccm import ccm, ccm_naive
from .configuration import get_kokkos_config
from .simplex import edim, eval_simplex, simplex
from .smap import eval_smap, smap
from .xmap import xmap

__version__ = "0.10.1"
__version_info__ = (0, 10, 1)

__all__ = [
    "ccm",
    "ccm_naive",
    "edim",
    "eval_simplex",
    "eval_smap",
    "get_kokkos_config",
    "simplex",
    "smap",
    "xmap",
]
