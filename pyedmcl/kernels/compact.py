"""Targets in half the bytes: the program holds compact_parts, compact_scales and compact."""

from ..codegen.spec import Constraint, KernelSpec

SPEC = KernelSpec(
    name="compact",
    producer="mako",
    text="compact.cl.mako",
    arguments="""
        compact_parts(const real* targets; int target_stride, n_steps, first, end; real* parts)
        compact_scales(const real* parts; int target_stride, n_scored; real* scales)
        compact(const real* targets; int target_stride; const real* scales; ushort* codes)
    """,
    specialisation=("dtype",),
    constraints=(Constraint(lambda v: v["dtype"] == "float32", "only targets of float32 can have 16 bits"),),
    oracle="pyedmcl.reference.edm:compacted",
    exact=False,
)
