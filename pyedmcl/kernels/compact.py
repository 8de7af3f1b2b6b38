"""Targets in half the bytes: the program makes their codes, and counts how often rows of a library are neighbours."""

from collections.abc import Mapping
from typing import Any

from ..codegen.spec import Constraint, KernelSpec

#: What 16 bits may change rho by.
MOST_ERROR = 2e-5
#: The estimate d of an error is this times range / sqrt(S); what was measured was below 2 d (docs/design/lookup.md).
ERROR = 5.0e-5
#: What the program is made for.
VALUES: Mapping[str, Any] = {
    "dtype": "float32", "column_parts": 64, "library_parts": 64, "most_ratio": (MOST_ERROR / ERROR) ** 2,
}  # fmt: skip

SPEC = KernelSpec(
    name="compact",
    producer="mako",
    text="compact.cl.mako",
    arguments="""
        compact_parts(const real* targets; int target_stride, n_steps, first, end; real* parts)
        compact_scales(const real* parts; int target_stride, n_scored; real* scales)
        compact(const real* targets; int target_stride; const real* scales; ushort* codes)
        compact_clear(int* used; int n_rows)
        compact_used(const int* rows; const real* weights; ulong table_begin; int table_rows, k, stride, tile, t_begin,
            t_end, n_rows; int* used; ulong* parts)
        compact_repeats(const ulong* parts; int n_libraries, n_predicted; real* repeats)
        compact_mark(const real* scales; int target_stride, column_begin, column_end; const int* target_of;
            const real* repeats; int first_library, rho_stride; real* rho)
    """,
    launches="""
        compact_parts | target_stride; column_parts | any
          targets: n_steps * target_stride
          parts: 4 * column_parts * target_stride
        compact_scales | target_stride | any
          parts: 4 * column_parts * target_stride
          scales: 3 * target_stride
        compact | target_stride; rows_here | any
          targets, codes: rows_here * target_stride
          scales: 3 * target_stride
        compact_clear | n_rows; libraries | any
          used: libraries * n_rows
        compact_used | library_parts; libraries | any
          rows, weights: table_begin + libraries * table_rows * stride
          used: libraries * n_rows
          parts: 2 * library_parts * libraries
        compact_repeats | n_libraries | any
          parts: 2 * library_parts * n_libraries
          repeats: n_libraries
        compact_mark | column_end - column_begin; libraries | any
          scales: 3 * target_stride
          target_of: column_end
          repeats: libraries
          rho: (first_library + libraries) * rho_stride
    """,
    specialisation=("dtype", "column_parts", "library_parts", "most_ratio"),
    constraints=(Constraint(lambda v: v["dtype"] == "float32", "only targets of float32 can have 16 bits"),),
    oracle="pyedmcl.reference.edm:compacted",
    exact=False,
)
