"""Scales of S-map's weights: nearest and mean distance of each query row, and its k-th nearest library row."""

from ..codegen.spec import Constraint, KernelSpec, Tunable

SPEC = KernelSpec(
    name="smap_scale",
    producer="mako",
    text="smap_scale.cl.mako",
    arguments="""
        smap_scale(const real* query; const whole* query_rows; int query_stride; const real* library;
            const int* library_rows; int n_library, radius, k, row_steps, first_tile; real* out_nearest, out_rate;
            int* out_count; real* out_squared; whole* out_row)
    """,
    launches="""
        near = round_up(coordinates, 4)
        smap_scale | groups * wg | wg
          query: coordinates * query_stride
          query_rows, out_nearest, out_rate, out_count, out_squared, out_row: query_stride
          library: n_library * near
          library_rows: n_library
    """,
    specialisation=("coordinates", "limited", "dtype"),
    tunables=(
        Tunable("lanes", (1, 4, 8, 16), {"cpu": 16, "gpu": 1}, "query rows of a work-item; a SIMD register on CPUs"),
        Tunable("wg", (1, 64, 128, 256), {"cpu": 1, "gpu": 256}, "work-items of a group"),
        Tunable("slices", (1, 2, 4, 8, 16), {"cpu": 1, "gpu": 16}, "work-items that share a query row"),
    ),
    constraints=(Constraint(lambda v: v["wg"] % v["slices"] == 0, "each query row has the same number of work-items"),),
    same_bits=False,
    oracle="pyedmcl.reference.smap:scales",
    exact=False,
)
