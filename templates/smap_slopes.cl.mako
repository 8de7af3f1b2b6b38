## Maps of S-map: what each library row adds to the mean slopes of the fits around all rows.
##
## smap_gram has the system A_t of the fit around each row t, and its inverse. The slopes of that fit are linear in the targets,
## and so is their mean over the rows:
##
##   slopes at t      = sum over s of W_ts^2 (rows 1 to E of the inverse of A_t) (1, z_s - centre_t) y_s
##   n mean slopes    = sum over s of m_s y_s            m_s = sum over t of W_ts^2 (rows 1 to E ...) (1, z_s - centre_t)
##
## so that one sweep over all pairs of rows serves all targets; what is left, m times the targets, is small and done by the host.
## A work-item owns LANES library rows s, and goes through the rows t: real for a chunk of them, double beyond.
## ---- parameters (python -m pyedmcl.kernels.describe --write) ----
## Given by the problem:
##   E      embedding dimension: values in a state
##   gaps   a library or target has gaps, so that not all rows count
##   dtype  number type of data and distances: float32 or float64
## Tuned for speed, never changing what is computed (values; default of a processor, of a GPU):
##   lanes  library rows of a work-item; a SIMD register on CPUs (1 4 8 16; 16, 1)
##   wg     work-items of a group (1 32 64 128; 1, 64)
## ---- end of parameters ----
<%
K = E + 1
unrolled = "unroll" if E <= 10 else "unroll 1"  # a compiler takes too long over so many steps
%>
#define WG ${wg}
#define E ${E}
#define K ${K}
#define COORDINATES ${E}
#define GAPS ${int(gaps)}
#define STATE ${-(-(2 * E + gaps) // 4) * 4}
#define COLUMNS ${2 * E + gaps}
#define CHUNK 64  // rows whose sums are taken in real
#include "smap_map.clh"
#include "moment.clh"

// states, columns: from smap_white; records: from smap_gram, see RECORD in smap_map.clh. A work-group owns ${wg * lanes} rows of
// library get_group_id(1), from tile first_tile on. slopes: [library][E][n_padded], of regressors z; rows that are no
// neighbours get numbers without meaning.
kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void smap_slopes(global const real* restrict states, global const real* restrict columns,
                 global const real* restrict records, const int n_rows, const int n_padded, const int first_tile,
                 const int radius, global moment* restrict slopes) {
  const int library = get_group_id(1), s0 = ((first_tile + get_group_id(0)) * WG + get_local_id(0)) * LANES;
  states += (size_t)library * n_padded * STATE;
  columns += (size_t)library * n_padded * COLUMNS + s0;
  records += (size_t)library * n_padded * RECORD;
  slopes += (size_t)library * n_padded * E + s0;
  realv q[E], z[E];
  momentv sum[E];
  real of_rows[E * LANES];
  for (int l = 0; l < LANES; ++l)
    for (int e = 0; e < E; ++e) of_rows[e * LANES + l] = states[(size_t)(s0 + l) * STATE + E + e];
  for (int e = 0; e < E; ++e) {
    q[e] = LOADV(columns + (size_t)e * n_padded);
    z[e] = LOADV(of_rows + e * LANES);
    sum[e] = 0;
  }
  const rowv upper = FIRST_ROWS + (rowv)(s0 + radius);
  for (int tb = 0; tb < n_rows; tb += CHUNK) {
    const int stop = min(tb + CHUNK, n_rows);
    realv part[E], apart[E];
    for (int e = 0; e < E; ++e) part[e] = 0;
    for (int t = tb; t < stop; ++t) {
      global const real* restrict record = records + (size_t)t * RECORD;
      const realv nearest = record[RECORD_NEAREST], rate = record[RECORD_RATE];
      READ_STATE(global, states + (size_t)t * STATE);
      STATE_DISTANCE(d);
      const realv weight = CHOOSE(STATE_WEIGHT(d), (realv)(0), TOO_NEAR(t));
      _Pragma("unroll") for (int e = 0; e < E; ++e) apart[e] = z[e] - record[RECORD_CENTRE + e];
      _Pragma("${unrolled}") for (int e = 0; e < E; ++e) {
        realv slope = record[e * K];
        _Pragma("unroll") for (int f = 0; f < E; ++f) slope = FUSED((realv)record[e * K + 1 + f], apart[f], slope);
        part[e] = FUSED(weight, slope, part[e]);
      }
    }
    for (int e = 0; e < E; ++e) sum[e] += CONVERT_MOMENTV(part[e]);
  }
  for (int e = 0; e < E; ++e) STORE_MOMENTV(sum[e], slopes + (size_t)e * n_padded);
}
