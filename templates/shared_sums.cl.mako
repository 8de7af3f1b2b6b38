## The k nearest neighbours by comparing all pairs of states, SIDE queries times SIDE library rows at a time.
##
## A pair (t, j) and its neighbour along the diagonal, (t + tau, j + tau), share all but two of their E squared differences.
## The sums of m such pairs need E + m - 1 squares instead of m * E: what all of them have in common, and what lies to the left
## and to the right of it. For E = 4 and m = 3, with the squares along the diagonal numbered 0 to 5:
##
##     squares          0 1 2 3 4 5
##     first pair       x x x x            common: 2 3
##     second pair        x x x x          left:   1 2 3 and 0 1 2 3, each from the one before
##     third pair           x x x x        right:  4 and 4 5, each from the one before
##
## Nothing is ever subtracted, so such a sum is off by roundings alone. It only tells which pairs are worth the exact sum, in
## the order of the exact search (knn_distances.mako), and from exact sums the lists by (distance, row) are kept.
##
##   side    queries of a block, and library rows of a block: rows t, t + tau, .., t + (side - 1) tau
##   span    values that the states of a block reach over, tau apart: E + side - 1
##   reach   what no shared sum of a neighbour exceeds: the bound, and what roundings may add (reach.clh)
##
## Types and names in capitals that are not defined here come from numeric.clh (vectors, sentinels), order.clh (order of
## neighbours, lists) and reach.clh (rounding).
## ---- parameters (python -m pyedmcl.kernels.describe --write) ----
## Given by the problem:
##   E      embedding dimension: values in a state
##   tau    lag: rows between the values of a state
##   k      number of neighbours
##   dtype  number type of data and distances: float32 or float64
##   side   pairs of a diagonal whose sums are taken together, and as many diagonals
## Tuned for speed, never changing what is computed (values; default of a processor, of a GPU):
##   lanes  blocks of queries of a work-item; a SIMD register (1 4 8 16; 16, 1)
##   wg     work-items of a group (1 32 64 128 256; 1, 256)
## ---- end of parameters ----
<%
span = E + side - 1
%>
#define K ${k}
#define SIDE ${side}
#define TAU ${tau}
#define WG ${wg}
#include "order.clh"
#include "reach.clh"

// library_first, query_first: elements of row 0, with gaps around the rows. library_mask: 1 for rows that may be
// neighbours; query_mask: 1 for rows whose neighbours are sought. Block b of queries or library rows begins with row b / TAU * TAU * SIDE + b % TAU, and has every TAU-th row:
//
//   TAU = 2, SIDE = 3     row    0 1 2 3 4 5 | 6 7 8 9 ..
//                         block  0 1 0 1 0 1 | 2 3 2 3 ..
//
// A lane has a block of queries; all blocks of library rows from first to last - 1 are compared with it.
// out_row, out_value: [query][K], rows and squared distances.
kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void shared_sums(global const real* restrict library, global const real* restrict query, const ulong library_first,
                 const ulong query_first, global const uchar* restrict library_mask,
                 global const uchar* restrict query_mask, const int n_query, const int first, const int last, const int exclusion_radius, const int begin,
                 global int* restrict out_row, global real* restrict out_value) {
  // ---- The queries: block by block, one block in each lane ----
  const int block = (begin + get_group_id(0)) * (WG * LANES) + get_local_id(0) * LANES;
  int t0[LANES];
  whole wide[LANES];
  for (int l = 0; l < LANES; ++l) {
    const long row = (long)((block + l) / TAU) * (TAU * SIDE) + (block + l) % TAU;
    t0[l] = row < n_query ? (int)row : n_query;  // behind the last row lie gaps
    wide[l] = t0[l];
  }
  const rowv t = LOADV(wide);

  // ---- Their values, oldest first, and empty lists ----
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
      most[l] = row < n_query && query_mask[row] ? (real)FAR : (real)(-1);
    }
    bound[r] = LOADV(most);
    reach[r] = REACH(bound[r], ${E});
  }

  // ---- Every block of library rows ----
  for (int other = first; other < last; ++other) {
    const int j0 = other / TAU * (TAU * SIDE) + other % TAU;
    global const real* restrict from = library + library_first + j0 - ${(E - 1) * tau};
%for i in range(span):
    const real x${i} = from[${i * tau}];
%endfor
    // Shared sums, diagonal by diagonal: left<q> ends with pair q, right<q> begins behind what all pairs have in common.
    // Bit r * SIDE + c of `hits` says that query r and library row c are worth the exact sum.
    ulong hits = 0;
    realv d;
%for delta in range(1 - side, side):
<%
m = side - abs(delta)  # pairs on the diagonal; the first one is query r0 and library row c0
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

    // Exact sums of these pairs, and their places in the lists.
    while (hits) {
      const int hit = 63 - (int)clz(hits & -hits), r = hit / SIDE, c = hit % SIDE, j = j0 + c * TAU;
      hits &= hits - 1;
      if (!library_mask[j]) continue;
      realv a = 0;
      for (int e = 0; e < ${E}; ++e) {
        d = y[r + ${E - 1} - e] - from[(c + ${E - 1} - e) * TAU];
        a = e ? FUSED(d, d, a) : d * d;
      }
      const rowv ahead = t + (rowv)(r * TAU) - (rowv)(j);
      a = CHOOSE(a, (realv)(NOWHERE), (ahead <= (rowv)(exclusion_radius)) & (-ahead <= (rowv)(exclusion_radius)));
      a = CHOOSE((realv)(NOWHERE), a, a <= bound[r]);
      if (!ANYV(a < (realv)(NOWHERE))) continue;
      // Rows ascend only within a phase of the lag, so the insertion has to compare rows as well.
      realv* restrict list = nearest + r * K;
      rowv* restrict list_rows = rows + r * K;
      const rowv row = j;
      INSERT_SORTED(COMES_BEFORE, ROLL_LIST, 1, K, list, list_rows, a, row);
      bound[r] = MINIMUM(bound[r], list[K - 1]);
      reach[r] = REACH(bound[r], ${E});
    }
  }

  // ---- The tables ----
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
