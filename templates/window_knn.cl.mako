## The nearest neighbours of all rows of series within each of many windows that overlap, for one embedding dimension.
##
## A pair of rows lies in many windows. Its distance is found once: from a query row t, library rows are looked at outwards, on
## both sides. What is nearest among the rows from t to the end of a window is what was nearest up to its end on the way right;
## the same holds for its begin on the way left; and the neighbours within the window are the nearest of both lists.
##
##   windows       0 |-----------t--|
##                 1    |--------t-----|
##                 2       |-----t--------|
##   way right                   t..|..|..|      the list at the end of each window is kept
##   way left        |..|..|.....t               at its begin it is merged with that
##
## A window of w rows, s rows after the one before, so costs 2 s distances of a row instead of w, and a merger of two lists.
## Distances, their order and weights have the bits of the exhaustive search (knn.cl.mako) of each window by itself.
##
## Types and names in capitals that are not defined here come from numeric.clh (vectors, sentinels), order.clh (order of
## neighbours, lists) and weights.clh (weights).
## ---- parameters (python -m pyedmcl.kernels.describe --write) ----
## Given by the problem:
##   E      embedding dimension: values in a state
##   tau    lag: rows between the values of a state
##   k      number of neighbours
##   lanes  query rows of a work-item; a SIMD register on CPUs
##   dtype  number type of data and distances: float32 or float64
## ---- end of parameters ----
#define K ${k}
#include "order.clh"
#include "weights.clh"
#if LANES == 1
#define TILE_ROWS (rowv)(0)
#else
#define TILE_ROWS (rowv)(${", ".join(map(str, range(lanes)))})
#endif

// Row j of the library may enter a list of those whose (row - t), in the direction of the way, is more than the radius.
<%def name="meet(ahead)">
      {
        realv d = q[0] - x[j], a = d * d;
        for (int e = 1; e < ${E}; ++e) {
          d = q[e] - x[j - e * ${tau}];
          a = FUSED(d, d, a);
        }
        const rowv row = (rowv)(j);
        a = CHOOSE((realv)(NOWHERE), a, (${ahead}) > (rowv)(radius) && a <= bound);
        if (ANYV(a < (realv)(FAR))) {
          INSERT_SORTED(COMES_BEFORE, UNROLL_LIST, 0, K, nearest, rows, a, row);
          bound = MINIMUM(bound, nearest[K - 1]);
        }
      }
</%def>

