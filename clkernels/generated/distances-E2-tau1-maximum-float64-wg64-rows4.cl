// pyedmcl text by loopy: {"maker": 1, "name": "distances", "sha256": "674c18373e716602", "values": {"E": 2, "dtype": "float64", "metric": "maximum", "rows": 4, "tau": 1, "wg": 64}}
// Generated: change pyedmcl/codegen/loopy_kernels.py and run python -m pyedmcl.codegen.loopy_source --write
#define lid(N) ((long) get_local_id(N))
#define gid(N) ((long) get_group_id(N))
#if __OPENCL_C_VERSION__ < 120
#pragma OPENCL EXTENSION cl_khr_fp64: enable
#endif

__kernel void __attribute__ ((reqd_work_group_size(64, 1, 1))) distances(__global double const *__restrict__ query, __global double const *__restrict__ library, __global double *__restrict__ block, long const row_begin, long const n_rows, long const column_begin, long const n_columns)
{
  double acc[4];
  double diff;
  double x;

  if (-1 + -64 * gid(1) + -1 * lid(0) + n_columns >= 0)
  {
    acc[0] = (double) (0.0);
    acc[1] = (double) (0.0);
    acc[2] = (double) (0.0);
    acc[3] = (double) (0.0);
    x = library[1 + 64 * gid(1) + lid(0) + column_begin];
    diff = query[1 + 4 * gid(0) + row_begin] + -1.0 * x;
    acc[0] = MAXIMUM(acc[0], fabs(diff));
    diff = query[1 + 4 * gid(0) + 1 + row_begin] + -1.0 * x;
    acc[1] = MAXIMUM(acc[1], fabs(diff));
    diff = query[1 + 4 * gid(0) + 2 + row_begin] + -1.0 * x;
    acc[2] = MAXIMUM(acc[2], fabs(diff));
    diff = query[1 + 4 * gid(0) + 3 + row_begin] + -1.0 * x;
    acc[3] = MAXIMUM(acc[3], fabs(diff));
    x = library[1 + 64 * gid(1) + lid(0) + -1 + column_begin];
    diff = query[1 + 4 * gid(0) + -1 + row_begin] + -1.0 * x;
    acc[0] = MAXIMUM(acc[0], fabs(diff));
    diff = query[1 + 4 * gid(0) + -1 + 1 + row_begin] + -1.0 * x;
    acc[1] = MAXIMUM(acc[1], fabs(diff));
    diff = query[1 + 4 * gid(0) + -1 + 2 + row_begin] + -1.0 * x;
    acc[2] = MAXIMUM(acc[2], fabs(diff));
    diff = query[1 + 4 * gid(0) + -1 + 3 + row_begin] + -1.0 * x;
    acc[3] = MAXIMUM(acc[3], fabs(diff));
    block[n_columns * 4 * gid(0) + 64 * gid(1) + lid(0)] = acc[0];
    if (-2 + -4 * gid(0) + n_rows >= 0)
      block[n_columns * (4 * gid(0) + 1) + 64 * gid(1) + lid(0)] = acc[1];
    if (-3 + -4 * gid(0) + n_rows >= 0)
      block[n_columns * (4 * gid(0) + 2) + 64 * gid(1) + lid(0)] = acc[2];
    if (-4 + -4 * gid(0) + n_rows >= 0)
      block[n_columns * (4 * gid(0) + 3) + 64 * gid(1) + lid(0)] = acc[3];
  }
}
