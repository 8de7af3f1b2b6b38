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
    launches="""
        near = round_up(coordinates, 4)
        stage_library | n | any
          x: n_values
          target: n
          shift: coordinates
          basis: coordinates * (regressors - 1)
          near: n * near
          regressors: n * regressors
        stage_points | n_padded | any
          x: n_values
          shift: coordinates
          basis: coordinates * (regressors - 1)
          query: coordinates * n_padded
          query_z: (regressors - 1) * n_padded
    """,
    specialisation=("coordinates", "regressors", "dtype"),
    same_bits=False,
    oracle="pyedmcl.engines.smap_basis:basis_of",
    exact=False,
)
