## An order of states in which leaves of consecutive ones are small in space, and the boxes around these leaves.
##
## States are projected onto the first few principal axes, which keeps distances or shortens them. The order is that of a
## k-d tree (Friedman, Bentley & Finkel, ACM TOMS 3, 209, 1977): in each round the states of every node are sorted by their
## place along the node's widest axis, and the node is cut by rank. Leaves are therefore always full, whatever the density. A
## round sorts all nodes at once, by keys (node, place along its axis), digit by digit with a stable counting sort.
##
##   project                 coordinates of the states along the axes
##   for each round:
##     axes_of, keys_of      the widest axis of each node, and the keys
##     for each digit:
##       count, scan, scatter   how often each digit occurs in each part, where its first one goes, and the move there
##   gather                  rows and coordinates in the final order
##   leaf_boxes, upper_boxes   boxes of the leaves, then of their parents, level by level
##
## Only boxes must hold for sure: samples and roundings elsewhere cost speed alone.
##
##   key     | node                     | place along the node's widest axis |        a part is what a group sorts:
##           high bits          place_bits low bits                                   [work-item][EACH consecutive states]
##
## Types and names in capitals that are not defined here come from numeric.clh (numbers, sentinels).
## ---- parameters (python -m pyedmcl.kernels.describe --write) ----
## Given by the problem:
##   dtype  number type of data and distances: float32 or float64
##   axes   principal axes along which states are put in order
##   leaf   states of a leaf
## Tuned for speed, never changing what is computed (values; default of a processor, of a GPU):
##   wg     work-items of a group that sorts a part (1 64 128 256; 1, 128)
##   each   states of a work-item in a pass (4 8 16 32 4096 16384; 4096, 8)
##   bits   bits of a digit; each work-item counts every digit (4 8; 8, 4)
## ---- end of parameters ----
<%
FAN = 16
bins = 1 << bits
%>
#define AXES ${axes}
#define LEAF ${leaf}
#define FAN ${FAN}
#define WG ${wg}
#define EACH ${each}
#define BITS ${bits}
#define BINS ${bins}
#define BOX (2 * AXES * FAN)
// A state's coordinates lie side by side: they are read in ever new orders.
#define AT(i) ((size_t)(i) * (AXES + 1))
#include "numeric.clh"

// ---- Coordinates along the axes, [state][axis], and behind them what rounding may have moved each by ----
// E and tau are arguments, because few instructions depend on them: one program, which is a long one, serves all states.
// For E = 1 the only axis is 1, and centre and rounding are 0: a coordinate is the value itself.
kernel void project(global const real* restrict series, const ulong first, global const int* restrict rows, const int n,
                    const int E, const int tau, const real centre, const real rounding,
                    global const real* restrict basis, global real* restrict coordinates, global int* restrict id) {
  const int i = get_global_id(0);
  if (i >= n) return;
  global const real* restrict x = series + first + rows[i];
  real size = 0, ${", ".join(f"sum{a} = 0" for a in range(axes))};
  for (int e = 0; e < E; ++e) {
    const real v = x[-e * tau] - centre;
    size += fabs(v);
%for a in range(axes):
    sum${a} = FUSED(v, basis[${a} * E + e], sum${a});
%endfor
  }
%for a in range(axes):
  coordinates[AT(i) + ${a}] = sum${a};
%endfor
  coordinates[AT(i) + AXES] = size * rounding;
  id[i] = i;
}

// ---- Keys ----

// The widest axis of each node of 1 << log_size states, judged by some 64 of them, where it begins, and one over its length.
kernel void axes_of(global const real* restrict coordinates, const int n, global const int* restrict id, const int log_size,
                    const int nodes, global int* restrict axis, global real* restrict place) {
  const int node = get_global_id(0);
  if (node >= nodes) return;
  const int begin = node << log_size, end = (int)min((long)begin + (1L << log_size), (long)n);
  const int step = max((end - begin) / 64, 1);
  real low[AXES], high[AXES];
  for (int a = 0; a < AXES; ++a) { low[a] = NOWHERE; high[a] = -NOWHERE; }
  for (int i = begin; i < end; i += step) {
    const int at = id[i];
    for (int a = 0; a < AXES; ++a) {
      const real c = coordinates[AT(at) + a];
      low[a] = MINIMUM(low[a], c);
      high[a] = MAXIMUM(high[a], c);
    }
  }
  int best = 0;
  real widest = high[0] - low[0], from = low[0];
  for (int a = 1; a < AXES; ++a)
    if (high[a] - low[a] > widest) { best = a; widest = high[a] - low[a]; from = low[a]; }
  axis[node] = best;
  place[2 * node] = from;
  place[2 * node + 1] = widest > 0 ? 1 / widest : (real)0;
}

