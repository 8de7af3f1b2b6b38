"""The k nearest of an index's candidates, with the bits of the exhaustive search."""

from ..codegen.spec import KernelSpec

SPEC = KernelSpec(
    name="candidates",
    producer="mako",
    text="candidates.cl.mako",
    specialisation=("dtype", "emit"),
    oracle="pyedmcl.reference.edm:knn_float32_exact",
)
