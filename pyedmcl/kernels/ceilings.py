"""What a device can do at most: the program holds multiply_add, copy and read_local.

No engine uses it and nothing of it is tuned, so it is none of :data:`pyedmcl.kernels.NAMES`.
"""

from ..codegen.spec import Constraint, KernelSpec

SPEC = KernelSpec(
    name="ceilings",
    producer="mako",
    text="ceilings.cl.mako",
    specialisation=("dtype", "lanes", "chains", "wg", "rows"),
    constraints=(
        Constraint(lambda v: v["rows"] % v["chains"] == 0, "each chain reads as many rows as the others"),
    ),
    oracle="pyedmcl.reference:fma32",
)
