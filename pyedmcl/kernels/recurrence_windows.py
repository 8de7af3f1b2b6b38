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
    launches="""
        reach_of_point = (m - 1) * step
        column_bits | round_up(n, wg); rows_here | wg; 1
          x: (n - 1) * stride + reach_of_point + 1
          columns: n * words
        diagonal_bits | round_up(reach, wg); rows_here | wg; 1
          x: (n - 1) * stride + reach_of_point + 1
          diagonals: reach * words
        recurrence_windows | groups * counting_wg | counting_wg
          columns: ((first_window + groups - 1) * step + size) * words
          diagonals: size * words
          histograms: (first_window + groups) * 4 * (size + 1)
          per_column, per_diagonal: (first_window + groups) * size
          sums: (first_window + groups) * 4 * counting_wg
    """,
    specialisation=("m", "step", "stride", "metric", "dtype", "strict"),
    tunables=(
        Tunable("wg", (8, 16, 32, 64, 128, 256), {"cpu": 16, "gpu": 64}, "work-items of a group that evaluates cells"),
        Tunable("counting_wg", (1, 32, 64, 128, 256), {"cpu": 1, "gpu": 128}, "work-items that count a window's lines"),
    ),
    oracle="pyedmcl.reference.rqa:line_counts",
)
