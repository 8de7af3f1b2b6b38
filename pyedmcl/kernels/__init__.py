"""Kernels: their specs, which :func:`spec` finds by name, their texts, and how they are built."""

from __future__ import annotations

import functools
import importlib

from .kernel_spec import KernelSpec

NAMES = (
    "stage", "knn", "compact", "lookup", "predict", "skill", "smap_stage", "smap_scale", "smap", "smap_shared",
    "smap_solve", "smap_white", "smap_gram", "smap_map", "smap_slopes",
    "recurrence_bits", "recurrence_transpose", "recurrence_lines", "recurrence_image", "recurrence_ranks",
    "recurrence_network", "recurrence_windows", "ccm_draw", "ccm", "ccm_direct",
    "pruned_order", "pruned", "shared_sums", "candidates",
)

#: The module of ``kernels/specs/`` that holds the SPEC of each kernel, under the kernel's name in capitals.
FAMILIES = {
    "ccm": "maps",
    "ccm_direct": "maps",
    "ccm_draw": "maps",
    "compact": "maps",
    "deliver": "maps",
    "highest": "maps",
    "lookup": "maps",
    "predict": "maps",
    "skill": "maps",
    "stage": "maps",
    "waves": "maps",
    "recurrence_batch": "recurrence",
    "recurrence_bits": "recurrence",
    "recurrence_finish": "recurrence",
    "recurrence_image": "recurrence",
    "recurrence_lines": "recurrence",
    "recurrence_network": "recurrence",
    "recurrence_ranks": "recurrence",
    "recurrence_transpose": "recurrence",
    "recurrence_windows": "recurrence",
    "candidates": "search",
    "knn": "search",
    "pruned": "search",
    "pruned_order": "search",
    "shared_sums": "search",
    "window_knn": "search",
    "smap": "smap",
    "smap_gram": "smap",
    "smap_map": "smap",
    "smap_scale": "smap",
    "smap_shared": "smap",
    "smap_slopes": "smap",
    "smap_solve": "smap",
    "smap_stage": "smap",
    "smap_white": "smap",
}


@functools.cache
def spec(name: str) -> KernelSpec:
    """The spec called ``name``."""
    kernel: KernelSpec = getattr(importlib.import_module(f"{__name__}.specs.{FAMILIES[name]}"), name.upper())
    return kernel
