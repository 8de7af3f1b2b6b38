"""Results into arrays of the caller on the device: deliver_neighbours, deliver_skill and deliver_counts.

A copy, of which nothing is tuned, so it is none of :data:`pyedmcl.kernels.NAMES`.
"""

from ..codegen.spec import KernelSpec

SPEC = KernelSpec(
    name="deliver",
    producer="mako",
    text="deliver.cl.mako",
    arguments="""
        deliver_neighbours(const int* rows; const real* squared; ulong n; int n_library, exponent; int* indices;
            ulong first_index; real* distances; ulong first_distance; uint* wrong)
        deliver_skill(const real* rho; ulong begin, n; real most; real* out; ulong first_out; uint* wrong)
        deliver_counts(const uint* image; int n_columns, symmetric, words; long* counts; ulong first_count)
    """,
    specialisation=("dtype",),
    oracle="pyedmcl.reference.edm:knn_float32_exact",
)
