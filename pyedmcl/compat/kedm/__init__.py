"""kEDM's names on any OpenCL device: ``import pyedmcl.compat.kedm as kedm``.

Signatures, defaults, returns and semantics are those of kEDM 0.10.1; what differs, and why, is listed in
``docs/kedm.md``.
"""

from __future__ import annotations

from .functions import ccm, ccm_naive, edim, eval_simplex, eval_smap, get_kokkos_config, simplex, smap, xmap

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
