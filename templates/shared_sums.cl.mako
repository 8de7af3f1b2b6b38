## All pairs of delay-embedded rows, SIDE queries times SIDE library rows at a time.
##
## Pairs along a diagonal, (t, j), (t + tau, j + tau), .., share all but two of their squared differences. The sums of m such
## pairs need E + m - 1 squares instead of m * E: what all have in common, then what is to the left and to the right. Nothing
## is ever subtracted, so such a sum is off by roundings alone; it only tells which pairs are worth the exact sum, in the
## order of the exact search (knn.cl.mako), from which lists by (distance, row) are kept.
<%
half = 53 if dtype == 'float64' else 24
slack = (32 + 8 * E) * 2.0 ** -half
span = E + side - 1
%>
#define K ${k}
#define SIDE ${side}
#define TAU ${tau}
#define WG ${wg}
#include "order.clh"
#define TINY ${repr(1e-306) if dtype == 'float64' else '1e-36f'}
#define REACH(bound) CHOOSE((bound) * (real)(1 + ${repr(slack)}${'' if dtype == 'float64' else 'f'}) + (real)TINY, (realv)(-1), (bound) < (realv)(0))

// library_first, query_first: elements of row 0, with gaps before it; may: 1 for rows that may be neighbours, asked: 1 for queries.
// Block number b of queries or library rows: rows b / TAU * TAU * SIDE + b % TAU, and every TAU-th after it.
kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void shared_sums(global const real* restrict library, global const real* restrict query, const ulong library_first, const ulong query_first,
                  global const uchar* restrict may, global const uchar* restrict asked, const int n_query, const int first,
                  const int last, const int exclusion_radius, const int begin,
                  global int* restrict out_row, global real* restrict out_value) {
  const int block = (begin + get_group_id(0)) * (WG * LANES) + get_local_id(0) * LANES;
  int t0[LANES];
  whole wide[LANES];
  for (int l = 0; l < LANES; ++l) {
    const long row = (long)((block + l) / TAU) * (TAU * SIDE) + (block + l) % TAU;
    t0[l] = row < n_query ? (int)row : n_query;  // behind the last row lie gaps
    wide[l] = t0[l];
  }
  const rowv t = LOADV(wide);
  realv y[${span}];
  for (int i = 0; i < ${span}; ++i) {
    real values[LANES];
    for (int l = 0; l < LANES; ++l) values[l] = query[query_first + t0[l] + (i - ${E - 1}) * TAU];
    y[i] = LOADV(values);
  }
  realv nearest[SIDE * K], bound[SIDE], reach[SIDE];
  rowv rows[SIDE * K];
  for (int i = 0; i < SIDE * K; ++i) { nearest[i] = NOWHERE; rows[i] = -1; }
  for (int r = 0; r < SIDE; ++r) {
    real most[LANES];
    for (int l = 0; l < LANES; ++l) {
      const int row = t0[l] + r * TAU;
      most[l] = row < n_query && asked[row] ? (real)FAR : (real)(-1);
    }
    bound[r] = LOADV(most);
    reach[r] = REACH(bound[r]);
  }
  for (int other = first; other < last; ++other) {
    const int j0 = other / TAU * (TAU * SIDE) + other % TAU;
    global const real* restrict from = library + library_first + j0 - ${(E - 1) * tau};
%for i in range(span):
    const real x${i} = from[${i * tau}];
%endfor
    ulong hits = 0;
    realv d;
%for delta in range(1 - side, side):
<%
m = side - abs(delta)
r0, c0 = max(0, -delta), max(0, delta)
%>
    {
%for p in range(m - 1, E):
      d = y[${r0 + p}] - x${c0 + p};
      ${"realv" if p == m - 1 else ""} left${m - 1} ${"= d * d" if p == m - 1 else f"= FUSED(d, d, left{m - 1})"};
%endfor
%for q in range(m - 2, -1, -1):
      d = y[${r0 + q}] - x${c0 + q};
      const realv left${q} = FUSED(d, d, left${q + 1});
%endfor
      const realv sum0 = left0;
%for q in range(1, m):
      d = y[${r0 + E + q - 1}] - x${c0 + E + q - 1};
      const realv right${q} = ${"d * d" if q == 1 else f"FUSED(d, d, right{q - 1})"}, sum${q} = left${q} + right${q};
%endfor
      if (ANYV(${" | ".join(f"(sum{q} <= reach[{r0 + q}])" for q in range(m))})) {
%for q in range(m):
        if (ANYV(sum${q} <= reach[${r0 + q}])) hits |= 1ul << ${(r0 + q) * side + c0 + q};
%endfor
      }
    }
%endfor
    while (hits) {
      const int hit = 63 - (int)clz(hits & -hits), r = hit / SIDE, c = hit % SIDE, j = j0 + c * TAU;
      hits &= hits - 1;
      if (!may[j]) continue;
      realv a = 0;
      for (int e = 0; e < ${E}; ++e) {
        d = y[r + ${E - 1} - e] - from[(c + ${E - 1} - e) * TAU];
        a = e ? FUSED(d, d, a) : d * d;
      }
      const rowv ahead = t + (rowv)(r * TAU) - (rowv)(j);
      a = CHOOSE(a, (realv)(NOWHERE), (ahead <= (rowv)(exclusion_radius)) & (-ahead <= (rowv)(exclusion_radius)));
      a = CHOOSE((realv)(NOWHERE), a, a <= bound[r]);
      if (!ANYV(a < (realv)(NOWHERE))) continue;
      // Rows ascend within a phase of the lag only, so equals are ordered by row.
      realv* restrict list = nearest + r * K;
      rowv* restrict which = rows + r * K;
      const rowv row = j;
      INSERT_SORTED(COMES_BEFORE, ROLL_LIST, 1, K, list, which, a, row);
      bound[r] = MINIMUM(bound[r], list[K - 1]);
      reach[r] = REACH(bound[r]);
    }
  }
  for (int r = 0; r < SIDE; ++r)
    for (int l = 0; l < LANES; ++l) {
      const int row = t0[l] + r * TAU;
      if (row >= n_query) continue;
      for (int i = 0; i < K; ++i) {
        out_row[(size_t)row * K + i] = (int)((const whole*)(rows + r * K + i))[l];
        out_value[(size_t)row * K + i] = ((const real*)(nearest + r * K + i))[l];
      }
    }
}
