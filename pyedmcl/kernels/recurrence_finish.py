"""The ends of all lines of a recurrence matrix, once it is known whole.

A thousandth of the work: nothing of it is tuned, so it is none of :data:`pyedmcl.kernels.NAMES`.
"""

from ..codegen.spec import KernelSpec

SPEC = KernelSpec(
    name="recurrence_finish",
    producer="mako",
    text="recurrence_finish.cl.mako",
    specialisation=("wg",),
    oracle="pyedmcl.reference.rqa:line_counts",
)
