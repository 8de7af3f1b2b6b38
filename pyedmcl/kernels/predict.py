"""Simplex projection: a weighted mean of the neighbours' targets for each query row, and its variance."""

from ..codegen.spec import KernelSpec, Tunable

SPEC = KernelSpec(
    name="predict",
    producer="mako",
    text="predict.cl.mako",
    arguments="""
        predict(const real* targets; int target_stride, target_front, first_series; const int* rows;
            const real* weights; int n_rows, Tp; ulong rows_per_slot; int table_rows; ulong table_rows_per_slot;
            real* predicted, variance)
    """,
    specialisation=("counts", "dtype", "table_tile"),
    tunables=(Tunable("wg", (1, 16, 32, 64, 128), {"cpu": 16, "gpu": 64}, "work-items of a group, a query row each"),),
    oracle="pyedmcl.reference.edm:simplex_predict",
    exact=False,
)
