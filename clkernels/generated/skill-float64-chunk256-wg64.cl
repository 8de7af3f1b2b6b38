// pyedmcl text by loopy: {"maker": 1, "name": "skill", "sha256": "2169e251ad2ba62a", "values": {"chunk": 256, "dtype": "float64", "wg": 64}}
// Generated: change pyedmcl/kernels/texts.py and run python -m pyedmcl.kernels.loopy_source --write
#define lid(N) ((long) get_local_id(N))
#define gid(N) ((long) get_group_id(N))
#if __OPENCL_C_VERSION__ < 120
#pragma OPENCL EXTENSION cl_khr_fp64: enable
#endif

__kernel void __attribute__ ((reqd_work_group_size(64, 1, 1))) skill(__global double const *__restrict__ predicted, __global double const *__restrict__ observed, __global int const *__restrict__ observed_of, __global int const *__restrict__ t_begin, __global int const *__restrict__ t_end, __global double *__restrict__ sums, long const pair_begin, long const n_pairs, long const n_chunks, long const n_rows, long const observed_stride, long const observed_offset)
{
  long at_o;
  long at_p;
  long begin;
  long end;
  double error;
  long first;
  double gap;
  long last;
  double n;
  double o;
  double p;
  long series;
  double sum_abs;
  double sum_o;
  double sum_oo;
  double sum_p;
  double sum_po;
  double sum_pp;
  double sum_squares;
  int there;

  if (-1 + -64 * gid(1) + -1 * lid(0) + n_chunks >= 0)
  {
    first = (long) (t_begin[gid(0) + pair_begin]);
    last = (long) (t_end[gid(0) + pair_begin]);
    begin = max(first, (lid(0) + gid(1) * 64) * 256);
    end = min(min(last, n_rows), (lid(0) + gid(1) * 64) * 256 + 256);
    series = (long) (observed_of[gid(0) + pair_begin]);
    at_p = (pair_begin + gid(0)) * n_rows;
    at_o = series * observed_stride + observed_offset;
    gap = 1000000000000000.0;
    n = (double) (0.0);
    sum_p = (double) (0.0);
    sum_o = (double) (0.0);
    sum_pp = (double) (0.0);
    sum_oo = (double) (0.0);
    sum_po = (double) (0.0);
    sum_abs = (double) (0.0);
    sum_squares = (double) (0.0);
    for (long t = begin; t <= -1 + end; ++t)
    {
      p = predicted[t + at_p];
      o = observed[t + at_o];
      there = (int) (p == p && fabs(o) < gap);
      if (there)
      {
        error = p + -1.0 * o;
        n = n + 1.0;
        sum_p = sum_p + p;
        sum_o = sum_o + o;
        sum_pp = FUSED(p, p, sum_pp);
        sum_oo = FUSED(o, o, sum_oo);
        sum_po = FUSED(p, o, sum_po);
        sum_abs = sum_abs + fabs(error);
        sum_squares = FUSED(error, error, sum_squares);
      }
    }
    sums[8 * n_chunks * gid(0) + 8 * (64 * gid(1) + lid(0))] = n;
    sums[8 * n_chunks * gid(0) + 8 * (64 * gid(1) + lid(0)) + 1] = sum_p;
    sums[8 * n_chunks * gid(0) + 8 * (64 * gid(1) + lid(0)) + 2] = sum_o;
    sums[8 * n_chunks * gid(0) + 8 * (64 * gid(1) + lid(0)) + 3] = sum_pp;
    sums[8 * n_chunks * gid(0) + 8 * (64 * gid(1) + lid(0)) + 4] = sum_oo;
    sums[8 * n_chunks * gid(0) + 8 * (64 * gid(1) + lid(0)) + 5] = sum_po;
    sums[8 * n_chunks * gid(0) + 8 * (64 * gid(1) + lid(0)) + 6] = sum_abs;
    sums[8 * n_chunks * gid(0) + 8 * (64 * gid(1) + lid(0)) + 7] = sum_squares;
  }
}
