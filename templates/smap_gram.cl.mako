## Maps of S-map, first half: what each row of a library predicts with.
##
## S-map (Sugihara 1994) fits target = c0 + c . z with the weights W = exp(-theta d / mean d) of the rows s around row t. With
##
##   A = sum over s of W_ts^2 (1, z_s)(1, z_s)'        a matrix of K = E + 1 rows, for each row t
##
## the fit's prediction at t is linear in what the rows s lead to:
##
##   prediction at t = sum over s of H_ts y_s          H_ts = W_ts^2 (1, z_s) . g_t          A g_t = (1, z_t)
##
## so that one small system for each row t serves all targets. This kernel finds g; smap_map makes H from it and multiplies.
##
##   sweep 1   distance of the nearest row, and the mean distance: then the weights are known
##   sweep 2   the sums of A
##   solve     A g = (1, z_t), in double
##   sweep 3   what the rounded numbers H leave of (1, z_t): the sum over s of H_ts (1, z_s) would be (1, z_t) exactly. The rest
##             is solved for once more and added to g, which takes back most of the error of sums and roundings. Only for
##             groups in which some row is not well conditioned: it costs a third of all
##   inverse   of A, for mean slopes (smap_slopes), where these are wanted
##
## Who works on what. A work-item has LANES rows t; the rows s pass by, each the same for all of its lanes:
##
##                 library rows s ->    0 1 2 ..  63 | 64 ..            chunks, after which float sums are added in double
##     rows t of   0 .. LANES - 1       work-item 0   lane l: row t0 + l
##     a group     LANES ..             work-item 1   (GPUs: 64 work-items of one lane, which bring each chunk into local memory
##                 ..                                 together; processors: one work-item, whose lanes fill a vector)
##
## In memory, for a library of n_padded rows. What passes by lies row by row, what a lane has of its own lies by columns:
##
##   states    [row s][STATE]       x_0 .. x_(E-1) | z_0 .. z_(E-1) | may it be a neighbour (with gaps only) | padding
##   columns   [COLUMNS][row t]     x_0 .. x_(E-1) | centre, E numbers | is it predicted (with gaps only)
##   fits      [E + 3][row t]       g_0 .. g_E     | distance of the nearest row | rate of the weights
##   records   [row t][RECORD]      see smap_map.clh
##
## Distances are taken between coordinates x, fits are made of regressors z: both come from smap_white, which says why. Below, z is
## always less the centre of the fit, which lies near z_t: (1, z_s - centre), and (1, z_t - centre) on the right-hand side.
## Weights are relative to the nearest row's, so that none underflows; a common factor of all weights changes no fit.
##
## Types and names in capitals that are defined neither here nor in a fragment come from numeric.clh (vectors, sentinels),
## smap_map.clh (states, records), solve_packed.clh (packed matrices) and moment.clh (sums in double).
## ---- parameters (python -m pyedmcl.kernels.describe --write) ----
## Given by the problem:
##   E          embedding dimension: values in a state
##   gaps       a library or target has gaps, so that not all rows count
##   penalised  slopes are penalised (ridge)
##   slopes     the inverse of each row's system is written, for mean slopes
##   dtype      number type of data and distances: float32 or float64
## Tuned for speed, never changing what is computed (values; default of a processor, of a GPU):
##   lanes      rows of a work-item; a SIMD register on CPUs (1 4 8 16; 16, 1)
##   wg         work-items of a group; several share library rows (1 32 64 128; 1, 64)
## ---- end of parameters ----
<%
staged = wg > 1
%>
<%namespace name="sweeps" file="smap_gram_sweeps.mako"/>
#define WG ${wg}
#define E ${E}
#define K ${E + 1}
#define COORDINATES ${E}
#define GAPS ${int(gaps)}
#define STATE ${-(-(2 * E + gaps) // 4) * 4}
#define COLUMNS ${2 * E + gaps}
#define CHUNK 64  // library rows whose sums are taken in real
#define LEAST_PIVOT (REAL_BITS == 64 ? 1e-13 : 1e-7)
// Rows with a pivot below this one are too nearly singular for numbers of float32: errors of rho from 5e-6 on were seen.
#define DOUBTFUL 1e-4
// Rows whose pivots are all above this one gain nothing from the refinement.
#define WELL_CONDITIONED 0.05
#define LARGE_REST 2e-3  // of (1, z_t): more than that left before the refinement is doubtful, too
#include "smap_map.clh"
#include "solve_packed.clh"

