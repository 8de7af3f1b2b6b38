"""Words of recurrence bits along diagonals transposed into words along rows and along columns."""

from ..codegen.spec import KernelSpec, Tunable

SPEC = KernelSpec(
    name="recurrence_transpose",
    producer="mako",
    text="recurrence_transpose.cl.mako",
    arguments="""
        transpose_to_rows(const uint* bits; uint* rows; int n_words, n_diagonals, columns_left; ulong begin)
        transpose_to_columns(const uint* rows; uint* columns; int n_words, n_diagonals, columns_left, own_diagonal;
            ulong begin)
    """,
    launches="""
        staged_group = select(staged, wg, 0)
        transpose_to_rows | n_diagonals / 32; n_words | any
          bits, rows: begin + n_words * n_diagonals
        transpose_to_columns | select(staged, round_up(n_diagonals / 32 + 1, wg), n_diagonals / 32 + n_words);
          n_words | staged_group; 1
          rows: begin + n_words * n_diagonals
          columns: n_words * (n_diagonals + 32 * n_words)
    """,
    specialisation=(),
    tunables=(
        Tunable("wg", (1, 32, 64, 128), {"cpu": 1, "gpu": 64}, "work-items of a group, a block each"),
        Tunable("staged", (False, True), {"cpu": False, "gpu": True}, "blocks pass through local memory"),
    ),
    oracle="pyedmcl.reference.rqa:recurrence_matrix",
)
