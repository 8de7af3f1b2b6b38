"""The k nearest of an index's candidates, with the bits of the exhaustive search."""

from ..codegen.spec import KernelSpec

SPEC = KernelSpec(
    name="candidates",
    producer="mako",
    text="candidates.cl.mako",
    arguments="""
        candidates(const real* library; ulong library_first; const real* query; ulong query_first;
            int tau, E, begin, n, m, exclusion_radius; int* rows; real* squared; const real* limit; uchar* open;
            const int* query_rows; int k, stride, tile, spare; ulong table; int* out_row; real* out_value)
        tabulate(const int* rows; real* squared; int n, k, stride, tile, spare; ulong table; int* out_row;
            real* out_value)
        nothing(const int* query_rows; int n, k; int* out_row; real* out_value)
    """,
    launches="""
        candidates | n | any
          library: library_first + n_steps_held
          query: query_first + n_query_steps
          rows, squared: n * m
          limit, open, query_rows: n
          out_row, out_value: table + round_up(n_query_steps, tile) * stride
        tabulate | n | any
          rows, squared: n * k
          out_row, out_value: table + round_up(n, tile) * stride
        nothing | n | any
          query_rows: n
          out_row, out_value: n_query_steps * k
    """,
    specialisation=("dtype", "emit"),
    oracle="pyedmcl.reference.edm:knn_float32_exact",
)
