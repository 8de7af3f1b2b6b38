"""Cells of a recurrence matrix at or below a few limits, counted per column; distances between two limits."""

from ..codegen.spec import KernelSpec, Tunable

SPEC = KernelSpec(
    name="recurrence_ranks",
    producer="mako",
    text="recurrence_ranks.cl.mako",
    arguments="""
        recurrence_ranks(const real* x, y, limits; uint* counts; int row_begin, row_end, column_begin, n_columns,
            window, lower)
        recurrence_gather(const real* x, y, limits; real* found; int* filled; int capacity, row_begin, row_end,
            n_columns, window, lower)
        recurrence_next(const real* x, y, lows; real* found; int row_begin, row_end, column_begin, n_columns, window,
            lower)
    """,
    specialisation=("m", "step", "stride", "metric", "dtype", "per_column"),
    tunables=(
        Tunable("wg", (16, 32, 64, 128, 256), {"cpu": 16, "gpu": 64}, "work-items of a group, a column each"),
        Tunable("candidates", (7, 15, 31), {"cpu": 15, "gpu": 15}, "limits counted at once; more mean fewer sweeps"),
        Tunable("next", (1, 4, 8, 16), {"cpu": 8, "gpu": 8}, "distances of a column that the last sweep sorts"),
    ),
    oracle="pyedmcl.reference.rqa:compared",
)
