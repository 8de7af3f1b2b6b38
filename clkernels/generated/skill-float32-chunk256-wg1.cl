// pyedmcl text by loopy: {"maker": 1, "name": "skill", "sha256": "4049a1fc05311a53", "values": {"chunk": 256, "dtype": "float32", "wg": 1}}
// Generated: change pyedmcl/kernels/texts.py and run python -m pyedmcl.kernels.loopy_source --write
#define lid(N) ((long) get_local_id(N))
#define gid(N) ((long) get_group_id(N))
#if __OPENCL_C_VERSION__ < 120
#pragma OPENCL EXTENSION cl_khr_fp64: enable
#endif

__kernel void __attribute__ ((reqd_work_group_size(1, 1, 1))) skill(__global float const *__restrict__ predicted, __global float const *__restrict__ observed, __global int const *__restrict__ observed_of, __global int const *__restrict__ t_begin, __global int const *__restrict__ t_end, __global float *__restrict__ sums, long const pair_begin, long const n_pairs, long const n_chunks, long const n_rows, long const observed_stride, long const observed_offset)
{
  long at_o;
  long at_p;
  long begin;
  long end;
  float error;
  long first;
  float gap;
  long last;
  float n;
  float o;
  float p;
  long series;
  float sum_abs;
  float sum_o;
  float sum_oo;
  float sum_p;
  float sum_po;
  float sum_pp;
  float sum_squares;
  int there;

  first = (long) (t_begin[gid(0) + pair_begin]);
  last = (long) (t_end[gid(0) + pair_begin]);
  begin = max(first, (lid(0) + gid(1) * 1) * 256);
  end = min(min(last, n_rows), (lid(0) + gid(1) * 1) * 256 + 256);
  series = (long) (observed_of[gid(0) + pair_begin]);
  at_p = (pair_begin + gid(0)) * n_rows;
  at_o = series * observed_stride + observed_offset;
  gap = (float) (1000000000000000.0f);
  n = 0.0f;
  sum_p = 0.0f;
  sum_o = 0.0f;
  sum_pp = 0.0f;
  sum_oo = 0.0f;
  sum_po = 0.0f;
  sum_abs = 0.0f;
  sum_squares = 0.0f;
  for (long t = begin; t <= -1 + end; ++t)
  {
    p = predicted[t + at_p];
    o = observed[t + at_o];
    there = (int) (p == p && fabs(o) < gap);
    if (there)
    {
      error = p + -1.0f * o;
      n = n + 1.0f;
      sum_p = sum_p + p;
      sum_o = sum_o + o;
      sum_pp = FUSED(p, p, sum_pp);
      sum_oo = FUSED(o, o, sum_oo);
      sum_po = FUSED(p, o, sum_po);
      sum_abs = sum_abs + fabs(error);
      sum_squares = FUSED(error, error, sum_squares);
    }
  }
  sums[8 * n_chunks * gid(0) + 8 * gid(1)] = n;
  sums[8 * n_chunks * gid(0) + 8 * gid(1) + 1] = sum_p;
  sums[8 * n_chunks * gid(0) + 8 * gid(1) + 2] = sum_o;
  sums[8 * n_chunks * gid(0) + 8 * gid(1) + 3] = sum_pp;
  sums[8 * n_chunks * gid(0) + 8 * gid(1) + 4] = sum_oo;
  sums[8 * n_chunks * gid(0) + 8 * gid(1) + 5] = sum_po;
  sums[8 * n_chunks * gid(0) + 8 * gid(1) + 6] = sum_abs;
  sums[8 * n_chunks * gid(0) + 8 * gid(1) + 7] = sum_squares;
}