// key = node, place along its axis; on a line the number itself, whose bits then ascend with it.
kernel void keys_of(global const real* restrict coordinates, const int n, global const int* restrict id, const int log_size,
                    const int place_bits, global const int* restrict axis, global const real* restrict place,
                    global uint* restrict key) {
  const int i = get_global_id(0);
  if (i >= n) return;
%if axes == 1:
  const uint number = as_uint((float)coordinates[AT(id[i])]);
  key[i] = number ^ (number >> 31 ? 0xffffffffu : 0x80000000u);
%else:
  const int node = i >> log_size;
  const real c = coordinates[AT(id[i]) + axis[node]];
  real along = (c - place[2 * node]) * place[2 * node + 1];
  along = MINIMUM(MAXIMUM(along, (real)0), (real)0.99999994f);
  const uint steps = (uint)(along * (real)((ulong)1 << place_bits));
  key[i] = (uint)((ulong)node << place_bits) | steps;
%endif
}

// ---- A stable counting sort by one digit of the keys: BITS bits from bit `shift` on ----

// How often each digit occurs in each part, [digit][part]. Laid out so, a running sum over all counts says where the first
// state with a digit in a part goes.
kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void count(global const uint* restrict key, const int n, const int shift, const int parts, global int* restrict counts) {
  const int part = get_group_id(0), me = get_local_id(0);
%if wg == 1:
  int counter[BINS];
  for (int b = 0; b < BINS; ++b) counter[b] = 0;
  const int begin = part * EACH, end = min(begin + EACH, n);
  for (int i = begin; i < end; ++i) ++counter[(key[i] >> shift) & (BINS - 1)];
  for (int b = 0; b < BINS; ++b) counts[(size_t)b * parts + part] = counter[b];
%else:
  local int counter[BINS];
  for (int b = me; b < BINS; b += WG) counter[b] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  const size_t begin = (size_t)part * (WG * EACH);
  for (int u = 0; u < EACH; ++u) {
    const size_t i = begin + u * WG + me;
    if (i < n) atomic_inc(counter + ((key[i] >> shift) & (BINS - 1)));
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int b = me; b < BINS; b += WG) counts[(size_t)b * parts + part] = counter[b];
%endif
}

// Running sums of all counts, in place, by one group of SCAN work-items. A device that refuses large groups is given
// smaller ones step by step, and must get there here, too.
#define SCAN ${256 if wg >= 128 else wg}
kernel __attribute__((reqd_work_group_size(SCAN, 1, 1)))
void scan(global int* restrict counts, const int total) {
  const int me = get_local_id(0), each = (total + SCAN - 1) / SCAN;
  const int begin = min(me * each, total), end = min(begin + each, total);
  int before = 0;
%if wg > 1:
  local int sums[SCAN];
  int own = 0;
  for (int i = begin; i < end; ++i) own += counts[i];
  sums[me] = own;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int reach = 1; reach < SCAN; reach *= 2) {
    const int add = me >= reach ? sums[me - reach] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    sums[me] += add;
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  before = sums[me] - own;
%endif
  for (int i = begin; i < end; ++i) {
    const int c = counts[i];
    counts[i] = before;
    before += c;
  }
}

