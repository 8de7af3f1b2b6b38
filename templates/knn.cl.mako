## All k nearest neighbours of delay-embedded states, for several embedding dimensions E in one pass over the library.
##
## The state of row t in dimension E is (x[t], x[t - tau], .., x[t - (E - 1) tau]). The squared distance of two states in
## dimension E is a partial sum of that in dimension E + 1, so a pass serves all dimensions that it is asked for. `dims` are
## these dimensions and `counts` their k; below, s numbers them. A query row is searched in two sweeps and a sort:
##
##   1. bound     knn_bound.mako            finds a bound that the k-th distance does not exceed, from the minima of row groups
##   2. collect   knn_collect_scalar.mako   writes rows within the bound, the candidates, to a buffer; a full buffer is reduced
##                knn_collect_lanes.mako    to its k best candidates, which lowers the bound
##                knn_collect_shared.mako   notes rows in vectors and merges them into sorted lists; it is used with three
##                                          dimensions or more, float32, wg == 1, and buffers that hold k rounded up
##                                          to a multiple of 16
##   3. emit      knn_emit.mako             sorts the remaining candidates by (distance, row), and writes neighbours or weights
##
## Both sweeps compute distances with knn_distances.mako; the buffers are those of clkernels/topk.clh. There is no L x L matrix,
## and the inner loops keep no sorted list. The result has the same bits for all parameters: a sum adds its lags in ascending
## order with one rounding for each, and equal distances are ordered by row (clkernels/order.clh).
##
## Two kinds of work-items
##   lanes == 1   A scalar work-item owns one query row. This suits GPUs.
##   lanes > 1    A work-item owns as many query rows as a vector has lanes. This suits processors. Lane l compares query row
##                t0 + l with library row j + l, because the neighbours of successive rows are often successive rows: the lanes
##                then find their neighbours in the same step, and one vector of the series serves several lags.
##
##   sharers > 1  `sharers` scalar work-items share a query row, where there are too few rows to keep a GPU busy. Each compares
##                the row with every sharers-th row group and step, and has candidates of its own. Sharers of a row lie
##                QUERY_ROWS work-items apart:
##
##                work-item     0  1  2  3  4  5  6  7     sharers = 2, wg = 8
##                query row     0  1  2  3  0  1  2  3     t0 of the work-item is that of the tile plus this
##                part          0  0  0  0  1  1  1  1     part 0 puts the candidates of all parts into one list
##
## Library and query: [series][stride], with row 0 at column `front`
##
##   column   0          front - 1  front                       front + n - 1                stride - 1
##            GAP GAP ..    GAP     x[0]  x[1]  x[2]  ..        x[n - 1]      GAP GAP  ..    GAP
##
##   Missing values are GAP, too. A difference with a gap is so large that no sum which holds it is within a bound. Library rows
##   j_begin to j_end - 1 may be neighbours. Library rows from j_end on are GAP, whatever n is, because steps without tiles and
##   lanes read past j_end without a check. With Tp > 0 a library is therefore another buffer than its query
##   (search/tables.py).
##
## Scratch memory of a work-group (GROUP_SCRATCH numbers). It has GROUP_ROWS = wg * lanes buffers for each dimension: one for each
## query row or, with sharers, for each sharer of a query row
##
##   | dimension 0: 2 * capacities[0] * GROUP_ROWS | dimension 1: 2 * capacities[1] * GROUP_ROWS | ..      | hot rows |
##
##   at first it holds minima of row groups    [minimum][buffer]
##   later it holds candidates, lanes > 1:     [candidate][distances of all buffers, rows of all buffers]
##                        lanes == 1:          [candidate / 4][buffer][distance row, distance row, distance row, distance row]
##   hot rows, for lanes == 1 only:            [place][buffer]
##
##   capacities[s] is the size of a buffer in candidates:
##
##     k + 5 k bound_share / 8 + 8 + unroll, rounded up to a multiple of 4, or more where the minima need it
##
##   The two middle terms are rows within the bound beyond the k best; the last one is a step (capacities of search/plan.py).
##   tests/search/test_scratch.py holds GROUP_SCRATCH together with the plan, and with what kernels/specs/search.py tells other
##   programs.
##
## Tables, one dimension behind another
##
##   neighbours    [library][query row][k]
##   weights       [library][query row / lanes][neighbour][lane], padded to a multiple of four neighbours: one work-item
##                 writes whole vectors, and the lookup may read four neighbours at once
##
## Types and names in capitals that are defined neither here nor in a fragment come from numeric.clh (vectors, sentinels),
## order.clh (order of neighbours), topk.clh (buffers) and weights.clh (weights).
## ---- parameters (python -m pyedmcl.kernels.describe --write) ----
## Given by the problem:
##   dims             embedding dimensions that one pass searches, ascending
##   counts           k of each dimension
##   tau              lag: rows between the values of a state
##   dtype            number type of data and distances: float32 or float64
##   emit             what tables hold: neighbours, with squared distances, or weights
##   masked           a library mask says which rows may be neighbours
##   capacities       entries (distance, row) that the buffer of a query row holds, for each dimension
##   merged           row groups of the library that count as one in the bound, for each dimension
##   sharers          scalar work-items that share a query row, where there are few of these
## Tuned for speed, never changing what is computed (values; default of a processor, of a GPU):
##   lanes            query rows of a work-item; a SIMD register on CPUs (1 4 8 16; 16, 1)
##   wg               work-items of a group; they share a tile (1 32 64 128 256; 1, 128)
##   unroll           library rows per step: independent chains (1 2 4 8 16; 4, 8)
##   tile             library rows staged in local memory; 0: none (0 256 512 1024 2048 4096 8192; 0, 2048)
##   bound_share      one in `bound_share` library tiles (or steps) is swept for the bound (1 2 3 4 8; 1, 1)
##   hot              rows that a scalar work-item notes before it compares them again (32 64 128 256 512; 64, 256)
##   dims_per_pass    dimensions E that share one sweep (3 5 7 10 20 32; 32, 20)
##   groups_per_unit  work-groups per compute unit (2 3 4 6 8 12 16; 4, 6)
##   list_registers   longest sorted list kept in registers (4 8 12 24; 8, 24)
## ---- end of parameters ----
<%namespace name="distances" file="knn_distances.mako"/>
<%namespace name="bound" file="knn_bound.mako"/>
<%namespace name="collect_scalar" file="knn_collect_scalar.mako"/>
<%namespace name="collect_lanes" file="knn_collect_lanes.mako"/>
<%namespace name="collect_shared" file="knn_collect_shared.mako"/>
<%namespace name="emitted" file="knn_emit.mako"/>
<%
from itertools import accumulate

