## S-map's local fits from their moments, taken back to the data's units: a work-group solves one system after the other.
## ---- parameters (python -m pyedmcl.kernels.describe --write) ----
## Given by the problem:
##   coordinates  coordinates of a state
##   regressors   regressors of a fit, the intercept among them
##   rows         query rows whose moments lie together
##   penalised    slopes are penalised (ridge)
##   centred      the regressors were centred on the query row
##   dtype        number type of data and distances: float32 or float64
## Tuned for speed, never changing what is computed (values; default of a processor, of a GPU):
##   wg           work-items that solve a system together (1 8 16 32 64; 1, 32)
## ---- end of parameters ----
<%
K = regressors
n_gram = K * (K + 1) // 2
%>
#define WG ${wg}
#define K ${K}
#define RANK ${K - 1}
#define COORDINATES ${coordinates}
#define N_GRAM ${n_gram}
#define ENTRIES ${n_gram + K + 3}
#define ROWS ${rows}
#include "solve.clh"

// moments: from smap, of n_padded rows, in n_parts parts for tiles from n_head on and in one for those before; points, start, step, lag: as smap_stage has them;
// query_z, nearest and rate as in smap. fits: [theta][3][n_rows], prediction, variance and the bound on the prediction's error in roundings;
// coefficients: [theta][n_rows][COORDINATES + 1], intercept and slopes.
%if penalised:
// penalty: [K][K], what is added to the matrix for each unit of W^2 of the nearest row.
%endif
kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void smap_solve(global const moment* restrict moments, const int n_parts, const int n_head, const int n_thetas,
                const int n_rows, const int n_padded, global const moment* restrict penalty, global const moment* restrict points,
                const long start, const int step, const int lag, global const moment* restrict query_z,
                global const real* restrict nearest, global const real* restrict rate, global const real* restrict thetas,
                global const moment* restrict basis, const moment target_shift, const moment target_scale,
                global moment* restrict fits, global moment* restrict coefficients) {
  local moment a[N_GRAM + 2 * K + 3];
  local moment scale[K];
  local moment sums[3];
  local moment slopes[COORDINATES];
  const int lane = get_local_id(0), systems = n_rows * n_thetas;
  for (int system = get_group_id(0); system < systems; system += get_num_groups(0)) {
    const int theta = system / n_rows, t = system - theta * n_rows;
    const int tile = t / ROWS, n_tail = n_padded / ROWS - n_head;
    const size_t slot_stride = (size_t)n_thetas * ENTRIES * ROWS;
    global const moment* restrict from = moments + ((size_t)tile * n_thetas + theta) * ENTRIES * ROWS + t % ROWS;
    global const moment* restrict more = from + (size_t)n_tail * slot_stride;
    for (int i = lane; i < ENTRIES; i += WG) {
      moment sum = from[(size_t)i * ROWS];
      if (tile >= n_head)
        for (int part = 1; part < n_parts; ++part) sum += more[(part - 1) * n_tail * slot_stride + (size_t)i * ROWS];
      if (i < N_GRAM + K)
        a[i] = sum;
      else
        sums[i - N_GRAM - K] = sum;
    }
    // The prediction is the intercept where regressors are centred on the query.
    for (int i = lane; i < K; i += WG)
      a[AT(K + 1, i)] = i == 0 ? 1 : ${"0" if centred else "query_z[(size_t)(i - 1) * n_padded + t]"};
    barrier(CLK_LOCAL_MEM_FENCE);
%if penalised:
    // Weights are relative to that of the nearest row: so is the penalty.
    const moment strength = exp(fmin((moment)(2 * thetas[theta]) * nearest[t] * rate[t], (moment)600));
    for (int i = lane; i < K; i += WG)
      for (int j = 0; j <= i; ++j) a[AT(i, j)] += strength * penalty[i * K + j];
    barrier(CLK_LOCAL_MEM_FENCE);
%endif
    const moment doubt = solve(a, scale, K, lane, WG);
    moment inner = a[AT(K, 0)];
%if not centred:
    for (int b = 0; b < RANK; ++b) inner += a[AT(K, b + 1)] * query_z[(size_t)b * n_padded + t];
%endif
    global moment* restrict row = coefficients + ((size_t)theta * n_rows + t) * (COORDINATES + 1);
    for (int d = lane; d < COORDINATES; d += WG) {
      moment slope = 0;
      for (int b = 0; b < RANK; ++b) slope = FUSED(basis[d * RANK + b], a[AT(K, b + 1)], slope);
      slopes[d] = slope * target_scale;
      row[d + 1] = slopes[d];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane == 0) {
      global moment* restrict fit = fits + (size_t)theta * 3 * n_rows + t;
      const moment predicted = target_shift + target_scale * inner;
      moment intercept = predicted;
      for (int d = 0; d < COORDINATES; ++d) intercept -= slopes[d] * points[start + (long)t * step + d * (long)lag];
      row[0] = intercept;
      fit[0] = predicted;
      fit[n_rows] = fmax(sums[2] - 2 * inner * sums[1] + inner * inner * sums[0], (moment)0) / sums[0] * target_scale * target_scale;
      fit[2 * (size_t)n_rows] = doubt;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}
