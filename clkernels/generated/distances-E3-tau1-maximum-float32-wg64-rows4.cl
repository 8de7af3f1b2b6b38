// pyedmcl text by loopy: {"maker": 1, "name": "distances", "sha256": "332e5f8a62db3849", "values": {"E": 3, "dtype": "float32", "metric": "maximum", "rows": 4, "tau": 1, "wg": 64}}
// Generated: change pyedmcl/codegen/loopy_kernels.py and run python -m pyedmcl.codegen.loopy_source --write
#define lid(N) ((long) get_local_id(N))
#define gid(N) ((long) get_group_id(N))

__kernel void __attribute__ ((reqd_work_group_size(64, 1, 1))) distances(__global float const *__restrict__ query, __global float const *__restrict__ library, __global float *__restrict__ block, long const row_begin, long const n_rows, long const column_begin, long const n_columns)
{
  float acc[4];
  float diff;
  float x;

  if (-1 + -64 * gid(1) + -1 * lid(0) + n_columns >= 0)
  {
    acc[0] = 0.0f;
    acc[1] = 0.0f;
    acc[2] = 0.0f;
    acc[3] = 0.0f;
    x = library[2 + 64 * gid(1) + lid(0) + column_begin];
    diff = query[2 + 4 * gid(0) + row_begin] + -1.0f * x;
    acc[0] = MAXIMUM(acc[0], fabs(diff));
    diff = query[2 + 4 * gid(0) + 1 + row_begin] + -1.0f * x;
    acc[1] = MAXIMUM(acc[1], fabs(diff));
    diff = query[2 + 4 * gid(0) + 2 + row_begin] + -1.0f * x;
    acc[2] = MAXIMUM(acc[2], fabs(diff));
    diff = query[2 + 4 * gid(0) + 3 + row_begin] + -1.0f * x;
    acc[3] = MAXIMUM(acc[3], fabs(diff));
    x = library[2 + 64 * gid(1) + lid(0) + -1 + column_begin];
    diff = query[2 + 4 * gid(0) + -1 + row_begin] + -1.0f * x;
    acc[0] = MAXIMUM(acc[0], fabs(diff));
    diff = query[2 + 4 * gid(0) + -1 + 1 + row_begin] + -1.0f * x;
    acc[1] = MAXIMUM(acc[1], fabs(diff));
    diff = query[2 + 4 * gid(0) + -1 + 2 + row_begin] + -1.0f * x;
    acc[2] = MAXIMUM(acc[2], fabs(diff));
    diff = query[2 + 4 * gid(0) + -1 + 3 + row_begin] + -1.0f * x;
    acc[3] = MAXIMUM(acc[3], fabs(diff));
    x = library[2 + 64 * gid(1) + lid(0) + -1 * 2 + column_begin];
    diff = query[2 + 4 * gid(0) + -1 * 2 + row_begin] + -1.0f * x;
    acc[0] = MAXIMUM(acc[0], fabs(diff));
    diff = query[2 + 4 * gid(0) + -1 * 2 + 1 + row_begin] + -1.0f * x;
    acc[1] = MAXIMUM(acc[1], fabs(diff));
    diff = query[2 + 4 * gid(0) + -1 * 2 + 2 + row_begin] + -1.0f * x;
    acc[2] = MAXIMUM(acc[2], fabs(diff));
    diff = query[2 + 4 * gid(0) + -1 * 2 + 3 + row_begin] + -1.0f * x;
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
