## Candidates of an index -> neighbours, in the arithmetic of the exhaustive search: a query row per work-item.
##
## An index on the host (a tree, lists, a graph) says which rows may be near. Their squared distances are computed here as
## in knn_distances.mako, in ascending order of lags with one rounding per step, ordered by (distance, row), and written as
## neighbours or as simplex weights. A row is "open" if rows that the index left out could still belong to the nearest.
## Sums of several candidates are under way at a time: each is a chain in which every step waits for the one before.
##
## A second kernel, tabulate, writes lists of neighbours that a search on the device has found, whose distances are exact
## already, into the same tables. A third one, nothing, fills such lists for rows that are not searched.
##
## Types and names in capitals that are not defined here come from numeric.clh (numbers, sentinels), order.clh (order of
## neighbours, lists) and weights.clh (weights).
## ---- parameters (python -m pyedmcl.kernels.describe --write) ----
## Given by the problem:
##   dtype  number type of data and distances: float32 or float64
##   emit   what tables hold: neighbours, with squared distances, or weights
## ---- end of parameters ----
<% chains = 4 %>
#define WEIGHTS ${int(emit == 'weights')}
#include "order.clh"
#include "weights.clh"

// Writes the neighbours of query row t, of rows c and squared distances d in order, into a table that begins at element
// `table` and has `stride` columns; of `tile` query rows the i-th entries lie side by side. Where there are fewer than k
// neighbours, tables of weights name the row `spare`, with weight 0.
void write_neighbours(global const int* restrict c, global real* restrict d, const int found, const int t, const int k,
                      const int stride, const int tile, const int spare, const ulong table,
                      global int* restrict out_row, global real* restrict out_value) {
  const size_t at = table + (size_t)(t / tile * tile) * stride + t % tile;
#if WEIGHTS
  const real d_min = found ? root(d[0]) : 0;
  const bool at_zero = d_min == 0;
  const real inverse = INVERSE_DISTANCE(d_min, at_zero);
  real sum = 0;
  for (int i = 0; i < found; ++i) {
    const real w = SIMPLEX_WEIGHT(root(d[i]), inverse, at_zero);
    sum += w;
    d[i] = w;
  }
  const real scale = quotient((real)1, found ? sum : (real)1);
  for (int i = 0; i < stride; ++i) {
    out_row[at + (size_t)i * tile] = i < found ? c[i] : spare;
    out_value[at + (size_t)i * tile] = i < found ? d[i] * scale : 0;
  }
#else
  for (int i = 0; i < k; ++i) {
    out_row[at + i] = i < found ? c[i] : -1;
    out_value[at + i] = i < found ? d[i] : NOWHERE;
  }
#endif
}

// library_first, query_first: elements of row 0 of the series.
// rows: (n, m) candidates of query rows begin to begin + n, -1 for none, in any order; squared: room for (n, m).
// limit: what a row that is no candidate is at least away from each query, squared; NOWHERE if all rows are candidates.
kernel void candidates(global const real* restrict library, const ulong library_first, global const real* restrict query,
                       const ulong query_first, const int tau, const int E, const int begin, const int n, const int m,
                       const int exclusion_radius, global int* restrict rows, global real* restrict squared,
                       global const real* restrict limit, global uchar* restrict open, global const int* restrict query_rows,
                       const int k, const int stride, const int tile, const int spare, const ulong table,
                       global int* restrict out_row, global real* restrict out_value) {
  // ---- The query row and its candidates ----
  const int g = get_global_id(0);
  if (g >= n) return;
  const int t = query_rows[begin + g];
  global const real* restrict x = library + library_first;
  global const real* restrict q = query + query_first + t;
  global int* restrict c = rows + (size_t)g * m;
  global real* restrict d = squared + (size_t)g * m;

  // ---- Exact distances, sorted in place: the first `held` entries of c and d ----
  int held = 0;
  for (int i = 0; i < m; i += ${chains}) {
%for u in range(chains):
    const int j${u} = ${f"i + {u} < m ? c[i + {u}] : -1" if u else "c[i]"};
    const bool counts${u} = j${u} >= 0 && !(exclusion_radius >= 0 && abs(t - j${u}) <= (uint)exclusion_radius);
    global const real* restrict x${u} = x + (counts${u} ? j${u} : 0);
    real a${u} = 0;
%endfor
    for (int e = 0; e < E; ++e) {
      const real y = q[-e * tau];
%for u in range(chains):
      const real step${u} = y - x${u}[-e * tau];
      a${u} = FUSED(step${u}, step${u}, a${u});
%endfor
    }
    // Indices return rows nearly in order: an insertion moves few of them. It writes over candidates read already.
%for u in range(chains):
    if (counts${u}) {
      INSERT_SCALAR(COMES_BEFORE, 1, held, d, c, a${u}, j${u});
      ++held;
    }
%endfor
  }
  open[g] = !(limit[g] >= NOWHERE || (held >= k && d[k - 1] < limit[g]));
  write_neighbours(c, d, min(held, k), t, k, stride, tile, spare, table, out_row, out_value);
}

// rows, squared: (n, k) neighbours of query rows 0 to n in order, -1 where there are no more; squared is written over.
kernel void tabulate(global const int* restrict rows, global real* restrict squared, const int n, const int k,
                     const int stride, const int tile, const int spare, const ulong table,
                     global int* restrict out_row, global real* restrict out_value) {
  const int t = get_global_id(0);
  if (t >= n) return;
  global const int* restrict c = rows + (size_t)t * k;
  int found = 0;
  while (found < k && c[found] >= 0) ++found;
  write_neighbours(c, squared + (size_t)t * k, found, t, k, stride, tile, spare, table, out_row, out_value);
}

// query_rows: n query rows that are no states, or not asked for; they get lists of k neighbours that are none.
kernel void nothing(global const int* restrict query_rows, const int n, const int k, global int* restrict out_row,
                    global real* restrict out_value) {
  if (get_global_id(0) >= n) return;
  const size_t at = (size_t)query_rows[get_global_id(0)] * k;
  for (int i = 0; i < k; ++i) {
    out_row[at + i] = -1;
    out_value[at + i] = NOWHERE;
  }
}
