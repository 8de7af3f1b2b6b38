"""Simplex projection: a weighted mean of the neighbours' targets for each query row, and its variance."""

from ..codegen.spec import KernelSpec, Tunable, Values


def _launches(v: Values) -> str:
    n_dims, k_padded = len(v["counts"]), sum(-(-k // 4) * 4 for k in v["counts"])
    return f"""
        predict | round_up({n_dims} * rows_per_slot, wg) | wg
          targets: target_front + (first_series + rows_per_slot / n_rows - 1) * target_stride + n_rows
          rows, weights: {k_padded} * table_rows_per_slot
          predicted, variance: {n_dims} * rows_per_slot
    """


SPEC = KernelSpec(
    name="predict",
    producer="mako",
    text="predict.cl.mako",
    arguments="""
        predict(const real* targets; int target_stride, target_front, first_series; const int* rows;
            const real* weights; int n_rows, Tp; ulong rows_per_slot; int table_rows; ulong table_rows_per_slot;
            real* predicted, variance)
    """,
    launches=_launches,
    specialisation=("counts", "dtype", "table_tile"),
    # On GPUs groups of 32 took 0.48 (H100) and 0.54 (H200) of the time of 64, for 528 x 2,000 and E = 1 to 20; a small
    # problem has as many rows under way with either.
    tunables=(Tunable("wg", (1, 16, 32, 64, 128), {"cpu": 16, "gpu": 32}, "work-items of a group, a query row each"),),
    oracle="pyedmcl.reference.edm:simplex_predict",
    exact=False,
)
