"""Putting raw data into the layouts of the other kernels; the program has the kernels centre, stage_targets, stage_series."""

from ..codegen.spec import KernelSpec

SPEC = KernelSpec(
    name="stage",
    producer="mako",
    text="stage.cl.mako",
    headers=("numeric.clh",),
    specialisation=("dtype",),
    oracle="pyedmcl.condition:condition",
)
