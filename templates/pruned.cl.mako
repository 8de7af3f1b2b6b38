## The k nearest neighbours of delay-embedded states by a walk through boxes of states (pruned_order.cl.mako).
##
## Friedman, Bentley & Finkel (ACM TOMS 3, 209, 1977) search a k-d tree for one query. Here a work-group walks once for the
## WG * LANES queries that it owns, which lie side by side in space:
##
##   * It walks down from the root, nearest child first and then the child's siblings in the tree's own order of nearness,
##     so that the first leaf is next to the queries and gives a bound.
##   * A child is entered, and a leaf computed, where some query's distance to its box is within that query's reach.
##   * The states of a leaf are compared with all queries, in the arithmetic of the exact search (knn_distances.mako), and
##     lists are kept by (distance, row).
##
## Boxes hold what rounding may have moved, and `reach` allows for the rounding of both sums (reach.clh): no neighbour and
## no tie is lost.
##
##   tree, from level 0 up                              boxes of a parent's FAN children, [axis][low, high][child]
##     level 1   parent 0      parent 1     ..            axis 0:  low of child 0, 1, ..  | high of child 0, 1, ..
##     level 0   parents of FAN leaves                    axis 1:  ..
##     leaves    LEAF states each, consecutive          levels lie one behind another, the lowest first
##
## Types and names in capitals that are defined neither here nor in a fragment come from numeric.clh (vectors, sentinels),
## order.clh (order of neighbours, lists) and reach.clh (rounding).
## ---- parameters (python -m pyedmcl.kernels.describe --write) ----
## Given by the problem:
##   E               embedding dimension: values in a state
##   tau             lag: rows between the values of a state
##   k               number of neighbours
##   dtype           number type of data and distances: float32 or float64
##   axes            principal axes along which states are put in order
##   excluding       rows near in time are no neighbours of each other (exclusion radius)
## Tuned for speed, never changing what is computed (values; default of a processor, of a GPU):
##   lanes           queries of a work-item; a SIMD register on CPUs (1 4 8 16; 16, 1)
##   wg              work-items of a group; they walk together (1 32 64 128; 1, 32)
##   leaf            states of a leaf; smaller ones prune more (8 16 32 64; 16, 16)
##   unroll          library rows per step: independent chains (2 4 8; 4, 4)
##   list_registers  longest list unrolled in registers (4 8 12 24; 24, 24)
## ---- end of parameters ----
<% FAN = 16 %>
<%namespace name="least" file="least.mako"/>
#define K ${k}
#define AXES ${axes}
#define LEAF ${leaf}
#define FAN ${FAN}
#define WG ${wg}
#define LEVELS 8  // at most: 16^8 leaves
#define BOX (2 * AXES * FAN)  // numbers that describe the children of a parent
#include "order.clh"
#include "reach.clh"
## Long lists stay in memory, where an insertion ends as soon as no lane has anything to move.
%if k <= list_registers:
#define UNROLL_K UNROLL_LIST
#define IN_MEMORY 0
%else:
#define UNROLL_K ROLL_LIST
#define IN_MEMORY 1
%endif

## s: the square of a query's distance to the box of child c, from below; 0 inside the box.
<%def name="to_box(c)">
        realv s = 0, gap;
%for a in range(axes):
        gap = MAXIMUM(box[${2 * a} * FAN + ${c}] - above${a}, below${a} - box[${2 * a + 1} * FAN + ${c}]);
        gap = MAXIMUM(gap, (realv)(0));
        s = FUSED(gap, gap, s);
%endfor
</%def>

