"""Raw data into the layouts of the other kernels: the program holds centre, stage_targets and stage_series."""

from ..codegen.spec import KernelSpec

SPEC = KernelSpec(
    name="stage",
    producer="mako",
    text="stage.cl.mako",
    specialisation=("dtype",),
    oracle="pyedmcl.data.condition:condition",
)
