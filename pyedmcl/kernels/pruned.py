"""The k nearest neighbours of a delay embedding, exact, without looking at every pair."""

from ..codegen.spec import Constraint, KernelSpec, Tunable

SPEC = KernelSpec(
    name="pruned",
    producer="mako",
    text="pruned.cl.mako",
    arguments="""
        pruned(const real* library, query; ulong library_first, query_first; const int* library_row; int n_library;
            const real* boxes; const int* first_row, query_row; const real* query_at; int n_padded, exclusion_radius,
            begin, step, most_leaves; int* out_row; real* out_value; int* visited)
    """,
    launches="""
        pruned | groups * wg | wg
          library: library_first + n_steps_held
          query: query_first + n_query_steps
          library_row: n_library_padded
          boxes: n_nodes * 32 * axes
          first_row: n_nodes * 16
          query_row: n_padded
          query_at: n_padded * (axes + 1)
          out_row, out_value: n_query_steps * k
          visited: begin + (groups - 1) * step + 1
    """,
    specialisation=("E", "tau", "k", "dtype", "axes", "excluding"),
    tunables=(
        Tunable("lanes", (1, 4, 8, 16), {"cpu": 16, "gpu": 1}, "queries of a work-item; a SIMD register on CPUs"),
        Tunable("wg", (1, 32, 64, 128), {"cpu": 1, "gpu": 32}, "work-items of a group; they walk together"),
        Tunable("leaf", (8, 16, 32, 64), {"cpu": 16, "gpu": 16}, "states of a leaf; smaller ones prune more"),
        Tunable("unroll", (2, 4, 8), {"cpu": 4, "gpu": 4}, "library rows per step: independent chains"),
        Tunable("list_registers", (4, 8, 12, 24), {"cpu": 24, "gpu": 24}, "longest list unrolled in registers"),
    ),
    constraints=(
        Constraint(lambda v: v["wg"] == 1 or v["lanes"] == 1, "a group shares its walk among scalar work-items"),
        Constraint(lambda v: v["leaf"] % v["unroll"] == 0, "steps must fill a leaf"),
    ),
    oracle="pyedmcl.reference.edm:knn_float32_exact",
)
