"""Dense blocks of distances between delay-embedded rows, for distance plots and to verify other kernels."""

from ..codegen.spec import KernelSpec, Tunable

SPEC = KernelSpec(
    name="distances",
    producer="loopy",
    text="distances",
    arguments="""
        distances(const real* query, library; real* block; long row_begin, n_rows, column_begin, n_columns)
    """,
    example="generated/distances-E3-tau1-euclidean-float32-wg64-rows4.cl",
    specialisation=("E", "tau", "metric", "dtype"),
    tunables=(
        Tunable("wg", (16, 32, 64, 128, 256), {"cpu": 64, "gpu": 64}, "work-items of a group, a library row each"),
        Tunable("rows", (1, 2, 4, 8), {"cpu": 4, "gpu": 4}, "query rows of a work-item: they share a library value"),
    ),
    oracle="pyedmcl.reference.edm:knn_float32_exact",
)
