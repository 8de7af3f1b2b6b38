"""The k nearest neighbours within each of many windows that overlap, from distances that are found once."""

from ..codegen.spec import KernelSpec

SPEC = KernelSpec(
    name="window_knn",
    producer="mako",
    text="window_knn.cl.mako",
    arguments="""
        window_knn(const real* series; int stride, front; const int* starts; int width, lost, radius;
            const int* cover; int n_tiles, n_libraries, task_begin, task_end, first, last; int* out_row;
            real* out_value; ulong table_begin; int table_rows, k_stride, tile; whole* kept; int most)
    """,
    launches="""
        window_knn | groups | 1
          series: n_libraries * stride
          starts: n_windows
          cover: 2 * n_tiles
          out_row, out_value: table_begin + (last - first) * table_rows * k_stride
          kept: groups * most * 2 * k * lanes
    """,
    specialisation=("E", "tau", "k", "lanes", "dtype"),
    oracle="pyedmcl.reference.edm:knn_float32_exact",
)
