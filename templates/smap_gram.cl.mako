## Maps of S-map, first half: what each row of a library predicts with.
##
## S-map (Sugihara 1994) fits target = c0 + c . z with the weights W = exp(-theta d / mean d) of the rows around row t. The
## prediction is linear in the targets: with A the sum over s of W^2 (1, z_s)(1, z_s)' and A g = (1, z_t),
##
##   prediction at t = sum over s of H_ts y_s          H_ts = W_ts^2 (1, z_s) . g
##
## so that one small system for each row serves all targets. This kernel finds g; smap_map multiplies.
##
##   sweep 1   distance of the nearest row, mean distance
##   sweep 2   weights, and the sums of A: in real for a chunk of rows, the chunks in double
##   solve     A g = (1, z_t) in double, by L D L' of the matrix scaled to a unit diagonal
##
##   rest      what the numbers H that smap_map will have, summed, leave of (1, z_t); solved once more and added to g. It is
##             the error of sums and roundings, most of which this takes back. For groups in which some row is not well
##             conditioned
##
## Regressors are taken around a centre near z_t, as smap_white says. Weights are relative to the nearest row's.
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
K = E + 1
sums = [(a, b) for a in range(K) for b in range(a + 1)]  # (row, column) of the packed lower triangle; 0 is the constant
spelt = E <= 10  # else the sums are arrays: a compiler takes too long over so many names
staged = wg > 1
def value(e):
    return f"w{e}" if e else "w"
%>
#define WG ${wg}
#define E ${E}
#define K ${K}
#define N_SUMS ${len(sums)}
#define COORDINATES ${E}
#define GAPS ${int(gaps)}
#define STATE ${-(-(2 * E + gaps) // 4) * 4}
#define COLUMNS ${2 * E + gaps}
#define CHUNK 64  // library rows whose sums are taken in real
// A pivot below this part of its diagonal is what rounding leaves of the products.
#define LEAST_PIVOT (REAL_BITS == 64 ? 1e-13 : 1e-7)
// Rows with a pivot below this one are too nearly singular for numbers of float32: errors of rho from 5e-6 on were seen.
#define DOUBTFUL 1e-4
// Rows whose pivots are all above this one gain nothing from the refinement.
#define WELL_CONDITIONED 0.05
#define LARGE_REST 2e-3  // of (1, z_t), likewise
#include "smap_map.clh"
#include "moment.clh"

#define AT(i, j) ((i) * ((i) + 1) / 2 + (j))
// Number i of (1, z_t), around the centre of row t0 + l; and what the penalty adds to a place of the matrix.
#define ASKED(l, i)                                                                 \
  ((i) == 0 ? (moment)1                                                             \
            : (moment)states[(size_t)(t0 + (l)) * STATE + E + (i) - 1] - (moment)columns[(size_t)(E + (i) - 1) * n_padded + (l)])
#define PENALTY(i, j) penalty[((size_t)which * E + (i)) * E + (j)]

// Solves a x = x, where a is a packed lower triangle of K rows. Directions without a pivot get zero. Returns the least pivot.
#if K > 8
#define ROLLED _Pragma("unroll 1")  // a compiler takes too long over so many steps
#else
#define ROLLED
#endif
inline moment solve_small(moment* restrict a, moment* restrict x) {
  moment scale[K];
  ROLLED for (int i = 0; i < K; ++i) scale[i] = a[AT(i, i)] > 0 ? 1 / sqrt(a[AT(i, i)]) : (moment)0;
  ROLLED for (int i = 0; i < K; ++i) {
    x[i] *= scale[i];
    ROLLED for (int j = 0; j <= i; ++j) a[AT(i, j)] *= scale[i] * scale[j];
  }
  moment least = 1;
  ROLLED for (int k = 0; k < K; ++k) {
    const moment pivot = a[AT(k, k)];
    if (scale[k] > 0) least = fmin(least, pivot);
    const moment inverse = pivot > LEAST_PIVOT ? 1 / pivot : (moment)0;
    ROLLED for (int i = k + 1; i < K; ++i) {
      const moment l = a[AT(i, k)] * inverse;
      ROLLED for (int j = k + 1; j <= i; ++j) a[AT(i, j)] = FUSED(-l, a[AT(j, k)], a[AT(i, j)]);
      x[i] = FUSED(-l, x[k], x[i]);
    }
    ROLLED for (int i = k + 1; i < K; ++i) a[AT(i, k)] *= inverse;
    a[AT(k, k)] = inverse;
  }
  ROLLED for (int k = K - 1; k >= 0; --k) {
    x[k] *= a[AT(k, k)];
    ROLLED for (int i = k + 1; i < K; ++i) x[k] = FUSED(-a[AT(i, k)], x[i], x[k]);
  }
  for (int i = 0; i < K; ++i) x[i] *= scale[i];
  return least;
}

