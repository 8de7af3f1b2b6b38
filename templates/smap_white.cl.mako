## The states of a library for maps of S-map: coordinates for distances, and regressors in which the library is white.
##
## Delays of a smooth series are nearly collinear, so that float32 sums of their products hold nothing of what tells them
## apart. A local linear fit does not depend on the basis of its regressors: here they are made orthonormal by Gram and
## Schmidt's method, in double, and only then rounded.
##
##   series    [library][series_stride]           in double; row j of the map is element first + j
##   states    [library][n_padded][STATE]         x (E numbers), z (E), then 1 where the row is legal (with gaps only)
##   columns   [library][COLUMNS][n_padded]       the same by columns, for vectors of rows: x, the centre that a fit at this row
##                                                takes for its regressors, then 1 where the row is asked for (with gaps only)
##
## x are the coordinates less their means. z_0 .. z_(E-1) are orthonormal under the weights exp(-2 theta' d / mean d), where d
## is the distance from the mean state and theta' is theta or at most 1: what a fit there would see. A few rows far from all
## others thus do not decide which directions count. The centre is z itself, drawn in to a radius: around a row far away, the
## products of all others would be alike in all digits of float32.
##
## The inner products are taken twice ("twice is enough"), so that regressors are orthogonal to rounding. A direction that is
## nothing but rounding gets zeros.
##
## Types and names in capitals that are not defined here come from numeric.clh (numbers, sentinels).
## ---- parameters (python -m pyedmcl.kernels.describe --write) ----
## Given by the problem:
##   E          embedding dimension: values in a state
##   gaps       a library or target has gaps, so that not all rows count
##   penalised  slopes are penalised (ridge)
##   dtype      number type of data and distances: float32 or float64
## Tuned for speed, never changing what is computed (values; default of a processor, of a GPU):
##   wg         work-items that share a library (1 64 128 256; 1, 256)
## ---- end of parameters ----
<%
from math import sqrt
%>
#define E ${E}
#define WG ${wg}
#define STATE ${-(-(2 * E + gaps) // 4) * 4}
#define COLUMNS ${2 * E + gaps}
#define CENTRED_WITHIN ${f"{4 * sqrt(E):.17g}"}  // of about four standard deviations
#include "moment.clh"

// The sum of what the work-items of a group have, known to all of them.
inline moment total(const moment mine, local moment* restrict shared, const int lid) {
#if WG == 1
  return mine;
#else
  barrier(CLK_LOCAL_MEM_FENCE);
  shared[lid] = mine;
  for (int apart = WG / 2; apart > 0; apart /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lid < apart) shared[lid] += shared[lid + apart];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  return shared[0];
#endif
}

// x: series of this library, from row 0 on; lag: elements from a coordinate to the next older one.
inline int complete(global const moment* restrict x, const int j, const int lag) {
%if gaps:
  for (int e = 0; e < E; ++e)
    if (!(fabs(x[j - e * lag]) < (moment)PRESENT)) return 0;
%endif
  return 1;
}

#define NEIGHBOUR 1  // the bit of rows that may be neighbours
#define ASKED 2      // and of those that are predicted

