"""Prediction skill of many pairs of series: partial sums for rho, MAE and RMSE, added up on the host in float64."""

from ..codegen.spec import KernelSpec, Tunable

# Rows of a chunk, added up in the working precision. One number for all devices, so that sums have the same bits.
CHUNK = 256

SPEC = KernelSpec(
    name="skill",
    producer="loopy",
    text="skill",
    arguments="""
        skill(const real* predicted, observed; const int* observed_of, t_begin, t_end; real* sums; long pair_begin,
            n_pairs, n_chunks, n_rows, observed_stride, observed_offset)
    """,
    launches="""
        skill | n_pairs * wg; ceil_div(n_chunks, wg) | wg; 1
          predicted: (pair_begin + n_pairs) * n_rows
          observed: n_series_held * observed_stride
          observed_of, t_begin, t_end: pair_begin + n_pairs
          sums: n_pairs * n_chunks * 8
    """,
    example="generated/skill-float32-chunk256-wg64.cl",
    specialisation=("dtype", "chunk"),
    tunables=(
        Tunable("wg", (1, 16, 32, 64, 128), {"cpu": 1, "gpu": 64}, "work-items of a group, a chunk each"),
    ),
    oracle="pyedmcl.reference.edm:pearson",
    exact=False,
)
