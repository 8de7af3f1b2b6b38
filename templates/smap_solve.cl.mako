## S-map's local fits from their moments: a work-group solves one system after the other.
<%
K = regressors
n_gram = K * (K + 1) // 2
%>
#define LANES 1
#define REAL_BITS ${64 if dtype == 'float64' else 32}
#define FMA_CONTRACT ${int(fma == 'contract')}
#define MIN_SELECT ${int(minimum == 'select')}
#define WG ${wg}
#define K ${K}
#define N_GRAM ${n_gram}
#define ENTRIES ${n_gram + K + 3}
#define ROWS ${rows}
#include "solve.clh"

// moments: [part][tile][theta][ENTRIES][ROWS] of smap. fits: [theta][K + 4][n_rows]: coefficients (the intercept first), the
// bound on the prediction's error in roundings, then the sums of W, W y and W y^2. n_rows is a multiple of ROWS.
%if penalised:
// penalty: [K][K], what is added to the matrix for each unit of W^2 of the nearest row (nearest, rate: from smap_scale).
%endif
kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void smap_solve(global const moment* restrict moments, const int n_parts, const int n_thetas, const int n_rows,
                global const moment* restrict penalty, global const moment* restrict query_z, global const real* restrict nearest,
                global const real* restrict rate, global const real* restrict thetas, global moment* restrict fits) {
  local moment a[N_GRAM + 2 * K + 3];
  local moment scale[K];
  const int lane = get_local_id(0), systems = n_rows * n_thetas;
  for (int system = get_group_id(0); system < systems; system += get_num_groups(0)) {
    const int theta = system / n_rows, t = system - theta * n_rows;
    global const moment* restrict from =
        moments + (((size_t)(t / ROWS) * n_thetas + theta) * ENTRIES) * ROWS + t % ROWS;
    const size_t part_stride = (size_t)n_rows * n_thetas * ENTRIES;
    global moment* restrict fit = fits + (size_t)theta * (K + 4) * n_rows + t;
    for (int i = lane; i < ENTRIES; i += WG) {
      moment sum = from[(size_t)i * ROWS];
      for (int part = 1; part < n_parts; ++part) sum += from[part * part_stride + (size_t)i * ROWS];
      if (i < N_GRAM + K)
        a[i] = sum;
      else
        fit[(size_t)(K + 1 + i - N_GRAM - K) * n_rows] = sum;
    }
    // The prediction is the intercept where regressors are centred on the query.
    for (int i = lane; i < K; i += WG) a[AT(K + 1, i)] = i == 0 ? 1 : ${"0" if centred else "query_z[(size_t)(i - 1) * n_rows + t]"};
    barrier(CLK_LOCAL_MEM_FENCE);
%if penalised:
    // Weights are relative to that of the nearest row: so is the penalty.
    const moment strength = exp(fmin((moment)(2 * thetas[theta]) * nearest[t] * rate[t], (moment)600));
    for (int i = lane; i < K; i += WG)
      for (int j = 0; j <= i; ++j) a[AT(i, j)] += strength * penalty[i * K + j];
    barrier(CLK_LOCAL_MEM_FENCE);
%endif
    const moment doubt = solve(a, scale, K, lane, WG);
    for (int i = lane; i < K; i += WG) fit[(size_t)i * n_rows] = a[AT(K, i)];
    if (lane == 0) fit[(size_t)K * n_rows] = doubt;
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}
