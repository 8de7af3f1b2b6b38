## What S-map's weights need of each query row: the distance of the nearest library row that may be a neighbour, and the mean
## distance of all of them; with a limited number of neighbours, the distance and row of the k-th.
##
## The k-th neighbour by (distance, row) is found by bisection, for any k and without a list. Bits of numbers above 0 are
## ordered as the numbers are, so the squared distance is bisected as an integer: each step counts in a sweep how many rows
## are not beyond the middle. Then the row is bisected among those at exactly this distance.
##
##   sweep 1              nearest, mean (of all rows, if k is not limited), count
##   then, if limited:    one sweep for each bit of a distance, one for the rows below it, one for each bit of a row, and one
##                        for the mean of the k nearest
##
## `slices` work-items share a query row: each sweeps a part of the library, and gather() puts their results together.
##
## Types and names in capitals that are not defined here come from numeric.clh (vectors, sentinels) and smap.clh (near rows).
## ---- parameters (python -m pyedmcl.kernels.describe --write) ----
## Given by the problem:
##   coordinates  coordinates of a state
##   limited      a fit takes the nearest rows only, a number of them
##   dtype        number type of data and distances: float32 or float64
## Tuned for speed, never changing what is computed (values; default of a processor, of a GPU):
##   lanes        query rows of a work-item; a SIMD register on CPUs (1 4 8 16; 16, 1)
##   wg           work-items of a group (1 64 128 256; 1, 256)
##   slices       work-items that share a query row (1 2 4 8 16; 1, 16)
## ---- end of parameters ----
<%
rows = wg // slices * lanes
%>
#define COORDINATES ${coordinates}
#define WG ${wg}
#define SLICES ${slices}
#define CHUNK 64
#include "smap.clh"

## All library rows of this slice, with `body` for each. Sums are taken in chunks of CHUNK rows, which bounds their rounding.
<%def name="sweep(body)">
  for (int jb = j_begin; jb < j_end; jb += CHUNK) {
    const int stop = min(jb + CHUNK, j_end);
    realv part = 0;
    for (int j = jb; j < stop; ++j) {
      SQUARED_DISTANCE(squared, global, library + (size_t)j * NEAR_STRIDE);
      const int row = library_rows[j];
      const rowv excluded = TOO_NEAR(row);
      ${body()}
    }
    total += part;
  }
</%def>

<%def name="add_up()">
      const realv d = sqrt(squared);
      part += CHOOSE(d, (realv)(0), excluded);
      nearest = CHOOSE(MINIMUM(nearest, d), nearest, excluded);
      count += CHOOSE((rowv)(1), (rowv)(0), excluded);
</%def>

<%def name="add_up_limited()">
      const realv d = sqrt(squared);
      const rowv out = excluded || BEYOND(squared, row);
      part += CHOOSE(d, (realv)(0), out);
      count += CHOOSE((rowv)(1), (rowv)(0), out);
</%def>

<%def name="count_up_to_bits()">
      count += CHOOSE((rowv)(1), (rowv)(0), excluded || (AS_WHOLEV(squared) > middle));
</%def>

<%def name="count_up_to_row()">
      count += CHOOSE((rowv)(1), (rowv)(0), excluded || (AS_WHOLEV(squared) != high) || ((rowv)(row) > middle));
</%def>

## The sum over the slices of a query row, known to all of them.
<%def name="gather(variable, type, operation)">
%if slices > 1:
    barrier(CLK_LOCAL_MEM_FENCE);
    shared_${type}[get_local_id(0)] = ${variable};
    barrier(CLK_LOCAL_MEM_FENCE);
    ${variable} = shared_${type}[lane];
    for (int s = 1; s < SLICES; ++s) ${variable} = ${operation(f"{variable}", f"shared_{type}[s * (WG / SLICES) + lane]")};
%endif
</%def>
<%
def plus(a, b):
    return f"{a} + {b}"
