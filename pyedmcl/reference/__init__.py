"""Slow, obvious NumPy oracles against which tuned kernels are verified. This package imports numpy only."""

from __future__ import annotations

from .edm import (
    compacted,
    embedded_rows,
    fma32,
    fma64,
    knn_float32_exact,
    knn_float64_exact,
    library_mask_of,
    pearson,
    simplex_predict,
    simplex_weights,
    skill,
)

__all__ = [
    "compacted",
    "embedded_rows",
    "fma32",
    "fma64",
    "knn_float32_exact",
    "knn_float64_exact",
    "library_mask_of",
    "pearson",
    "simplex_predict",
    "simplex_weights",
    "skill",
]
