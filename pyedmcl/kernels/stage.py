"""Raw data into the layouts of the other kernels, and rows out of tables: the program holds centre, stage_targets,
stage_series, widen_series and hide_rows."""

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
        widen_series(const float* raw; int n_series, first, n_steps; real* series)
        hide_rows(const int* rows; int n_rows; ulong table_begin; int table_rows, stride, tile; real* weights)
    """,
    launches="""
        centre | n_series | any
          raw: n_series * n_steps
          scored_from, shift, exponent: n_series
        stage_targets | width; rows_here | any
          raw: n_series * n_steps
          column_of: begin + n_series
          shift, exponent: n_series
          targets: rows_here * target_stride
        stage_series | stride; groups | any
          raw: n_series * end
          shift, exponent: n_series
          series: groups * stride
        widen_series | n_steps; groups | any
          raw: n_series * n_steps
          series: groups * n_steps
        hide_rows | n_rows; libraries | any
          rows: n_rows
          weights: table_begin + libraries * table_rows * stride
    """,
    specialisation=("dtype",),
    oracle="pyedmcl.data.condition:condition",
)