E_max = max(dims)
capacity_before = list(accumulate(capacities, initial=0))
k_strides = [-(-k // 4) * 4 for k in counts] if emit == "weights" else list(counts)
k_before = list(accumulate(k_strides, initial=0))
# Numbers of scratch memory that a query row needs for its list of hot rows, which are stored relative to the tile's first row.
hot_bytes = hot * (2 if tile else 4) if lanes == 1 else 0
hot_numbers = hot_bytes // (8 if dtype == "float64" else 4)

# shared: one list of noted rows for all dimensions. With two dimensions, offering each its own candidates is as fast.
run_length = collect_shared.module.RUN_LENGTH
shared = lanes > 1 and wg == 1 and dtype == "float32" and len(dims) > 2 and all(
    c >= -(-k // run_length) * run_length for c, k in zip(capacities, counts))

def braces(numbers):
    return "{" + ", ".join(map(str, numbers)) + "}"
%>
#define DIMS ${len(dims)}
#define K_MAX ${max(counts)}  // the largest k: the length of lists while they are sorted
#define LIST_IN_REGISTERS ${int(max(counts) <= list_registers)}
#define WG ${wg}
#define GROUP_ROWS ${wg * lanes}  // buffers of a work-group
#define SHARERS ${sharers}
#define QUERY_ROWS ${wg * lanes // sharers}  // query rows of a work-group
#define UNROLL ${unroll}
#define TILE ${tile}
#define HALO ${-(-(E_max - 1) * tau // 4) * 4}  // what the lags of a tile's first rows reach back to, in whole quads
#define SHARE ${bound_share}
#define BOUND_STEP ${unroll if tile else unroll * bound_share}
#define HOT ${hot}
#define HOT_ROW ${"ushort" if tile else "int"}
#define LOW ${4 if bound_share == 1 else 8 * bound_share}
#define GROUP_SCRATCH ((size_t)GROUP_ROWS * ${2 * sum(capacities) + hot_numbers})
#include "topk.clh"
#include "weights.clh"
%if lanes == 1:
typedef PASTE(REAL_NAME, 4) real4;
typedef PASTE(WHOLE_NAME, 4) rowv4;
%endif

constant int DIM_OF[DIMS] = ${braces(dims)};
constant int K_OF[DIMS] = ${braces(counts)};
constant int K_STRIDE[DIMS] = ${braces(k_strides)};
constant int CAPACITY_OF[DIMS] = ${braces(capacities)};
constant int CAPACITY_BEFORE[DIMS] = ${braces(capacity_before[:-1])};
constant int MERGED[DIMS] = ${braces(merged)};
constant int K_BEFORE[DIMS] = ${braces(k_before[:-1])};
#define SLOT_BUFFER(BEFORE) (buffer + (size_t)(2 * GROUP_ROWS) * (BEFORE))  // of a dimension: BEFORE candidates lie before it

${distances.functions()}
%if lanes == 1:
${collect_scalar.functions()}
%elif shared:
${collect_shared.functions()}
%else:
${collect_lanes.functions()}
%endif

// library, query, and out_*, scratch: as shown above. penalty_of: [n_steps], 0 or GAP_SQUARED; read if masked.
// table_rows: query rows that a table has room for, padding included; rows_per_slot: those of all libraries of this launch,
// so that the table of a dimension (a slot) begins K_BEFORE * rows_per_slot numbers behind the first one.
// groups_per_tile, groups_per_round: row groups of the library that the bound forms in a tile, and has room for at once (see
// knn_bound.mako).
// A task is a pair of a library, from first_library on, and a tile of QUERY_ROWS query rows. Its number is
// library_of_launch * n_tiles + tile, where n_tiles counts tiles of query rows. This launch has the tasks task_begin to
// task_end - 1; of n work-groups, group g takes tasks task_begin + g, task_begin + g + n, ...
// exclusion_radius: rows with |t - j| up to it are no neighbours; -1 leaves no row out.
kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void knn(global const real* restrict library, global const real* restrict query, global const real* restrict penalty_of,
         const int library_stride, const int query_stride, const int front, const int n_rows, const int j_begin,
         const int j_end, const int groups_per_tile, const int groups_per_round, const int exclusion_radius,
         const int n_tiles, const int first_library, const int task_begin, const int task_end,
         global int* restrict out_row, global real* restrict out_value, const int table_rows,
         const ulong rows_per_slot, global whole* restrict scratch) {
  // ---- Memory of this work-group and this work-item ----
  const int lane0 = get_local_id(0) * LANES;
  global whole* restrict buffer = scratch + (size_t)get_group_id(0) * GROUP_SCRATCH + LANE_OFFSET;
  global whole* restrict minima = scratch + (size_t)get_group_id(0) * GROUP_SCRATCH + lane0;
%if tile:
  local real xs[TILE + HALO] __attribute__((aligned(32)));
%endif
%if lanes == 1:
  global whole* restrict scratch_end = scratch + ((size_t)get_group_id(0) + 1) * GROUP_SCRATCH;
  global HOT_ROW* restrict hot = (global HOT_ROW*)scratch_end - HOT * WG + lane0;
%endif

%if sharers > 1:
  local int published[WG];  // a number of each work-item that its sharers ask for
  const int part = get_local_id(0) / QUERY_ROWS, row_of_tile = get_local_id(0) % QUERY_ROWS;
%else:
  const int part = 0, row_of_tile = lane0;
%endif

  for (int task = task_begin + get_group_id(0); task < task_end; task += get_num_groups(0)) {
    // ---- The task: query rows t0 to t0 + LANES - 1, and the library whose rows they are compared with ----
    const int library_of_launch = task / n_tiles;
    const int t0 = (task - library_of_launch * n_tiles) * QUERY_ROWS + row_of_tile;
    global const real* restrict x = library + (size_t)(first_library + library_of_launch) * library_stride + front;
    global const real* restrict y = query + (size_t)(first_library + library_of_launch) * query_stride + front;
%if masked:
    global const real* restrict penalty = penalty_of;
%endif
    const int tq = min(t0, n_rows - 1);  // work-items behind the last query row repeat that row
%for e in range(E_max):
    const realv q${e} = LOADV(y + tq - ${e * tau});
%endfor
    // A step has the library rows j to j + UNROLL - 1 (lane l those l further on, for query row t0 + l: all lanes have the same
    // t - j). It may hold an excluded row only if near_begin < j < near_end. UNROLL enters on the lower side alone, because a
    // step reaches upwards from j.
    const int near_begin = t0 - exclusion_radius - UNROLL, near_end = t0 + 1 + exclusion_radius;

    // ---- 1. Bound ----
    ${bound.find()}

    // ---- 2. Collect ----
%if lanes == 1:
    ${collect_scalar.sweep()}
%elif shared:
    ${collect_shared.sweep()}
%else:
    ${collect_lanes.sweep()}
%endif

    // ---- 3. Emit ----
    ${emitted.tables(shared)}
  }
}
