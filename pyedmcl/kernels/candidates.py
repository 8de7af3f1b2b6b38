"""The k nearest of an index's candidates, with the bits of the exhaustive search."""

from ..codegen.spec import KernelSpec

SPEC = KernelSpec(
    name="candidates",
    producer="mako",
    text="candidates.cl.mako",
    arguments="""
        candidates(const real* library; ulong library_first; const real* query; ulong query_first;
            int tau, E, begin, n, m, exclusion_radius; int* rows; real* squared; const real* limit; uchar* open;
            const int* which; int k, stride, tile, spare; ulong table; int* out_row; real* out_value)
        tabulate(const int* rows; real* squared; int n, k, stride, tile, spare; ulong table; int* out_row;
            real* out_value)
        nothing(const int* which; int n, k; int* out_row; real* out_value)
    """,
    specialisation=("dtype", "emit"),
    oracle="pyedmcl.reference.edm:knn_float32_exact",
)
