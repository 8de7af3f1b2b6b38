"""Raw data into the layouts of the other kernels, and rows out of tables: the program holds centre, stage_targets,
stage_series and hide_rows."""

from ..codegen.spec import KernelSpec

SPEC = KernelSpec(
    name="stage",
    producer="mako",
    text="stage.cl.mako",
    arguments="""
        centre(const real* raw; int n_series, n_steps; const int* scored_from; int n_scored; real* shift;
            int* exponent)
        stage_targets(const real* raw; int n_series, begin, n_all, n_steps; const int* column_of; int target_stride;
            const real* shift; const int* exponent; real* targets)
        stage_series(const real* raw; int n_series, first, front, end, stride, centred; const real* shift;
            const int* exponent; real* series)
        hide_rows(const int* rows; int n_rows; ulong table_begin; int table_rows, stride, tile; real* weights)
    """,
    specialisation=("dtype",),
    oracle="pyedmcl.data.condition:condition",
)
