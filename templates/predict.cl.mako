## Simplex projection (Sugihara and May, Nature 344, 734, 1990) of each series by its own neighbour tables.
##
##   predicted[t] = sum_i weight[t][i] * y[row[t][i] + Tp]
##   variance[t]  = sum_i weight[t][i] * (y[row[t][i] + Tp] - predicted[t])^2        (the weights sum to one)
##
## A work-item has one cell (dimension, series, query row), in this order. Tables are those that knn.cl.mako writes: within a
## tile of TILE query rows neighbour by neighbour, [neighbour][query row], one dimension behind another.
## ---- parameters (python -m pyedmcl.kernels.describe --write) ----
## Given by the problem:
##   counts      k of each dimension
##   dtype       number type of data and distances: float32 or float64
##   table_tile  query rows of a tile of the neighbour tables
## Tuned for speed, never changing what is computed (values; default of a processor, of a GPU):
##   wg          work-items of a group, a query row each (1 16 32 64 128; 16, 32)
## ---- end of parameters ----
<%
from itertools import accumulate
strides = [-(-k // 4) * 4 for k in counts]
before = [0, *accumulate(strides)][:-1]
%>
#define TILE ${table_tile}
#include "numeric.clh"

constant int K_OF[${len(counts)}] = {${", ".join(map(str, counts))}};
constant int K_STRIDE[${len(counts)}] = {${", ".join(map(str, strides))}};
constant int K_BEFORE[${len(counts)}] = {${", ".join(map(str, before))}};

// targets: [series][target_stride], row 0 at column target_front, from first_series on; rows, weights: per dimension
// [series][table_rows][K_STRIDE] in tiles of TILE rows; predicted, variance: [dimension][series][n_rows], NaN for rows without a neighbour.
kernel __attribute__((reqd_work_group_size(${wg}, 1, 1)))
void predict(global const real* restrict targets, const int target_stride, const int target_front, const int first_series,
             global const int* restrict rows, global const real* restrict weights, const int n_rows, const int Tp,
             const ulong rows_per_slot, const int table_rows, const ulong table_rows_per_slot, global real* restrict predicted, global real* restrict variance) {
  const size_t at = get_global_id(0);
  if (at >= ${len(counts)} * rows_per_slot) return;
  const int s = (int)(at / rows_per_slot);
  const size_t cell = at - s * rows_per_slot;
  global const real* restrict y = targets + (first_series + cell / n_rows) * target_stride + target_front + Tp;
  const size_t series = cell / n_rows;
  const int t = (int)(cell - series * n_rows);
  const size_t table = K_BEFORE[s] * table_rows_per_slot + (series * table_rows + t / TILE * TILE) * K_STRIDE[s] + t % TILE;
  global const int* restrict row = rows + table;
  global const real* restrict weight = weights + table;
  const int k = K_OF[s];
  real mean = 0, spread = 0;
  for (int i = 0; i < k; ++i) mean = FUSED(weight[i * TILE], y[row[i * TILE]], mean);
  for (int i = 0; i < k; ++i) {
    const real d = y[row[i * TILE]] - mean;
    // A weight of zero marks an empty place, whose value may be a gap.
    if (weight[i * TILE] > 0) spread = FUSED(weight[i * TILE] * d, d, spread);
  }
  const bool any = weight[0] > 0;
  predicted[at] = any ? mean : (real)NAN;
  variance[at] = any ? spread : (real)NAN;
}