// A work-group makes the states of library first_library + its number. uses: what rows are for, by bits (read only with
// gaps); those of the next library follow uses_stride rows later, which is 0 where all libraries have the same. work:
// [library][E + 1][n_padded], weights and regressors in double.
%if penalised:
// strength: of the penalty on squared slopes of the data, by library. penalty: [library][E][E], the same for slopes of z.
%endif
kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void smap_white(global const moment* restrict series, const int first_library, const int series_stride, const int first,
                const int lag, const int n_rows, const int n_padded, global const uchar* restrict uses,
                const int uses_stride, const moment theta, global const moment* restrict strength,
                global moment* restrict work, global real* restrict states, global real* restrict columns,
                global moment* restrict penalty) {
  local moment shared[WG];
  const int lid = get_local_id(0), library = first_library + get_group_id(0);
  global const moment* restrict x = series + (size_t)library * series_stride + first;
  global moment* restrict weights = work + (size_t)library * (E + 1) * n_padded;
  global moment* restrict z = weights + n_padded;
  uses += (size_t)library * uses_stride;
  states += (size_t)library * n_padded * STATE;
  columns += (size_t)library * n_padded * COLUMNS;

  // ---- Means, and the mean distance from the mean state ----
  moment mine = 0, mean[E];
  for (int j = lid; j < n_rows; j += WG) {
    weights[j] = ${"complete(x, j, lag) && (uses[j] & NEIGHBOUR)" if gaps else "1"};
    mine += weights[j];
  }
  const moment n = total(mine, shared, lid);
  for (int e = 0; e < E; ++e) {
    mine = 0;
    for (int j = lid; j < n_rows; j += WG)
      if (weights[j] > 0) mine += x[j - e * lag] - x[n_rows - 1 - e * lag] * ${"0" if gaps else "1"};
    mean[e] = total(mine, shared, lid) / n${"" if gaps else " + x[n_rows - 1 - e * lag]"};
  }
  mine = 0;
  for (int j = lid; j < n_rows; j += WG) {
    moment squared = 0;
    for (int e = 0; e < E; ++e) {
      const moment apart = x[j - e * lag] - mean[e];
      squared = FUSED(apart, apart, squared);
    }
    if (weights[j] > 0) mine += weights[j] = sqrt(squared);
    else weights[j] = -1;
  }
  const moment mean_distance = total(mine, shared, lid) / n;
  const moment rate = mean_distance > 0 ? 2 * fmin(theta, (moment)1) / mean_distance : (moment)0;
  mine = 0;
  for (int j = lid; j < n_rows; j += WG) {
    weights[j] = weights[j] < 0 ? (moment)0 : exp(-rate * weights[j]);
    mine += weights[j];
  }
  const moment sum_weights = total(mine, shared, lid);

  // ---- Regressors ----
  int rank = 0;
  moment largest = 0;
%if penalised:
  moment from_z[E * E];  // x less its mean = from_z' z
  for (int i = 0; i < E * E; ++i) from_z[i] = 0;
%endif
  for (int e = 0; e < E; ++e) {
    global moment* restrict v = z + (size_t)e * n_padded;
    mine = 0;
    for (int j = lid; j < n_rows; j += WG) {
      v[j] = ${"complete(x, j, lag) ? x[j - e * lag] - mean[e] : (moment)0" if gaps else "x[j - e * lag] - mean[e]"};
      mine = FUSED(weights[j] * v[j], v[j], mine);
    }
    const moment before = sqrt(total(mine, shared, lid) / sum_weights);
    for (int again = 0; again < 2; ++again)
      for (int k = -1; k < e; ++k) {  // -1: the constant
        global const moment* restrict other = z + (size_t)max(k, 0) * n_padded;
        mine = 0;
        for (int j = lid; j < n_rows; j += WG) mine = FUSED(weights[j] * v[j], k < 0 ? (moment)1 : other[j], mine);
        const moment along = total(mine, shared, lid) / sum_weights;
        for (int j = lid; j < n_rows; j += WG) v[j] = FUSED(-along, k < 0 ? (moment)1 : other[j], v[j]);
%if penalised:
        if (k >= 0) from_z[k * E + e] += along;
%endif
      }
    mine = 0;
    for (int j = lid; j < n_rows; j += WG) mine = FUSED(weights[j] * v[j], v[j], mine);
    const moment size = sqrt(total(mine, shared, lid) / sum_weights);
    // As many roundings of the largest direction as singular values are cut at.
    largest = fmax(largest, before + fabs(mean[e]));
    const int kept = size > max(n_rows, 64) * DBL_EPSILON * largest;
    rank += kept;
    const moment unit = kept ? 1 / size : (moment)0;
    for (int j = lid; j < n_rows; j += WG) v[j] *= unit;
%if penalised:
    from_z[e * E + e] = kept ? size : (moment)0;
%endif
  }

  // ---- Rounded, in both layouts; rows behind the last are zero ----
  for (int j = lid; j < n_padded; j += WG) {
    const int there = j < n_rows && complete(x, j, lag);
    moment squared = 0;
    for (int e = 0; e < E; ++e) {
      const moment one = there ? z[(size_t)e * n_padded + j] : (moment)0;
      squared = FUSED(one, one, squared);
      states[(size_t)j * STATE + E + e] = (real)one;
      const real at = there ? (real)(x[j - e * lag] - mean[e]) : (real)0;
      states[(size_t)j * STATE + e] = columns[(size_t)e * n_padded + j] = at;
    }
    for (int e = 2 * E; e < STATE; ++e) states[(size_t)j * STATE + e] = 0;
%if gaps:
    states[(size_t)j * STATE + 2 * E] = there && (uses[j] & NEIGHBOUR);
    columns[(size_t)(2 * E) * n_padded + j] = there && (uses[j] & ASKED);
%endif
    const moment inside = fmin(CENTRED_WITHIN / sqrt(fmax(squared, (moment)1e-30)), (moment)1);
    for (int e = 0; e < E; ++e)
      columns[(size_t)(E + e) * n_padded + j] = there ? (real)(inside * z[(size_t)e * n_padded + j]) : (real)0;
  }
  // A library without any direction has no skill.
  if (rank == 0 && lid == 0) columns[(size_t)E * n_padded] = NAN;
%if penalised:

  // ---- The penalty: slopes c of x of least norm with from_z c = c_z have |c|^2 = c_z' (from_z from_z')^-1 c_z ----
  // from_z' = Q T by Gram and Schmidt's method, so that the inverse is that of T' T and digits are not squared away.
  if (lid == 0) {
    moment t[E * E];
    for (int i = 0; i < E * E; ++i) t[i] = 0;
    for (int a = 0; a < E; ++a) {
      for (int again = 0; again < 2; ++again)
        for (int b = 0; b < a; ++b) {
          moment along = 0;
          for (int e = 0; e < E; ++e) along = FUSED(from_z[b * E + e], from_z[a * E + e], along);
          for (int e = 0; e < E; ++e) from_z[a * E + e] = FUSED(-along, from_z[b * E + e], from_z[a * E + e]);
          t[b * E + a] += along;
        }
      moment squared = 0;
      for (int e = 0; e < E; ++e) squared = FUSED(from_z[a * E + e], from_z[a * E + e], squared);
      const moment size = sqrt(squared);
      t[a * E + a] = size;
      for (int e = 0; e < E; ++e) from_z[a * E + e] = size > 0 ? from_z[a * E + e] / size : (moment)0;
    }
    // The inverse of the upper triangle takes the place of from_z; penalty = inverse inverse'.
    for (int i = 0; i < E * E; ++i) from_z[i] = 0;
    for (int b = 0; b < E; ++b) {
      if (!(t[b * E + b] > 0)) continue;
      from_z[b * E + b] = 1 / t[b * E + b];
      for (int a = b - 1; a >= 0; --a) {
        moment sum = 0;
        for (int k = a + 1; k <= b; ++k) sum = FUSED(t[a * E + k], from_z[k * E + b], sum);
        from_z[a * E + b] = t[a * E + a] > 0 ? -sum / t[a * E + a] : (moment)0;
      }
    }
    for (int a = 0; a < E; ++a)
      for (int b = 0; b < E; ++b) {
        moment sum = 0;
        for (int k = 0; k < E; ++k) sum = FUSED(from_z[a * E + k], from_z[b * E + k], sum);
        penalty[((size_t)library * E + a) * E + b] = strength[library] * sum;
      }
  }
%endif
}
