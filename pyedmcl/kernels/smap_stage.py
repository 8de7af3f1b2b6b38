"""Coordinates into the layouts of S-map's kernels: the program holds stage_library and stage_points."""

from ..codegen.spec import KernelSpec

SPEC = KernelSpec(
    name="smap_stage",
    producer="mako",
    text="smap_stage.cl.mako",
    specialisation=("coordinates", "regressors", "dtype"),
    oracle="pyedmcl.engines.smap_basis:basis_of",
    exact=False,
)
