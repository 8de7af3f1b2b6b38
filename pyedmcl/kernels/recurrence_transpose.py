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
    specialisation=(),
    tunables=(
        Tunable("wg", (1, 32, 64, 128), {"cpu": 1, "gpu": 64}, "work-items of a group, a block each"),
        Tunable("staged", (False, True), {"cpu": False, "gpu": True}, "blocks pass through local memory"),
    ),
    oracle="pyedmcl.reference.rqa:recurrence_matrix",
)
