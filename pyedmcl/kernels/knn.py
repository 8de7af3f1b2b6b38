"""All k nearest neighbours: several embedding dimensions in one pass, exact, no L x L matrix."""

from ..codegen.spec import Constraint, KernelSpec, Tunable

SPEC = KernelSpec(
    name="knn",
    producer="mako",
    text="knn.cl.mako",
    arguments="""
        knn(const real* library, query, penalty_of; int library_stride, query_stride, front, n_rows, j_begin, j_end,
            groups_per_tile, groups_per_round, exclusion_radius, n_tiles, first_library, task_begin, task_end;
            int* out_row; real* out_value; int table_rows; ulong rows_per_slot; whole* scratch)
    """,
    specialisation=("dims", "counts", "tau", "dtype", "emit", "masked", "capacities", "merged"),
    tunables=(
        Tunable("lanes", (1, 4, 8, 16), {"cpu": 16, "gpu": 1}, "query rows of a work-item; a SIMD register on CPUs"),
        Tunable("wg", (1, 32, 64, 128, 256), {"cpu": 1, "gpu": 128}, "work-items of a group; they share a tile"),
        Tunable("unroll", (1, 2, 4, 8, 16), {"cpu": 4, "gpu": 8}, "library rows per step: independent chains"),
        Tunable(
            "tile",
            (0, 256, 512, 1024, 2048, 4096, 8192),
            {"cpu": 0, "gpu": 2048},
            "library rows staged in local memory; 0: none",
        ),
        Tunable("bound_share", (1, 2, 3, 4, 8), {"cpu": 1, "gpu": 1}, "the bound looks at one in so many rows"),
        Tunable(
            "hot",
            (32, 64, 128, 256, 512),
            {"cpu": 64, "gpu": 256},
            "rows that a scalar work-item notes before it sorts them",
        ),
        Tunable("dims_per_pass", (3, 5, 7, 10, 20), {"cpu": 20, "gpu": 20}, "dimensions E that share one sweep"),
        Tunable("groups_per_unit", (2, 3, 4, 6, 8, 12, 16), {"cpu": 4, "gpu": 6}, "work-groups per compute unit"),
        Tunable("list_registers", (4, 8, 12, 24), {"cpu": 8, "gpu": 24}, "longest sorted list kept in registers"),
    ),
    constraints=(
        Constraint(lambda v: v["tile"] == 0 or v["lanes"] == 1, "a staged tile is shared by scalar work-items"),
        Constraint(
            lambda v: v["tile"] == 0 or (v["unroll"] % 4 == 0 and v["tile"] % v["unroll"] == 0),
            "staged rows are read four at a time, so steps must be multiples of four and fill the tile",
        ),
        Constraint(
            lambda v: all(
                c >= k + v["unroll"] and c % 4 == 0 for c, k in zip(v["capacities"], v["counts"], strict=True)
            ),
            "a buffer must hold k candidates and one step more, and sorting reads it four at a time",
        ),
        Constraint(
            lambda v: v["lanes"] > 1 or not v.get("lists_in_registers") or max(v["counts"]) <= v["list_registers"],
            "this device gets sorted lists of scalar work-items in memory wrong: keep them in registers",
        ),
        Constraint(lambda v: v["hot"] > v["unroll"], "rows of a step must fit behind those noted before"),
        Constraint(lambda v: len(v["dims"]) == len(set(v["dims"])) == len(v["counts"]), "one count for each dimension"),
    ),
    oracle="pyedmcl.reference.edm:knn_float32_exact",
)