## All library rows in chunks, with `body` for each, `before` and `after` for each chunk.
<%def name="sweep(before, body, after)">
  for (int jb = 0; jb < n_rows; jb += CHUNK) {
    const int stop = min(CHUNK, n_rows - jb);
%if staged:
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = get_local_id(0); i < stop * STATE; i += WG) staged_states[i] = states[(size_t)jb * STATE + i];
    barrier(CLK_LOCAL_MEM_FENCE);
%endif
    ${before()}
    for (int i = 0; i < stop; ++i) {
      READ_STATE(${"local, staged_states + i * STATE" if staged else "global, states + (size_t)(jb + i) * STATE"});
      STATE_DISTANCE(d);
      const rowv excluded = TOO_NEAR(jb + i);
      ${body()}
    }
    ${after()}
  }
</%def>
<%def name="begin_distances()">
    realv part = 0;
</%def>
<%def name="add_distance()">
%if gaps:
      const rowv out = excluded || (rowv)(state_[2 * E] == 0);
%else:
      const rowv out = excluded;
%endif
      part += CHOOSE(d, (realv)(0), out);
      nearest = CHOOSE(MINIMUM(nearest, d), nearest, out);
      count += CHOOSE((realv)(1), (realv)(0), out);
</%def>
<%def name="end_distances()">
    total += part;
</%def>
<%def name="begin_sums()">
%if spelt:
    realv ${", ".join(f"s{a}_{b} = 0" for a, b in sums)};
%else:
    realv s[N_SUMS];
    for (int i = 0; i < N_SUMS; ++i) s[i] = 0;
%endif
</%def>
<%def name="add_products()">
      const realv w = STATE_COUNTS(STATE_WEIGHT(d), excluded);
%if spelt:
%for e in range(1, K):
      const realv z${e} = state_[E + ${e - 1}] - centre[${e - 1}], w${e} = w * z${e};
%endfor
%for a, b in sums:
%if b == 0:
      s${a}_0 += ${value(a)};
%else:
      s${a}_${b} = FUSED(w${a}, z${b}, s${a}_${b});
%endif
%endfor
%else:
      realv z[K];
      z[0] = 1;
      for (int e = 0; e < E; ++e) z[e + 1] = state_[E + e] - centre[e];
      _Pragma("unroll 1") for (int a = 0; a < K; ++a) {
        const realv wa = w * z[a];
        _Pragma("unroll 1") for (int b = 0; b <= a; ++b) s[AT(a, b)] = FUSED(wa, z[b], s[AT(a, b)]);
      }
%endif
</%def>
<%def name="end_sums()">
%if spelt:
%for i, (a, b) in enumerate(sums):
    sum${i} += CONVERT_MOMENTV(s${a}_${b});
%endfor
%else:
    for (int i = 0; i < N_SUMS; ++i) sum[i] += CONVERT_MOMENTV(s[i]);
%endif
</%def>
<%def name="begin_rest()">
      realv ${", ".join(f"r{a} = 0" for a in range(K))};
</%def>
<%def name="add_rest()">
      PREDICTS_WITH(h, STATE_WEIGHT(d), excluded);
      r0 += h;
%for e in range(1, K):
      r${e} = FUSED(h, state_[E + ${e - 1}] - centre[${e - 1}], r${e});
%endfor
</%def>
<%def name="end_rest()">
%for e in range(K):
      STORE_MOMENTV(LOAD_MOMENTV(left + ${e} * LANES) + CONVERT_MOMENTV(r${e}), left + ${e} * LANES);
%endfor
</%def>

