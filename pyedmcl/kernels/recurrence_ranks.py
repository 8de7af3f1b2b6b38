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
    launches="""
        reach_of_point = (m - 1) * step
        recurrence_ranks | round_up(n_columns, wg) | wg
          x: (row_end - 1) * stride + reach_of_point + 1
          y: (column_begin + n_columns - 1) * stride + reach_of_point + 1
          limits: select(per_column, n_columns, 1) * candidates
          counts: n_columns * candidates
        recurrence_gather | round_up(n_columns, wg) | wg
          x: (row_end - 1) * stride + reach_of_point + 1
          y: (n_columns - 1) * stride + reach_of_point + 1
          limits: 2
          found: capacity
          filled: 1
        recurrence_next | round_up(n_columns, wg) | wg
          x: (row_end - 1) * stride + reach_of_point + 1
          y: (n_columns - 1) * stride + reach_of_point + 1
          lows: n_columns
          found: n_columns * next
    """,
    specialisation=("m", "step", "stride", "metric", "dtype", "per_column"),
    tunables=(
        Tunable("wg", (16, 32, 64, 128, 256), {"cpu": 16, "gpu": 64}, "work-items of a group, a column each"),
        Tunable("candidates", (7, 15, 31), {"cpu": 15, "gpu": 15}, "limits counted at once; more mean fewer sweeps"),
        Tunable("next", (1, 4, 8, 16), {"cpu": 8, "gpu": 8}, "distances of a column that the last sweep sorts"),
    ),
    oracle="pyedmcl.reference.rqa:compared",
)
