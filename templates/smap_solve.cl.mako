## Solves the weighted least squares problem of every query row and theta of the S-map, and takes the solution back to
## the data's units: prediction, variance of the residuals, and coefficients.
##
## The S-map (Sugihara 1994) fits target = intercept + slopes . state with the weights of the query row. smap.cl.mako has
## summed what the normal equations need, so that this kernel sees no library rows: for each system a packed lower triangle
## of K (K + 1) / 2 products of regressors, K products with the target, and three sums (of weights, of weighted targets, of
## weighted squares of targets).
##
##   moments of one tile of ROWS query rows          the matrix that is solved, in local memory
##   (one row of the table for each entry)
##   [theta][entry][query row of the tile]     ->    triangle of the normal equations   K rows
##                                                   right-hand side (target)           row K
##                                                   right-hand side (query point)      row K + 1
##
## Row K + 1 tells how well the prediction at the query point is determined (`doubt`, in roundings; see solve.clh).
##
## A work-group solves one system at a time and then takes the next one, at a distance of the number of groups. Processors
## take groups of one work-item: a system is too small to be shared there.
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
#define ENTRIES ${n_gram + K + 3}  // triangle, right-hand side, three sums
#define ROWS ${rows}
#include "solve.clh"

// The K-th row of the packed triangle is the right-hand side of the target, the next one that of the query point.
#define TARGET_SIDE K
#define QUERY_SIDE (K + 1)

// moments: [tile][theta][ENTRIES][ROWS], from smap, of n_padded query rows; tiles from n_head on come in n_parts parts, one
// block behind the other, which are added here. points, start, step, lag: the data, as smap_stage has them. query_z,
// nearest, rate, thetas: as in smap. basis: [COORDINATES][RANK], from regressors to coordinates.
// target_shift, target_scale: from the target of the fit to the data's units.
// fits: [theta][3][n_rows], prediction, variance, and the bound on the error of the prediction in roundings.
// coefficients: [theta][n_rows][COORDINATES + 1], intercept and slopes.
%if penalised:
// penalty: [K][K], what is added to the matrix for each unit of the squared weight of the nearest row.
%endif
kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void smap_solve(global const moment* restrict moments, const int n_parts, const int n_head, const int n_thetas,
                const int n_rows, const int n_padded, global const moment* restrict penalty,
                global const moment* restrict points, const long start, const int step, const int lag,
                global const moment* restrict query_z, global const real* restrict nearest,
                global const real* restrict rate, global const real* restrict thetas,
                global const moment* restrict basis, const moment target_shift, const moment target_scale,
                global moment* restrict fits, global moment* restrict coefficients) {
  local moment a[N_GRAM + 2 * K + 3];
  local moment scale[K];
  local moment sums[3];
  local moment slopes[COORDINATES];
  const int lane = get_local_id(0), systems = n_rows * n_thetas;
  for (int system = get_group_id(0); system < systems; system += get_num_groups(0)) {
    const int theta = system / n_rows, t = system - theta * n_rows;

    // ---- Fetch the moments, and add the parts of a tile that several work-groups summed ----
    const int tile = t / ROWS, n_tail = n_padded / ROWS - n_head;
    const size_t tile_stride = (size_t)n_thetas * ENTRIES * ROWS;
    global const moment* restrict first_part = moments + ((size_t)tile * n_thetas + theta) * ENTRIES * ROWS + t % ROWS;
    global const moment* restrict next_parts = first_part + (size_t)n_tail * tile_stride;
    for (int i = lane; i < ENTRIES; i += WG) {
      moment sum = first_part[(size_t)i * ROWS];
      if (tile >= n_head)
        for (int part = 1; part < n_parts; ++part)
          sum += next_parts[(part - 1) * n_tail * tile_stride + (size_t)i * ROWS];
      if (i < N_GRAM + K)
        a[i] = sum;
      else
        sums[i - N_GRAM - K] = sum;
    }
    // Where regressors are centred on the query row, its own regressors are zero and the prediction is the intercept.
    for (int i = lane; i < K; i += WG)
      a[AT(QUERY_SIDE, i)] = i == 0 ? 1 : ${"0" if centred else "query_z[(size_t)(i - 1) * n_padded + t]"};
    barrier(CLK_LOCAL_MEM_FENCE);
%if penalised:
    // Moments are relative to the weight of the nearest row, so the penalty is divided by its square. The limit of 600
    // keeps exp() finite in double precision; beyond it the penalty outweighs all data anyway.
    const moment strength = exp(fmin((moment)(2 * thetas[theta]) * nearest[t] * rate[t], (moment)600));
    for (int i = lane; i < K; i += WG)
      for (int j = 0; j <= i; ++j) a[AT(i, j)] += strength * penalty[i * K + j];
    barrier(CLK_LOCAL_MEM_FENCE);
%endif

    // ---- Solve; afterwards row TARGET_SIDE holds the solution ----
    const moment doubt = solve(a, scale, K, lane, WG);
    moment inner = a[AT(TARGET_SIDE, 0)];  // the prediction, in the units of the fit
%if not centred:
    for (int b = 0; b < RANK; ++b) inner += a[AT(TARGET_SIDE, b + 1)] * query_z[(size_t)b * n_padded + t];
%endif

    // ---- Back to the data's units ----
    global moment* restrict row = coefficients + ((size_t)theta * n_rows + t) * (COORDINATES + 1);
    for (int d = lane; d < COORDINATES; d += WG) {
      moment slope = 0;
      for (int b = 0; b < RANK; ++b) slope = FUSED(basis[d * RANK + b], a[AT(TARGET_SIDE, b + 1)], slope);
      slopes[d] = slope * target_scale;
      row[d + 1] = slopes[d];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane == 0) {
      global moment* restrict fit = fits + (size_t)theta * 3 * n_rows + t;
      const moment predicted = target_shift + target_scale * inner;
      moment intercept = predicted;
      for (int d = 0; d < COORDINATES; ++d) intercept -= slopes[d] * points[start + (long)t * step + d * (long)lag];
      // Weighted mean of (target - prediction)^2, from the three sums; rounding may take it below zero.
      const moment squares = fmax(sums[2] - 2 * inner * sums[1] + inner * inner * sums[0], (moment)0);
      row[0] = intercept;
      fit[0] = predicted;
      fit[n_rows] = squares / sums[0] * target_scale * target_scale;
      fit[2 * (size_t)n_rows] = doubt;
    }
    barrier(CLK_LOCAL_MEM_FENCE);  // the next system overwrites what work-item 0 has just read
  }
}