// states, columns: from smap_white. A work-group owns ${wg * lanes} rows of library get_group_id(1),
// from tile first_tile on.
// fits: [library][E + 3][n_padded], g, then the nearest row's distance and the rate of the weights. doubtful: by library, set
// to 1 where some row's system is nearly singular.
%if penalised:
// penalty: [library][E][E], what is added to the matrix for each unit of the squared weight of the nearest row.
%endif
%if slopes:
// records: [library][n_padded][RECORD], for smap_slopes; of rows that are not predicted the inverse is zero.
%endif
kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void smap_gram(global const real* restrict states, global const real* restrict columns, const int n_rows, const int n_padded,
               const int first_tile, const int radius, const real theta, global const moment* restrict penalty, global real* restrict fits,
               global int* restrict doubtful, global real* restrict records) {
%if staged:
  local real staged_states[CHUNK * STATE] __attribute__((aligned(64)));
  local int any_refined;
%endif
  const int which = get_group_id(1), t0 = ((first_tile + get_group_id(0)) * WG + get_local_id(0)) * LANES;
  states += (size_t)which * n_padded * STATE;
  columns += (size_t)which * n_padded * COLUMNS + t0;
  fits += (size_t)which * n_padded * (E + 3) + t0;
  doubtful += which;
  realv q[E], centre[E];
  for (int e = 0; e < E; ++e) {
    q[e] = LOADV(columns + (size_t)e * n_padded);
    centre[e] = LOADV(columns + (size_t)(E + e) * n_padded);
  }
  const rowv upper = FIRST_ROWS + (rowv)(t0 + radius);
  realv nearest = FAR, total = 0, count = 0;
  ${sweep(begin_distances, add_distance, end_distances)}
  const realv rate = STATE_RATE(theta, total, count);

%if spelt:
  momentv ${", ".join(f"sum{i} = 0" for i in range(len(sums)))};
%else:
  momentv sum[N_SUMS];
  for (int i = 0; i < N_SUMS; ++i) sum[i] = 0;
%endif
  ${sweep(begin_sums, add_products, end_sums)}

  // ---- Solve, row by row; then once more for what the numbers that smap_map will have leave of (1, z_t) ----
  moment of_rows[N_SUMS * LANES], left[K * LANES];
  real found[K * LANES];
%if penalised:
  moment strength[LANES];
  {
    real exponents[LANES];
    STOREV(rate * nearest * (real)0.6931471805599453, exponents);
    // The limit keeps exp() finite; beyond it the penalty outweighs all data anyway.
    for (int l = 0; l < LANES; ++l) strength[l] = exp(fmin((moment)exponents[l], (moment)600));
  }
%endif
%for i in range(len(sums)):
  STORE_MOMENTV(${f"sum{i}" if spelt else f"sum[{i}]"}, of_rows + ${i} * LANES);
%endfor
  for (int l = 0; l < LANES; ++l) {
%if penalised:
    for (int i = 0; i < E; ++i)
      for (int j = 0; j <= i; ++j) of_rows[AT(i + 1, j + 1) * LANES + l] += strength[l] * PENALTY(i, j);
%endif
    for (int i = 0; i < K; ++i) left[i * LANES + l] = ASKED(l, i);
  }
  realv g[K];
  for (int i = 0; i < K; ++i) g[i] = 0;
  moment least[LANES];
  int refined = 0;
  _Pragma("unroll 1") for (int again = 0; again < 2; ++again) {
    if (again) {
      for (int i = 0; i < K * LANES; ++i) left[i] = 0;
      ${sweep(begin_rest, add_rest, end_rest)}
      for (int l = 0; l < LANES; ++l)
        for (int i = 0; i < K; ++i) {
          moment rest = ASKED(l, i) - left[i * LANES + l];
%if penalised:
          if (i)
            for (int j = 0; j < E; ++j) rest -= strength[l] * PENALTY(i - 1, j) * (moment)found[(j + 1) * LANES + l];
%endif
          left[i * LANES + l] = rest;
          const int large = !(fabs(rest) < LARGE_REST * fmax(fabs(ASKED(l, i)), (moment)1));
          if (large && least[l] < WELL_CONDITIONED && t0 + l < n_rows) *doubtful = 1;
        }
    }
    _Pragma("unroll 1") for (int l = 0; l < LANES; ++l) {
      moment a[N_SUMS], x[K];
      for (int i = 0; i < N_SUMS; ++i) a[i] = of_rows[i * LANES + l];
      for (int i = 0; i < K; ++i) x[i] = left[i * LANES + l];
      least[l] = solve_small(a, x);
      if (least[l] < DOUBTFUL && t0 + l < n_rows) *doubtful = 1;
      refined = refined || (least[l] < WELL_CONDITIONED && t0 + l < n_rows);
      if (!again || least[l] < WELL_CONDITIONED)
        for (int i = 0; i < K; ++i) found[i * LANES + l] = again ? (real)(found[i * LANES + l] + x[i]) : (real)x[i];
    }
    for (int i = 0; i < K; ++i) g[i] = LOADV(found + i * LANES);
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
  for (int i = 0; i < K; ++i) STOREV(g[i], fits + (size_t)i * n_padded);
  STOREV(nearest, fits + (size_t)K * n_padded);
  STOREV(rate, fits + (size_t)(K + 1) * n_padded);
%if slopes:

  // ---- The inverse of each row's system, but for its first row: a column solves A x = (a unit vector) ----
  real near_of[LANES], rate_of[LANES];
  STOREV(nearest, near_of);
  STOREV(rate, rate_of);
  _Pragma("unroll 1") for (int l = 0; l < LANES; ++l) {
    global real* restrict record = records + ((size_t)which * n_padded + t0 + l) * RECORD;
    _Pragma("unroll 1") for (int e = 0; e < E; ++e) {
      moment a[N_SUMS], x[K];
      for (int i = 0; i < N_SUMS; ++i) a[i] = of_rows[i * LANES + l];
      for (int i = 0; i < K; ++i) x[i] = i == e + 1;
      solve_small(a, x);
      for (int i = 0; i < K; ++i) record[e * K + i] = ${"columns[(size_t)(2 * E) * n_padded + l] > 0 ? (real)x[i] : (real)0" if gaps else "(real)x[i]"};
      record[RECORD_CENTRE + e] = columns[(size_t)(E + e) * n_padded + l];
    }
    record[RECORD_NEAREST] = near_of[l];
    record[RECORD_RATE] = rate_of[l];
  }
%endif
}
