"""Cross-map lookup: predictions of all targets from one library's table, reduced to Pearson's rho on the fly."""

from ..codegen.spec import Constraint, KernelSpec, Tunable

# Columns of targets that a group may own.
MOST_COLUMNS = 128

SPEC = KernelSpec(
    name="lookup",
    producer="mako",
    text="lookup.cl.mako",
    arguments="""
        lookup(const real* targets; const int* rows; const real* weights; const int* target_of; real* rho;
            int target_stride, column_begin, column_end, n_rows, t_begin, t_end, Tp, n_libraries, first_library,
            rho_stride; ulong table_begin; int table_rows, n_slices)
    """,
    specialisation=("k", "dtype", "gaps", "stage_rows", "table_tile"),
    tunables=(
        Tunable("lanes", (1, 2, 4, 8, 16), {"cpu": 16, "gpu": 2}, "adjacent targets in one vector"),
        Tunable("vectors", (1, 2, 4), {"cpu": 4, "gpu": 1}, "vectors of targets that share rows and weights"),
        Tunable(
            "target_lanes", (1, 2, 3, 4, 8, 16, 32), {"cpu": 1, "gpu": 16}, "work-items of a group along the targets"
        ),
        Tunable(
            "row_lanes", (1, 4, 8, 16, 32, 64, 128), {"cpu": 1, "gpu": 8}, "work-items of a group along the query rows"
        ),
        Tunable("library_lanes", (1, 2, 4, 8, 16, 32), {"cpu": 1, "gpu": 1}, "libraries that a group looks up at once"),
        Tunable("stage", (False, True), {"cpu": False, "gpu": False}, "keep a group's targets in local memory"),
        Tunable("unroll", (1, 2, 4), {"cpu": 1, "gpu": 4}, "query rows per step"),
        Tunable("quads", (False, True), {"cpu": False, "gpu": True}, "load rows and weights four at a time"),
    ),
    constraints=(
        Constraint(
            lambda v: v["target_lanes"] * v["row_lanes"] * v["library_lanes"] <= 1024,
            "a group has at most 1,024 work-items",
        ),
        Constraint(
            lambda v: v["target_lanes"] * v["lanes"] * v["vectors"] <= MOST_COLUMNS,
            "the last group reads past the last target, where the padding is that wide",
        ),
    ),
    oracle="pyedmcl.reference.edm:skill",
    exact=False,
)