// Moves states to their places. The sort is stable because a work-item has consecutive states, and knows how many before it
// in the part have the same digit.
kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void scatter(global const uint* restrict key, global const int* restrict id, const int n, const int shift, const int parts,
             global const int* restrict counts, global uint* restrict new_key, global int* restrict new_id) {
  const int part = get_group_id(0), me = get_local_id(0);
%if wg == 1:
  int at[BINS];
  for (int b = 0; b < BINS; ++b) at[b] = counts[(size_t)b * parts + part];
  const int begin = part * EACH, end = min(begin + EACH, n);
  for (int i = begin; i < end; ++i) {
    const uint k = key[i];
    const int to = at[(k >> shift) & (BINS - 1)]++;
    new_key[to] = k;
    new_id[to] = id[i];
  }
%else:
  local int at[BINS * WG];
  for (int b = 0; b < BINS; ++b) at[b * WG + me] = 0;
  const size_t begin = ((size_t)part * WG + me) * EACH;
  uint held[EACH];
  for (int u = 0; u < EACH; ++u)
    if (begin + u < n) {
      held[u] = key[begin + u];
      ++at[((held[u] >> shift) & (BINS - 1)) * WG + me];
    }
  barrier(CLK_LOCAL_MEM_FENCE);
  // Running sums over the work-items, a digit at a time to each.
  for (int b = me; b < BINS; b += WG) {
    int before = counts[(size_t)b * parts + part];
    for (int w = 0; w < WG; ++w) {
      const int c = at[b * WG + w];
      at[b * WG + w] = before;
      before += c;
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int u = 0; u < EACH; ++u)
    if (begin + u < n) {
      const int to = at[((held[u] >> shift) & (BINS - 1)) * WG + me]++;
      new_key[to] = held[u];
      new_id[to] = id[begin + u];
    }
%endif
}

// ---- The result ----

// Rows and coordinates in the new order; behind the last state rows are -1, whose coordinates are gaps.
kernel void gather(global const int* restrict rows, global const int* restrict id, global const real* restrict coordinates,
                   const int n, const int padded, global int* restrict row, global real* restrict ordered) {
  const int i = get_global_id(0);
  if (i >= padded) return;
  const int at = i < n ? id[i] : id[n - 1];
  row[i] = i < n ? rows[at] : -1;
  for (int a = 0; a <= AXES; ++a) ordered[(size_t)a * padded + i] = coordinates[AT(at) + a];
}

// Boxes of leaves, [parent][axis][low, high][child], and the smallest row of each leaf.
kernel void leaf_boxes(global const int* restrict row, global const real* restrict ordered, const int n, const int padded,
                       const int parents, global real* restrict boxes, global int* restrict first_row) {
  const int leaf = get_global_id(0);
  if (leaf >= parents * FAN) return;
  const int begin = min(leaf * LEAF, n), end = min(begin + LEAF, n);
  global real* restrict box = boxes + (size_t)(leaf / FAN) * BOX + leaf % FAN;
  for (int a = 0; a < AXES; ++a) {
    real low = NOWHERE, high = -NOWHERE;
    for (int i = begin; i < end; ++i) {
      const real c = ordered[(size_t)a * padded + i], off = ordered[(size_t)AXES * padded + i];
      low = MINIMUM(low, c - off);
      high = MAXIMUM(high, c + off);
    }
    box[2 * a * FAN] = low;
    box[(2 * a + 1) * FAN] = high;
  }
  int first = 0x7fffffff;
  for (int i = begin; i < end; ++i) first = min(first, row[i]);
  first_row[leaf] = first;
}

// The same one level up: node i's box holds those of the children in parent i below.
kernel void upper_boxes(global real* restrict boxes, global int* restrict first_row, const int below, const int nodes,
                        const int here, const int parents) {
  const int node = get_global_id(0);
  if (node >= parents * FAN) return;
  global real* restrict box = boxes + (size_t)(here + node / FAN) * BOX + node % FAN;
  int first = 0x7fffffff;
  for (int a = 0; a < AXES; ++a) {
    real low = NOWHERE, high = -NOWHERE;
    if (node < nodes) {
      global const real* restrict child = boxes + (size_t)(below + node) * BOX + 2 * a * FAN;
      for (int c = 0; c < FAN; ++c) {
        low = MINIMUM(low, child[c]);
        high = MAXIMUM(high, child[FAN + c]);
      }
    }
    box[2 * a * FAN] = low;
    box[(2 * a + 1) * FAN] = high;
  }
  if (node < nodes)
    for (int c = 0; c < FAN; ++c) first = min(first, first_row[(size_t)(below + node) * FAN + c]);
  first_row[(size_t)here * FAN + node] = first;
}