// Number i of the right-hand side (1, z_t) of row t0 + l; and what the penalty adds to a place of the matrix.
#define WANTED(l, i)                                                                \
  ((i) == 0 ? (moment)1                                                             \
            : (moment)states[(size_t)(t0 + (l)) * STATE + E + (i) - 1] - (moment)columns[(size_t)(E + (i) - 1) * n_padded + (l)])
#define PENALTY(i, j) penalty[((size_t)library * E + (i)) * E + (j)]

// A work-group owns ${wg * lanes} rows of library get_group_id(1), from tile first_tile on. doubtful: by library, set to 1 where
// some row's system is nearly singular.
%if penalised:
// penalty: [library][E][E], what is added to the matrix for each unit of the squared weight of the nearest row.
%endif
%if slopes:
// records: of rows that are not predicted the inverse is zero.
%endif
kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void smap_gram(global const real* restrict states, global const real* restrict columns, const int n_rows, const int n_padded,
               const int first_tile, const int radius, const real theta, global const moment* restrict penalty, global real* restrict fits,
               global int* restrict doubtful, global real* restrict records) {
%if staged:
  local real staged_states[CHUNK * STATE] __attribute__((aligned(64)));
  local int any_refined;
%endif

  // ---- The rows t of this work-item ----
  const int library = get_group_id(1), t0 = ((first_tile + get_group_id(0)) * WG + get_local_id(0)) * LANES;
  states += (size_t)library * n_padded * STATE;
  columns += (size_t)library * n_padded * COLUMNS + t0;
  fits += (size_t)library * n_padded * (E + 3) + t0;
  doubtful += library;
  realv q[E], centre[E];
  for (int e = 0; e < E; ++e) {
    q[e] = LOADV(columns + (size_t)e * n_padded);
    centre[e] = LOADV(columns + (size_t)(E + e) * n_padded);
  }
  const rowv upper = FIRST_ROWS + (rowv)(t0 + radius);

  // ---- Sweep 1: distances, and so the weights ----
  realv nearest = FAR, total = 0, count = 0;
  ${sweeps.distances()}
  const realv rate = STATE_RATE(theta, total, count);

  // ---- Sweep 2: the systems ----
  ${sweeps.declare_system()}
  ${sweeps.system()}

  // ---- From lanes to rows: number i of row t0 + l lies at [i * LANES + l] ----
  moment system[N_PACKED * LANES], rest[K * LANES];  // what is left of the right-hand side; at first all of it
  real g_of_rows[K * LANES];
%if penalised:
  moment strength[LANES];  // of the penalty, in units of the nearest row's squared weight
  {
    real exponents[LANES];
    STOREV(rate * nearest * (real)0.6931471805599453, exponents);
    // The limit keeps exp() finite; beyond it the penalty outweighs all data anyway.
    for (int l = 0; l < LANES; ++l) strength[l] = exp(fmin((moment)exponents[l], (moment)600));
  }
%endif
  ${sweeps.store_system("system")}
  for (int l = 0; l < LANES; ++l) {
%if penalised:
    for (int i = 0; i < E; ++i)
      for (int j = 0; j <= i; ++j) system[PACKED(i + 1, j + 1) * LANES + l] += strength[l] * PENALTY(i, j);
%endif
    for (int i = 0; i < K; ++i) rest[i * LANES + l] = WANTED(l, i);
  }

  // ---- Solve; then, where it is needed, sweep 3, and solve once more for the rest ----
  realv g[K];
  for (int i = 0; i < K; ++i) g[i] = 0;
  moment least[LANES];  // pivots
  int refined = 0;
  _Pragma("unroll 1") for (int again = 0; again < 2; ++again) {
    if (again) {
      for (int i = 0; i < K * LANES; ++i) rest[i] = 0;
      ${sweeps.predicted()}
      for (int l = 0; l < LANES; ++l)
        for (int i = 0; i < K; ++i) {
          moment left = WANTED(l, i) - rest[i * LANES + l];
%if penalised:
          if (i)
            for (int j = 0; j < E; ++j) left -= strength[l] * PENALTY(i - 1, j) * (moment)g_of_rows[(j + 1) * LANES + l];
%endif
          rest[i * LANES + l] = left;
          const int large = !(fabs(left) < LARGE_REST * fmax(fabs(WANTED(l, i)), (moment)1));
          if (large && least[l] < WELL_CONDITIONED && t0 + l < n_rows) *doubtful = 1;
        }
    }
    _Pragma("unroll 1") for (int l = 0; l < LANES; ++l) {
      moment a[N_PACKED], x[K];
      for (int i = 0; i < N_PACKED; ++i) a[i] = system[i * LANES + l];
      for (int i = 0; i < K; ++i) x[i] = rest[i * LANES + l];
      least[l] = solve_packed(a, x);
      if (least[l] < DOUBTFUL && t0 + l < n_rows) *doubtful = 1;
      refined = refined || (least[l] < WELL_CONDITIONED && t0 + l < n_rows);
      if (!again || least[l] < WELL_CONDITIONED)
        for (int i = 0; i < K; ++i) g_of_rows[i * LANES + l] = again ? (real)(g_of_rows[i * LANES + l] + x[i]) : (real)x[i];
    }
    for (int i = 0; i < K; ++i) g[i] = LOADV(g_of_rows + i * LANES);
    // All rows of a group, or none, go through the library once more; each row takes from it what it would alone.
%if staged:
    if (!again) {
      if (get_local_id(0) == 0) any_refined = 0;
      barrier(CLK_LOCAL_MEM_FENCE);
      if (refined) any_refined = 1;
      barrier(CLK_LOCAL_MEM_FENCE);
      refined = any_refined;
    }
%endif
    if (!refined) break;
  }

  // ---- What smap_map reads ----
  for (int i = 0; i < K; ++i) STOREV(g[i], fits + (size_t)i * n_padded);
  STOREV(nearest, fits + (size_t)K * n_padded);
  STOREV(rate, fits + (size_t)(K + 1) * n_padded);
%if slopes:

  // ---- What smap_slopes reads: the inverse of each system but for its first row; a column solves A x = (a unit vector) ----
  real near_of[LANES], rate_of[LANES];
  STOREV(nearest, near_of);
  STOREV(rate, rate_of);
  _Pragma("unroll 1") for (int l = 0; l < LANES; ++l) {
    global real* restrict record = records + ((size_t)library * n_padded + t0 + l) * RECORD;
    moment a[N_PACKED], scale[K], x[K];
    for (int i = 0; i < N_PACKED; ++i) a[i] = system[i * LANES + l];
    factor_packed(a, scale);
%if gaps:
    const int wanted = columns[(size_t)(2 * E) * n_padded + l] > 0;
%else:
    const int wanted = 1;
%endif
    _Pragma("unroll 1") for (int e = 0; e < E; ++e) {
      for (int i = 0; i < K; ++i) x[i] = i == e + 1;
      solve_factored(a, scale, x, e + 1);
      for (int i = 0; i < K; ++i) record[e * K + i] = wanted ? (real)x[i] : (real)0;
      record[RECORD_CENTRE + e] = columns[(size_t)(E + e) * n_padded + l];
    }
    record[RECORD_NEAREST] = near_of[l];
    record[RECORD_RATE] = rate_of[l];
  }
%endif
}
