## Candidates of an index -> neighbours, in the arithmetic of the exhaustive search: a query row per work-item.
##
## An index on the host (a tree, lists, a graph) says which rows may be near. Their squared distances are computed here as
## in knn.cl.mako, in ascending order of lags with one rounding per step, ordered by (distance, row), and written as
## neighbours or as simplex weights. A row is "open" if rows that the index left out could still belong to the nearest.
## Sums of several candidates are under way at a time: each is a chain in which every step waits for the one before.
<% chains = 4 %>
#define WEIGHTS ${int(emit == 'weights')}
#include "order.clh"
#include "weights.clh"

// rows: (n, m) candidates of query rows begin to begin + n, -1 for none, in any order; squared: room for (n, m).
// limit: what a row that is no candidate is at least away from each query, squared; NOWHERE if all rows are candidates.
kernel void candidates(global const real* restrict library, global const real* restrict query, const int front, const int tau, const int E,
                       const int begin, const int n, const int m, const int radius, global int* restrict rows,
                       global real* restrict squared, global const real* restrict limit, global uchar* restrict open,
                       global const int* restrict which, const int k, const int stride, const int tile, const int spare,
                       const ulong table, global int* restrict out_row, global real* restrict out_value) {
  const int g = get_global_id(0);
  if (g >= n) return;
  const int t = which[begin + g];
  global const real* restrict x = library + front;
  global const real* restrict q = query + front + t;
  global int* restrict c = rows + (size_t)g * m;
  global real* restrict d = squared + (size_t)g * m;
  int held = 0;
  for (int i = 0; i < m; i += ${chains}) {
%for u in range(chains):
    const int j${u} = ${f"i + {u} < m ? c[i + {u}] : -1" if u else "c[i]"};
    const bool legal${u} = j${u} >= 0 && !(radius >= 0 && abs(t - j${u}) <= (uint)radius);
    global const real* restrict x${u} = x + (legal${u} ? j${u} : 0);
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
    if (legal${u}) {
      INSERT_SCALAR(COMES_BEFORE, 1, held, d, c, a${u}, j${u});
      ++held;
    }
%endfor
  }
  open[g] = !(limit[g] >= NOWHERE || (held >= k && d[k - 1] < limit[g]));
  const int found = min(held, k);
  const size_t at = table + (size_t)(t / tile * tile) * stride + t % tile;
#if WEIGHTS
  const real d_min = found ? sqrt(d[0]) : 0, divisor = SIMPLEX_DIVISOR(d_min);
  real sum = 0;
  for (int i = 0; i < found; ++i) {
    const real w = SIMPLEX_WEIGHT(d[i], d_min, divisor);
    sum += w;
    d[i] = w;
  }
  for (int i = 0; i < stride; ++i) {
    out_row[at + (size_t)i * tile] = i < found ? c[i] : spare;
    out_value[at + (size_t)i * tile] = i < found ? d[i] / sum : 0;
  }
#else
  for (int i = 0; i < k; ++i) {
    out_row[at + i] = i < found ? c[i] : -1;
    out_value[at + i] = i < found ? d[i] : NOWHERE;
  }
#endif
}
