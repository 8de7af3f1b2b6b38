"""Lines of a tile of recurrence bits, joined with those of earlier tiles."""

from ..codegen.spec import Constraint, KernelSpec, Tunable

SPEC = KernelSpec(
    name="recurrence_lines",
    producer="mako",
    text="recurrence_lines.cl.mako",
    arguments="""
        recurrence_lines(const uint* bits, rows, columns; int n_words, n_diagonals, i0, k0, n_rows, n_columns,
            k_first, k_end, theiler, groups_diagonals, groups_rows; int* diagonal_segments, row_segments,
            column_segments;
            uint* histograms; int longest; ulong bits_begin)
        recurrence_fold(uint* counts; ulong* sums; int n)
        recurrence_clear(int* segments; ulong n)
        recurrence_zero(uint* numbers; ulong n)
    """,
    launches="""
        recurrence_lines | (groups_diagonals + groups_rows + ceil_div(n_diagonals + 32 * n_words, wg * lanes)) * wg | wg
          bits, rows: bits_begin + n_words * n_diagonals
          columns: n_words * (n_diagonals + 32 * n_words)
          diagonal_segments: 5 * (k_end - k_first)
          row_segments: select(groups_rows > 0, 5 * n_rows, 1)
          column_segments: 5 * n_columns
          histograms: 4 * (longest + 1)
        recurrence_fold | n | any
          counts, sums: n
        recurrence_clear | n | any
          segments: 5 * n
        recurrence_zero | n | any
          numbers: n
    """,
    specialisation=(),
    tunables=(
        Tunable("wg", (1, 32, 64, 128, 256), {"cpu": 1, "gpu": 256}, "work-items of a group; they share histograms"),
        Tunable("lanes", (1, 4, 8, 16), {"cpu": 16, "gpu": 1}, "lines of a work-item, side by side"),
        Tunable("batch", (1, 2, 4, 8, 16), {"cpu": 1, "gpu": 8}, "words of a line that are loaded together"),
        Tunable(
            "bitwise",
            (0, 1, 2, 3, 4),
            {"cpu": 0, "gpu": 2},
            "runs of up to this many cells are counted by bit operations on a whole word",
        ),
        Tunable("bins", (64, 256, 512, 1024, 2048), {"cpu": 1024, "gpu": 1024}, "line lengths counted in local memory"),
    ),
    constraints=(
        Constraint(lambda v: v["lanes"] == 1 or v["bitwise"] == 0, "lanes of a vector list their edges one by one"),
        Constraint(lambda v: v["lanes"] == 1 or v["batch"] == 1, "lanes of a vector load their words together"),
    ),
    oracle="pyedmcl.reference.rqa:line_counts",
)