// library_first, query_first: elements of row 0, with gaps before it. library_row, query_row: rows in the order in space, -1
// behind the last one. query_at: coordinates in this order, [axis][place], and behind them what rounding may have moved them
// by. first_row: the smallest row below each child. Groups take tiles of queries begin + group * step.
// out_row, out_value: [n_query][K], rows and squared distances. visited: leaves that each tile has computed; it stops after
// most_leaves of them, because a probe need not go on where pruning does not pay.
kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void pruned(global const real* restrict library, global const real* restrict query, const ulong library_first,
            const ulong query_first, global const int* restrict library_row, const int n_library,
            global const real* restrict boxes, global const int* restrict first_row,
            global const int* restrict query_row, global const real* restrict query_at, const int n_padded,
            const int exclusion_radius, const int begin, const int step, const int most_leaves,
            global int* restrict out_row, global real* restrict out_value, global int* restrict visited) {
  const int tile = begin + get_group_id(0) * step;
  const int me = get_local_id(0);
  const size_t place = (size_t)tile * (WG * LANES) + me * LANES;
  global const real* restrict x = library + library_first;
%if wg > 1:
  // What the group agrees upon. There are three copies, used in rotation: while one is read, the next may already be written
  // and the one after it is cleared, so that one barrier for each agreement is enough.
  local uint wanted[3];
  local int start_of[3];
  int copy = 0;
  if (me < 3) wanted[me] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
%endif

  // ---- The tree: where the parents of each level begin; the top level's only parent is the root ----
  int offset[LEVELS], top = 0;
  offset[0] = 0;
  for (int nodes = ((n_library + LEAF - 1) / LEAF + FAN - 1) / FAN; nodes > 1; nodes = (nodes + FAN - 1) / FAN) {
    offset[top + 1] = offset[top] + nodes;
    ++top;
  }

  // ---- The queries: rows, states, and where they are along the axes (between below and above) ----
  int own[LANES];
  realv ${", ".join(f"q{e}" for e in range(E))};
%if lanes == 1:
  own[0] = query_row[place];
  rowv t = own[0];
  {
    global const real* restrict y = query + query_first + own[0];
%for e in range(E):
    q${e} = y[${-e * tau}];
%endfor
  }
%else:
  rowv t;
  {
    real y[LANES];
    whole wide[LANES];
    for (int l = 0; l < LANES; ++l) {
      own[l] = query_row[place + l];
      wide[l] = own[l];
    }
    t = LOADV(wide);
%for e in range(E):
    for (int l = 0; l < LANES; ++l) y[l] = query[query_first + own[l] - ${e * tau}];
    q${e} = LOADV(y);
%endfor
  }
%endif
  const realv error = LOADV(query_at + (size_t)AXES * n_padded + place);
%for a in range(axes):
  const realv middle${a} = LOADV(query_at + (size_t)${a} * n_padded + place);
  const realv above${a} = middle${a} + error, below${a} = middle${a} - error;
%endfor

  // ---- Empty lists ----
  realv nearest[K];
  rowv rows[K];
  UNROLL_K for (int i = 0; i < K; ++i) { nearest[i] = NOWHERE; rows[i] = -1; }
  // What a candidate must not exceed; nothing is below -1 (places behind the last query).
  const realv most = CHOOSE((realv)(FAR), (realv)(-1), t < (rowv)(0));
  realv bound = most, reach = most;

  // ---- The walk. At each level: the parent, the child to begin with, and which children are still to be entered ----
  uint pending[LEVELS];
  int parent[LEVELS], start[LEVELS];
  int level = top, leaves = 0;
  bool entering = true;
  parent[top] = 0;
  while (true) {
    if (entering) {
      // Which children are within some query's reach, and which one is nearest to the first query.
      global const real* restrict box = boxes + (size_t)(offset[level] + parent[level]) * BOX;
      global const int* restrict first = first_row + (size_t)(offset[level] + parent[level]) * FAN;
      uint mask = 0;
      int nearest_child = 0;
      real least = NOWHERE;
      for (int c = 0; c < FAN; ++c) {
        ${to_box("c")}
        const rowv hopeless = ONLY_SMALLER_ROWS(bound, rows[K - 1], (rowv)(first[c]));
        const rowv want = (s <= reach) & (hopeless == (rowv)(0));
        if (ANYV(want)) mask |= 1u << c;
        const real of_first = ${"s" if lanes == 1 else "s.s0"};
        if (of_first < least) { least = of_first; nearest_child = c; }
      }
%if wg > 1:
      if (mask) atomic_or(wanted + copy, mask);
      if (me == 0) start_of[copy] = nearest_child;
      barrier(CLK_LOCAL_MEM_FENCE);
      mask = wanted[copy];
      nearest_child = start_of[copy];
      copy = copy == 2 ? 0 : copy + 1;
      if (me == 0) wanted[copy == 2 ? 0 : copy + 1] = 0;
%endif
      // Bit i is child nearest_child ^ i. A parent's children are the leaves of a binary tree of four levels, where numbers that
      // differ in low bits only are close relatives: siblings come first.
      uint reordered = 0;
      for (int i = 0; i < FAN; ++i) reordered |= ((mask >> (nearest_child ^ i)) & 1u) << i;
      pending[level] = reordered;
      start[level] = nearest_child;
      entering = false;
    }
    // Up where nothing is left, else down to the next child.
    if (!pending[level]) {
      if (++level > top) break;
      continue;
    }
    const uint bits = pending[level];
    const int child = start[level] ^ (31 - (int)clz(bits & -bits));
    pending[level] = bits & (bits - 1);
    const int node = parent[level] * FAN + child;
    if (level > 0) {
      parent[--level] = node;
      entering = true;
      continue;
    }

    // ---- A leaf: is it still within reach, now that bounds have sunk? ----
    {
      global const real* restrict box = boxes + (size_t)parent[0] * BOX;
      ${to_box("child")}
      const rowv hopeless = ONLY_SMALLER_ROWS(bound, rows[K - 1], (rowv)(first_row[node]));
      const rowv want = (s <= reach) & (hopeless == (rowv)(0));
%if wg > 1:
      if (want) wanted[copy] = 1;
      barrier(CLK_LOCAL_MEM_FENCE);
      const bool skip = !wanted[copy];
      copy = copy == 2 ? 0 : copy + 1;
      if (me == 0) wanted[copy == 2 ? 0 : copy + 1] = 0;
      if (skip) continue;
%else:
      if (!ANYV(want)) continue;
%endif
    }
    if (++leaves > most_leaves) break;

    // ---- Its states against all queries ----
    global const int* restrict candidates = library_row + (size_t)node * LEAF;
    for (int c = 0; c < LEAF; c += ${unroll}) {
%for u in range(unroll):
      const int j${u} = candidates[c + ${u}];
      global const real* restrict x${u} = x + j${u};
%endfor
      realv d, ${", ".join(f"a{u}" for u in range(unroll))};
%for e in range(E):
%for u in range(unroll):
      d = q${e} - x${u}[${-e * tau}]; a${u} = ${f"FUSED(d, d, a{u})" if e else "d * d"};
%endfor
%endfor
      // Few steps hold a neighbour, and fewer one that is excluded.
      if (!ANYV(${least.of(f"a{u}" for u in range(unroll))} <= bound)) continue;
%for u in range(unroll):
      if (ANYV(a${u} <= bound)) {
%if excluding:
        a${u} = CHOOSE(a${u}, (realv)(NOWHERE), (t - (rowv)(j${u}) <= (rowv)(exclusion_radius)) &
                                                ((rowv)(j${u}) - t <= (rowv)(exclusion_radius)));
%endif
        a${u} = CHOOSE((realv)(NOWHERE), a${u}, a${u} <= bound);
        INSERT_SORTED(COMES_BEFORE, UNROLL_K, IN_MEMORY, K, nearest, rows, a${u}, (rowv)(j${u}));
        bound = MINIMUM(nearest[K - 1], most);
      }
%endfor
    }
    reach = REACH(bound, ${E});
  }

  // ---- The tables ----
  if (me == 0) visited[tile] = leaves;
%if lanes == 1:
  if (own[0] >= 0) {
    global int* restrict to_row = out_row + (size_t)own[0] * K;
    global real* restrict to_value = out_value + (size_t)own[0] * K;
    UNROLL_K for (int i = 0; i < K; ++i) { to_row[i] = rows[i]; to_value[i] = nearest[i]; }
  }
%else:
  for (int l = 0; l < LANES; ++l) {
    if (own[l] < 0) continue;
    global int* restrict to_row = out_row + (size_t)own[l] * K;
    global real* restrict to_value = out_value + (size_t)own[l] * K;
    for (int i = 0; i < K; ++i) {
      to_row[i] = (int)((const whole*)(rows + i))[l];
      to_value[i] = ((const real*)(nearest + i))[l];
    }
  }
%endif
}
