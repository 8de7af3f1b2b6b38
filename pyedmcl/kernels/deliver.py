"""Results into arrays of the caller on the device: deliver_neighbours, deliver_skill, deliver_counts, deliver_means.

A copy, of which nothing is tuned, so it is none of :data:`pyedmcl.kernels.NAMES`.
"""

from ..codegen.spec import KernelSpec, Values

_ARGUMENTS = """
    deliver_neighbours(const int* rows; const real* squared; ulong n; int n_library, exponent; int* indices;
        ulong first_index; real* distances; ulong first_distance; uint* wrong)
    deliver_skill(const real* rho; ulong begin, n; real most; real* out; ulong first_out; uint* wrong)
    deliver_counts(const uint* image; int n_columns, symmetric, words; long* counts; ulong first_count)
"""
_MEANS = """
    deliver_means(const uint* image; int n_columns, symmetric, words; const double* present_rows, present_columns;
        int exponent; double* means; ulong first_mean)
"""


def _arguments(values: Values) -> str:
    return _ARGUMENTS + (_MEANS if values["dtype"] == "float64" else "")


SPEC = KernelSpec(
    name="deliver",
    producer="mako",
    text="deliver.cl.mako",
    arguments=_arguments,
    launches="""
        deliver_neighbours | n | any
          rows, squared: n
          indices: first_index + n
          distances: first_distance + n
          wrong: 1
        deliver_skill | n | any
          rho: begin + n
          out: first_out + n
          wrong: 1
        deliver_counts | n_columns; rows_here | any
          image: rows_here * n_columns * words
          counts: first_count + rows_here * n_columns
        deliver_means | n_columns; rows_here | any
          image: rows_here * n_columns * words
          present_rows: rows_here
          present_columns: n_columns
          means: first_mean + rows_here * n_columns
    """,
    specialisation=("dtype",),
    oracle="pyedmcl.reference.edm:knn_float32_exact",
)
