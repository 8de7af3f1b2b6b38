"""Recurrence quantification of overlapping windows, from bits that are evaluated once for all of them."""

from ..codegen.spec import KernelSpec, Tunable

SPEC = KernelSpec(
    name="recurrence_windows",
    producer="mako",
    text="recurrence_windows.cl.mako",
    arguments="""
        column_bits(const real* x; uint* columns; int n, words, reach, dropped; real inner, outer; int word_begin)
        diagonal_bits(const real* x; uint* diagonals; int n, words, reach, dropped; real inner, outer;
            int word_begin)
        recurrence_windows(const uint* columns, diagonals; uint* histograms, per_column, per_diagonal; ulong* sums;
            int words, size, step, theiler, first_window)
    """,
    specialisation=("m", "step", "stride", "metric", "dtype", "strict"),
    tunables=(
        Tunable("wg", (8, 16, 32, 64, 128, 256), {"cpu": 16, "gpu": 64}, "work-items of a group that evaluates cells"),
        Tunable("counting_wg", (1, 32, 64, 128, 256), {"cpu": 1, "gpu": 128}, "work-items that count a window's lines"),
    ),
    oracle="pyedmcl.reference.rqa:line_counts",
)
