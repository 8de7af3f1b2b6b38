## Puts the coordinates of the S-map's rows into the layouts that its kernels read.
##
## Each row is needed twice. Distances want plain coordinates, shifted and scaled so that their squares neither overflow nor
## vanish. The fit wants regressors z = (x - shift) . basis in which the library is white (uncorrelated, of variance one):
## the normal equations are then well conditioned even where the coordinates are nearly collinear, as delays are.
##
##   stage_library   near        [row][NEAR_STRIDE]   coordinates for distances, padded with zeros
##                   regressors  [row][RANK + 1]      z, and behind it the target, shifted and scaled
##   stage_points    query       [COORDINATES][row]   coordinates for distances, one vector load for neighbouring rows
##                   query_z     [RANK][row]          z
##
## Coordinate d of row t is x[start + t * step + d * lag], so that a table and delays of a series (strides of which overlap)
## are read by the same text.
## ---- parameters (python -m pyedmcl.kernels.describe --write) ----
## Given by the problem:
##   coordinates  coordinates of a state
##   regressors   regressors of a fit, the intercept among them
##   dtype        number type of data and distances: float32 or float64
## ---- end of parameters ----
#define COORDINATES ${coordinates}
#define RANK ${regressors - 1}
#include "smap.clh"
#include "moment.clh"

// Regressor b of the row that begins at x: (x - shift) . column b of basis, which is [COORDINATES][RANK].
inline moment regressor(global const moment* restrict x, const int lag, global const moment* restrict shift,
                        global const moment* restrict basis, const int b) {
  moment sum = 0;
  for (int d = 0; d < COORDINATES; ++d) sum = FUSED(x[(ptrdiff_t)d * lag] - shift[d], basis[d * RANK + b], sum);
  return sum;
}

// A work-item writes library row t of n. unit: the scale of the coordinates for distances. The regressors' targets are
// (target - target_shift) * target_unit.
kernel void stage_library(global const moment* restrict x, const long start, const int step, const int lag,
                          global const moment* restrict target, const int n, global const moment* restrict shift,
                          global const moment* restrict basis, const moment unit, const moment target_shift,
                          const moment target_unit, global real* restrict near, global moment* restrict regressors) {
  const int t = get_global_id(0);
  if (t >= n) return;
  x += start + (long)t * step;
  for (int d = 0; d < NEAR_STRIDE; ++d)
    near[(size_t)t * NEAR_STRIDE + d] = d < COORDINATES ? (real)((x[(ptrdiff_t)d * lag] - shift[d]) * unit) : 0;
  for (int b = 0; b < RANK; ++b) regressors[(size_t)t * (RANK + 1) + b] = regressor(x, lag, shift, basis, b);
  regressors[(size_t)t * (RANK + 1) + RANK] = (target[t] - target_shift) * target_unit;
}

// A work-item writes query row t of n_padded; the last of the n rows is repeated, so that no padding needs a test later.
kernel void stage_points(global const moment* restrict x, const long start, const int step, const int lag, const int n,
                         const int n_padded, global const moment* restrict shift, global const moment* restrict basis,
                         const moment unit, global real* restrict query, global moment* restrict query_z) {
  const int t = get_global_id(0);
  if (t >= n_padded) return;
  x += start + (long)min(t, n - 1) * step;
  for (int d = 0; d < COORDINATES; ++d)
    query[(size_t)d * n_padded + t] = (real)((x[(ptrdiff_t)d * lag] - shift[d]) * unit);
  for (int b = 0; b < RANK; ++b) query_z[(size_t)b * n_padded + t] = regressor(x, lag, shift, basis, b);
}
