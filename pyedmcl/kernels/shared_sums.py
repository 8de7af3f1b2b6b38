"""The k nearest neighbours by a sweep over all pairs that shares sums along diagonals: many dimensions, many states."""

from ..codegen.spec import Constraint, KernelSpec, Tunable

SPEC = KernelSpec(
    name="shared_sums",
    producer="mako",
    text="shared_sums.cl.mako",
    arguments="""
        shared_sums(const real* library, query; ulong library_first, query_first; const uchar* library_mask, query_mask;
            int n_query, first, last, exclusion_radius, begin; int* out_row; real* out_value)
    """,
    launches="""
        shared_sums | groups * wg | wg
          library: library_first + n_steps_held
          query: query_first + n_query
          library_mask: n_steps_held + side * tau
          query_mask: n_query + side * tau
          out_row, out_value: n_query * k
    """,
    specialisation=("E", "tau", "k", "dtype", "side"),
    tunables=(
        Tunable("lanes", (1, 4, 8, 16), {"cpu": 16, "gpu": 1}, "blocks of queries of a work-item; a SIMD register"),
        Tunable("wg", (1, 32, 64, 128, 256), {"cpu": 1, "gpu": 256}, "work-items of a group"),
    ),
    constraints=(Constraint(lambda v: 1 <= v["side"] <= v["E"], "pairs of a diagonal must have squares in common"),),
    oracle="pyedmcl.reference.edm:knn_float32_exact",
)
