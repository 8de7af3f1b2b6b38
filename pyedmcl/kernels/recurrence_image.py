"""Recurrent cells, or the sum of distances, per pixel of a recurrence plot: no matrix, whatever the length."""

from ..codegen.spec import Constraint, KernelSpec, Tunable

MOST_COLUMNS = 8192  # of a group: each has a place in local memory

SPEC = KernelSpec(
    name="recurrence_image",
    producer="mako",
    text="recurrence_image.cl.mako",
    specialisation=("m", "tau", "metric", "dtype", "mode", "embedded", "exact", "corridor", "per_column",
                    "listed", "wide"),
    tunables=(
        Tunable("wg", (1, 2, 32, 64, 128, 256), {"cpu": 1, "gpu": 128}, "work-items of a group, side by side"),
        Tunable("lanes", (1, 4, 8, 16), {"cpu": 16, "gpu": 1}, "columns of a SIMD vector"),
        Tunable("vectors", (1, 2, 4, 8, 16), {"cpu": 4, "gpu": 4}, "vectors of a work-item: they share a row's value"),
        Tunable("tile", (32, 64, 128, 256, 512), {"cpu": 128, "gpu": 128}, "rows between two looks at the open cells"),
        Tunable("staged", (0, 1), {"cpu": 0, "gpu": 1}, "whether a group stages its rows in local memory"),
        Tunable("piece", (256, 512, 1024, 2048), {"cpu": 1024, "gpu": 1024}, "rows of a group, about"),
    ),
    constraints=(
        Constraint(
            lambda v: v["wg"] * v["lanes"] * v["vectors"] <= MOST_COLUMNS,
            f"a group has at most {MOST_COLUMNS} columns (wg * lanes * vectors)",
        ),
        Constraint(lambda v: v["mode"] in ("count", "mean"), "mode is 'count' or 'mean'"),
        Constraint(
            lambda v: not v["exact"] or (v["dtype"] == "float32" and v["mode"] == "count"),
            "only counts swept in float32 are decided in float64 afterwards",
        ),
        Constraint(lambda v: v["exact"] or not v["listed"], "only open cells are listed"),
        Constraint(lambda v: v["mode"] == "count" or v["wide"], "sums need the wide image"),
        Constraint(lambda v: not (v["corridor"] and v["per_column"]), "a corridor is one for all columns"),
    ),
    oracle="pyedmcl.reference.image:recurrence_counts",
)
