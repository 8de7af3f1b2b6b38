"""One frozen SPEC per kernel; :func:`spec` finds it by name."""

from __future__ import annotations

import functools
import importlib

from ..codegen.spec import KernelSpec

NAMES = (
    "stage", "knn", "compact", "lookup", "predict", "skill", "smap_stage", "smap_scale", "smap", "smap_shared",
    "smap_solve", "smap_white", "smap_gram", "smap_map", "smap_slopes",
    "recurrence_bits", "recurrence_transpose", "recurrence_lines", "recurrence_image", "recurrence_ranks",
    "recurrence_network", "recurrence_windows", "ccm_draw", "ccm", "ccm_direct",
    "pruned_order", "pruned", "shared_sums", "candidates",
)


@functools.cache
def spec(name: str) -> KernelSpec:
    """The spec called ``name``."""
    kernel: KernelSpec = importlib.import_module(f"{__name__}.{name}").SPEC
    return kernel
