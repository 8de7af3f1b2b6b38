"""Coordinates into the layouts of S-map's kernels: the program holds stage_library and stage_points."""

from ..codegen.spec import KernelSpec

SPEC = KernelSpec(
    name="smap_stage",
    producer="mako",
    text="smap_stage.cl.mako",
    arguments="""
        stage_library(const moment* x; long start; int step, lag; const moment* target; int n; const moment* shift,
            basis; moment unit, target_shift, target_unit; real* near; moment* regressors)
        stage_points(const moment* x; long start; int step, lag, n, n_padded; const moment* shift, basis; moment unit;
            real* query; moment* query_z)
    """,
    specialisation=("coordinates", "regressors", "dtype"),
    same_bits=False,
    oracle="pyedmcl.engines.smap_basis:basis_of",
    exact=False,
)