def least(a, b):
    return f"MINIMUM({a}, {b})"
%>

// query: [COORDINATES][query_stride]; query_rows: t + radius per query, padded like it; library: [n_library][NEAR_STRIDE],
// library_rows ascending. A work-group owns ${rows} queries, of which each of ${slices} slices looks at a part of the library.
// Per query: distance of the nearest row that may be a neighbour, 1 / mean distance (0 where that is 0), number of such rows, and
// squared distance and row of the k-th.
kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void smap_scale(global const real* restrict query, global const whole* restrict query_rows, const int query_stride,
                global const real* restrict library, global const int* restrict library_rows, const int n_library,
                const int radius, const int k, const int row_steps, const int first_tile, global real* restrict out_nearest,
                global real* restrict out_rate, global int* restrict out_count, global real* restrict out_squared,
                global whole* restrict out_row) {
  const int lane = get_local_id(0) % (WG / SLICES), slice = get_local_id(0) / (WG / SLICES);
  const int t0 = ((first_tile + get_group_id(0)) * (WG / SLICES) + lane) * LANES;
  const int j_begin = (int)((long)n_library * slice / SLICES), j_end = (int)((long)n_library * (slice + 1) / SLICES);
%if slices > 1:
  local realv shared_real[WG];
  local rowv shared_row[WG];
%endif
  realv q[COORDINATES];
  _Pragma("unroll") for (int e = 0; e < COORDINATES; ++e) q[e] = LOADV(query + (size_t)e * query_stride + t0);
  const rowv upper = LOADV(query_rows + t0);
  realv nearest = FAR, total = 0;
  rowv count = 0;
  ${sweep(add_up)}
  ${gather("nearest", "real", least)}
  ${gather("count", "row", plus)}
%if limited:
  const rowv most = min(count, (rowv)(k));

  // ---- The k-th distance, in bits: count(low) < k <= count(high) ----
  rowv low = -1, high = AS_WHOLEV((realv)(NOWHERE)), middle;
  for (int step = 0; step < REAL_BITS; ++step) {
    middle = low + ((high - low) >> (rowv)(1));
    count = 0;
    ${sweep(count_up_to_bits)}
    ${gather("count", "row", plus)}
    const rowv enough = count >= most;
    high = CHOOSE(high, middle, enough);
    low = CHOOSE(middle, low, enough);
  }

  // ---- The k-th row, among those at this distance ----
  const realv limit_squared = AS_REALV(high);
  middle = high - (rowv)(1);
  count = 0;
  ${sweep(count_up_to_bits)}
  ${gather("count", "row", plus)}
  const rowv missing = most - count;
  rowv row_low = -1, row_high = (rowv)(library_rows[n_library - 1]);
  for (int step = 0; step < row_steps; ++step) {
    middle = row_low + ((row_high - row_low) >> (rowv)(1));
    count = 0;
    ${sweep(count_up_to_row)}
    ${gather("count", "row", plus)}
    const rowv enough = count >= missing;
    row_high = CHOOSE(row_high, middle, enough);
    row_low = CHOOSE(middle, row_low, enough);
  }
  const rowv limit_row = row_high;

  // ---- The mean of the k nearest ----
  count = 0;
  total = 0;
  ${sweep(add_up_limited)}
  ${gather("count", "row", plus)}
%endif
  ${gather("total", "real", plus)}
  if (slice == 0) {
    const realv mean = total / CHOOSE(CONVERT_REALV(count), (realv)(1), count == (rowv)(0));
    STOREV(nearest, out_nearest + t0);
    STOREV(CHOOSE((realv)(1) / CHOOSE(mean, (realv)(1), mean == (realv)(0)), (realv)(0), mean == (realv)(0)), out_rate + t0);
    STORE_INT(count, out_count + t0);
%if limited:
    STOREV(limit_squared, out_squared + t0);
    STOREV(limit_row, out_row + t0);
%endif
  }
}
