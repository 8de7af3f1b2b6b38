"""The ends of all lines of a recurrence matrix, once it is known whole.

A thousandth of the work: nothing of it is tuned, so it is none of :data:`pyedmcl.kernels.NAMES`.
"""

from ..codegen.spec import KernelSpec

SPEC = KernelSpec(
    name="recurrence_finish",
    producer="mako",
    text="recurrence_finish.cl.mako",
    arguments="""
        finish_diagonals(const int* segments; ulong n; long k_first; int theiler; uint* lengths)
        finish_join(int* a; const int* b; ulong n, first, held; long k_first; int theiler, verticals; uint* counts;
            ulong n_lengths)
        finish_columns(int* columns; const int* rows; int n, n_rows, symmetric; uint* counts; ulong n_lengths;
            ulong* totals)
        finish_begin(uint* counts; int* longest; ulong n)
        finish_end(const uint* counts; ulong* sums; int* longest; ulong n)
    """,
    launches="""
        finish_diagonals | groups * wg | wg
          segments: 5 * n
          lengths: 4 * n_lengths_held
        finish_join | groups * wg | wg
          a: 5 * n
          b: 5 * held
          counts: 4 * n_lengths
        finish_columns | groups * wg | wg
          columns: 5 * n
          rows: select(symmetric, 5 * n, 1)
          counts: 4 * n_lengths
          totals: 5 * groups
        finish_begin | n | any
          counts: 4 * n
          longest: 4
        finish_end | groups * wg; 4 | wg; 1
          counts, sums: 4 * n
          longest: 4
    """,
    specialisation=("wg",),
    oracle="pyedmcl.reference.rqa:line_counts",
)
