"""Random sub-libraries: words of membership, sixteen samples at a time, and lists of members."""

from ..codegen.spec import Constraint, KernelSpec, Tunable

SPEC = KernelSpec(
    name="ccm_draw",
    producer="mako",
    text="ccm_draw.cl.mako",
    arguments="""
        ccm_draw(const int* columns, rows_of; int n_columns, n_rows, stride, most_choices; ushort* members)
        ccm_list(const int* columns, rows_of; int n_columns, stride; const ushort* members; int* lists)
    """,
    launches="""
        ccm_draw | round_up(n_columns * 16 / lanes, wg) | wg
          columns: 13 * n_columns
          rows_of: n_choices
          members: n_columns * stride
        ccm_list | n_columns * 16 | any
          columns: 13 * n_columns
          rows_of: n_choices
          members: n_columns * stride
          lists: lists
    """,
    specialisation=(),
    tunables=(
        Tunable("lanes", (1, 16), {"cpu": 16, "gpu": 1}, "samples of a work-item"),
        Tunable("wg", (1, 16, 32, 64, 128), {"cpu": 1, "gpu": 64}, "work-items of a group"),
    ),
    constraints=(
        Constraint(
            lambda v: v["lanes"] > 1 or v["wg"] % 16 == 0, "the samples of a word meet in the memory of one group"
        ),
    ),
    oracle="pyedmcl.reference.ccm:sub_library",
)
