"""Targets in half the bytes: the program makes their codes, and counts how often rows of a library are neighbours."""

from ..codegen.spec import Constraint, KernelSpec

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
    specialisation=("dtype",),
    constraints=(Constraint(lambda v: v["dtype"] == "float32", "only targets of float32 can have 16 bits"),),
    oracle="pyedmcl.reference.edm:compacted",
    exact=False,
)