// series: [library][stride], row 0 at column front, gaps around the data. starts: first row of each window, ascending; a state
// has `lost` rows of its window before it. cover: of each tile of LANES rows the first window that holds one of its states, and
// one past the last. A task is (library, tile of rows), number library * n_tiles + tile.
// Tables of library i of window w are those of place w * n_libraries + i, of rows_of_both places first to last - 1 are written, each
// [table_rows][k_stride], in tiles of `tile` rows (a power of two) neighbour by neighbour; rows are counted from the window's first.
// kept: [group][most windows of a tile][2 K][LANES].
kernel __attribute__((reqd_work_group_size(1, 1, 1)))
void window_knn(global const real* restrict series, const int stride, const int front, global const int* restrict starts,
                const int width, const int lost, const int radius, global const int* restrict cover, const int n_tiles,
                const int n_libraries, const int task_begin, const int task_end, const int first, const int last,
                global int* restrict out_row, global real* restrict out_value, const ulong table_begin, const int table_rows,
                const int k_stride, const int tile, global whole* restrict kept, const int most) {
  kept += (size_t)get_group_id(0) * most * (2 * K * LANES);
  // Neighbouring tiles write the same lines of tables: they are left to one group.
  const int each = (task_end - task_begin + (int)get_num_groups(0) - 1) / (int)get_num_groups(0);
  const int own = task_begin + (int)get_group_id(0) * each;
  for (int task = own; task < min(own + each, task_end); ++task) {
    const int library = task / n_tiles, number = task - library * n_tiles, t0 = number * LANES;
    const int w_begin = cover[2 * number], w_end = cover[2 * number + 1];
    if (w_begin >= w_end) continue;
    global const real* restrict x = series + (size_t)library * stride + front;
    const rowv t = TILE_ROWS + (rowv)(t0);
    realv q[${E}], nearest[K], bound = FAR;
    rowv rows[K];
    for (int e = 0; e < ${E}; ++e) q[e] = LOADV(x + t0 - e * ${tau});

    // ---- To the right: the list at the end of each window ----
    for (int i = 0; i < K; ++i) { nearest[i] = NOWHERE; rows[i] = -1; }
    for (int w = w_begin, j = t0 + 1; w < w_end; ++w) {
      for (const int end = starts[w] + width; j < end; ++j) ${meet("(rowv)(j) - t")}
      global whole* restrict list = kept + (size_t)(w - w_begin) * (2 * K * LANES);
      for (int i = 0; i < K; ++i) {
        STOREV(AS_WHOLEV(nearest[i]), list + i * LANES);
        STOREV(rows[i], list + (K + i) * LANES);
      }
    }

    // ---- To the left: the list at the begin of each window, and what both give together ----
    for (int i = 0; i < K; ++i) { nearest[i] = NOWHERE; rows[i] = -1; }
    bound = FAR;
    for (int w = w_end - 1, j = t0 + LANES - 2; w >= w_begin; --w) {
      const int start = starts[w], begin = start + lost;
      for (; j >= begin; --j) ${meet("t - (rowv)(j)")}
      realv both[K];
      rowv rows_of_both[K];
      for (int i = 0; i < K; ++i) { both[i] = nearest[i]; rows_of_both[i] = rows[i]; }
      global const whole* restrict list = kept + (size_t)(w - w_begin) * (2 * K * LANES);
      for (int i = 0; i < K; ++i) {
        const realv a = AS_REALV(LOADV(list + i * LANES));
        const rowv row = LOADV(list + (K + i) * LANES);
        if (!ANYV(a <= both[K - 1])) break;  // nor is any that follows
        INSERT_SORTED(COMES_BEFORE, UNROLL_LIST, 0, K, both, rows_of_both, a, row);
      }

      // ---- Weights, as knn_emit.mako makes them ----
      const realv d_min = root(both[0]);
      const rowv at_zero = d_min == (realv)(0);
      const realv inverse = INVERSE_DISTANCE(d_min, at_zero);
      realv sum = 0;
      for (int i = 0; i < K; ++i) {
        const realv squared = both[i];
        realv weight = SIMPLEX_WEIGHT(root(squared), inverse, at_zero);
        weight = CHOOSE(weight, (realv)(0), squared >= (realv)(FAR));
        sum += weight;
        both[i] = weight;
      }
      const realv scale = quotient((realv)(1), CHOOSE(sum, (realv)(1), sum == (realv)(0)));
      const int place = w * n_libraries + library - first;
      if (place < 0 || place >= last - first) continue;
      real weights[K * LANES];
      whole found[K * LANES];
      for (int i = 0; i < K; ++i) {
        STOREV(both[i] * scale, weights + i * LANES);
        STOREV(CHOOSE(rows_of_both[i] - (rowv)(start), (rowv)(lost), rows_of_both[i] < (rowv)(0)), found + i * LANES);
      }
      const size_t table = table_begin + (size_t)place * table_rows * k_stride;
      for (int l = max(begin - t0, 0); l < min(start + width - t0, LANES); ++l) {
        const int r = t0 + l - start, within = r & (tile - 1);
        const size_t at = table + (size_t)(r - within) * k_stride + within;
        for (int i = 0; i < K; ++i) {
          out_row[at + i * tile] = (int)found[i * LANES + l];
          out_value[at + i * tile] = weights[i * LANES + l];
        }
      }
    }
  }
}
