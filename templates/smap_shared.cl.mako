## S-map's moments for many regressors: a work-group keeps the sums of a tile of query rows, as a matrix product does.
##
## They are the moments of smap.cl.mako, whose W (weight), v (regressors) and y (target) these are. The sums over library rows j
## of W_tj^2 (v_j v_j') are a product of the squared weights (queries x library) with the products of regressors (library x
## pairs), none of which is ever stored: both factors are made for a few library rows at a time in local memory, and a work-item
## adds up a rectangle of query rows by sums in registers. Regressors are not centred on the query here, for then the products
## would differ for each; rows whose sums lose too much by that are noticed by smap_solve and done by smap.
##
## In names, q counts along query rows and p along sums: a work-group has lanes_q x lanes_p work-items, and a work-item rq query
## rows and at most rp sums of each. Of the work-items that run in lockstep, sub_p lie side by side along the sums.
##
## On matrix units (clkernels/matrix_units_double.clh) half of the work-items weigh the next tile while the others multiply this
## one: smap_shared_units.mako. Sums are added in the same order, with the same bits.
##
## Types and names in capitals that are defined neither here nor in a fragment come from numeric.clh (numbers, sentinels),
## smap.clh (near rows), weights.clh (weights) and matrix_units_double.clh.
## ---- parameters (python -m pyedmcl.kernels.describe --write) ----
## Given by the problem:
##   coordinates   coordinates of a state
##   regressors    regressors of a fit, the intercept among them
##   limited       a fit takes the nearest rows only, a number of them
##   matrix_units  products are made on matrix units
##   dtype         number type of data and distances: float32 or float64
## Tuned for speed, never changing what is computed (values; default of a processor, of a GPU):
##   wg            work-items of a group (64 128 256; 64, 256)
##   lanes_p       work-items along the sums of a query row (8 16 32; 32, 32)
##   sub_p         of these, how many among 32 that run in lockstep (4 8 16 32; 32, 8)
##   rq            query rows of a work-item (2 4 8; 4, 8)
##   rp            sums of a work-item per query row, at most (4 6 8; 8, 8)
##   tile          library rows at a time in local memory (8 16 32; 16, 16)
##   steps         library rows whose sums are unrolled (1 2 4; 1, 2)
##   parts         parts of the library for a last, small wave (1 2 4 8 16; 2, 16)
## ---- end of parameters ----
<%namespace name="units" file="smap_shared_units.mako"/>
<%
K = regressors
sums = K * (K + 1) // 2 + K  # pairs of regressors, and each regressor with the target
entries = sums + 3  # of a moment: these, and the sums of W, W y and W y^2
lanes_q = wg // lanes_p
blocks = -(-sums // (lanes_p * rp))
own_sums = -(-sums // (blocks * lanes_p * 2)) * 2  # of a work-item per query row
width = lanes_p * own_sums  # sums of a block
rows = lanes_q * rq  # query rows of a tile
slices = wg // rows  # work-items that weigh library rows for the same query row
near_stride = -(-coordinates // 4) * 4
bundle_size = min(wg, 32)  # work-items that run in lockstep
sub = 4 if matrix_units else min(sub_p, lanes_p, bundle_size)  # of these, along the sums
# Products of regressors are shared out: a work-item makes those of product_columns sums, for one in product_slots library
# rows of the tile.
product_columns = -(-width // wg)
product_slots = max(wg // width, 1)
# With matrix units tiles lie in several places in turn, and strides keep the numbers that a unit reads at once in different banks.
value_stride = next(n for n in range(K + 1, K + 17) if n % 16 in (4, 12)) if matrix_units else K + 1
weight_stride = rows + 4 if matrix_units else rows
value_places, weight_places = (3, 2) if matrix_units else (1, 1)
sixteens, eights = rq // 2, own_sums // 2  # products of a unit, each of 16 rows by 8 sums
at_once = min(4, tile // slices) if slices else 1  # weights that are under way together
# A work-item holds its share of n numbers in variables with these numbers at the end of their names.
def loads(n):
    return range(-(-n // wg))
%>
#define COORDINATES ${coordinates}
#define WG ${wg}
#define TILE ${tile}
#define VALUES ${K + 1}
#define VALUE_STRIDE ${value_stride}
#define VALUE_PLACE ${tile * value_stride}
#define NEAR_PLACE ${tile * near_stride}
#define WEIGHT_STRIDE ${weight_stride}
#define WEIGHT_PLACE ${tile * weight_stride}
#define WIDTH ${width}
#define ROWS ${rows}
#define SLICES ${slices}
#define ENTRIES ${entries}
#define SUMS ${sums}
#define PAIRS ${K * (K + 1) // 2}
#define BLOCKS ${blocks}
#include "smap.clh"
#include "moment.clh"
%if matrix_units:
#include "matrix_units_double.clh"
%endif

// ---- Indices ----
//
// The regressors whose products sum number i adds up: (first, second) with first <= second of the packed triangle, then each
// regressor with the target, which is number K. 0 is the constant. Sums behind the last one are not used.
// By arithmetic, not from a table: PoCL 5 reads wrong numbers from a table in constant memory here.
inline int second_regressor(const int i) {
  if (i >= PAIRS) return i < SUMS ? ${K} : 0;
  const int b = (int)((sqrt(8.0f * i + 1.0f) - 1.0f) / 2);  // the root may be rounded across an integer
  return b - (b * (b + 1) / 2 > i) + ((b + 1) * (b + 2) / 2 <= i);
}
inline int first_regressor(const int i, const int second) {
  return i < PAIRS ? i - second * (second + 1) / 2 : i < SUMS ? i - PAIRS : 0;
}

## ---- The library tile ----
##
## What a work-item will put into local memory for the tile that begins at `start`; loaded early, so that it arrives in time.
<%def name="fetch(start)">
%for i in loads(tile * (K + 1)):
  {
    const int at = lid + ${i} * WG, j = at / VALUES, b = at - j * VALUES, row = ${start} + j;
    value${i} = j >= TILE || row >= j_end ? 0 : b == 0 ? 1 : regressors[(size_t)row * (VALUES - 1) + b - 1];
  }
%endfor
%for i in loads(tile * near_stride):
  {
    const int at = lid + ${i} * WG, row = ${start} + at / NEAR_STRIDE;
    near${i} = at >= TILE * NEAR_STRIDE || row >= j_end ? 0 : library[(size_t)${start} * NEAR_STRIDE + at];
  }
%endfor
  near_row = lid < TILE && ${start} + lid < j_end ? library_rows[${start} + lid] : 0;
</%def>

## Puts what fetch has loaded into `tile_place`, one of the places in local memory that hold a tile.
<%def name="keep(tile_place)">
%for i in loads(tile * (K + 1)):
    {
      const int at = lid + ${i} * WG;
      if (at < TILE * VALUES) values[${tile_place} * VALUE_PLACE + ${"at / VALUES * VALUE_STRIDE + at % VALUES" if matrix_units else "at"}] = value${i};
    }
%endfor
%for i in loads(tile * near_stride):
    if (lid + ${i} * WG < TILE * NEAR_STRIDE) near[${tile_place} * NEAR_PLACE + lid + ${i} * WG] = near${i};
%endfor
    if (lid < TILE) near_rows[${tile_place} * TILE + lid] = near_row;
</%def>

## ---- Weights ----
##
## Squared weights of the tile that begins at `start`, which lies in `tile_place`, go to `weight_place`, one of the places for them.
<%def name="weigh(start, tile_place, weight_place)">
    for (int j = slice; j < TILE; j += SLICES) {
      moment w = 0;
      if (j < j_end - ${start}) {
        SQUARED_DISTANCE(squared, local, near + ${tile_place} * NEAR_PLACE + j * NEAR_STRIDE);
        const int row = near_rows[${tile_place} * TILE + j];
        const rowv excluded = TOO_NEAR(row)${" || BEYOND(squared, row)" if limited else ""};
        w = CHOOSE(SMAP_WEIGHT(sqrt(squared), nearest, slope), (realv)(0), excluded);
        const moment y = values[${tile_place} * VALUE_PLACE + j * VALUE_STRIDE + VALUES - 1], wy = w * y;
        sum_w += w;
        sum_wy += wy;
        sum_wyy = FUSED(wy, y, sum_wyy);
      }
      weights[${weight_place} * WEIGHT_PLACE + j * WEIGHT_STRIDE + lane] = w * w;
    }
</%def>

// Arguments and layouts are smap's, but query_z is never read, since regressors are not centred. A task is (theta, part of the
// library, tile of queries, block of sums).
kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void smap_shared(global const real* restrict query, global const whole* restrict query_rows, const int query_stride,
                 global const real* restrict library, global const int* restrict library_rows,
                 global const moment* restrict regressors, global const moment* restrict query_z, const int n_library,
                 const int radius, global const real* restrict nearest_of, global const real* restrict rate_of,
                 global const real* restrict squared_of, global const whole* restrict row_of,
                 global const real* restrict thetas, const int n_thetas, const int n_parts, const int first_tile,
                 const int n_tiles, const int n_slots, const int task_begin, global moment* restrict moments) {
  local real near[${value_places} * NEAR_PLACE] __attribute__((aligned(32)));
  local int near_rows[${value_places} * TILE];
  local moment values[${value_places} * VALUE_PLACE];
  local moment weights[${weight_places} * WEIGHT_PLACE] __attribute__((aligned(32)));  // squared; at the end, sums to be joined
%if matrix_units:
  local real of_rows[COORDINATES * ROWS];  // what q holds elsewhere: products take the registers
%else:
  local moment products[TILE * WIDTH] __attribute__((aligned(32)));
%endif
  int task = task_begin + get_group_id(0);
  const int block = task % BLOCKS;
  task /= BLOCKS;
  const int theta = task / (n_parts * n_tiles);
  task -= theta * n_parts * n_tiles;
  const int part = task / n_tiles, tile = task - part * n_tiles;
  const int j_begin = (int)((long)n_library * part / n_parts), j_end = (int)((long)n_library * (part + 1) / n_parts);
  const int lid = get_local_id(0);

  // ---- Indices of this work-item ----
  // For weights a work-item keeps to one query row. For sums it has pairs of rows and pairs of columns; those that run in
  // lockstep form a rectangle of ${sub} by ${bundle_size // sub}, so that they read few different values.
  const int lane = lid % ROWS, slice = lid / ROWS, t0 = (first_tile + tile) * ROWS + lane;
  const int bundle = lid / ${bundle_size}, of_bundle = lid % ${bundle_size};
  const int column = 2 * (bundle % ${lanes_p // sub} * ${sub} + of_bundle % ${sub});
%if matrix_units:
  const int row0 = bundle / ${lanes_p // sub} * 16 + of_bundle / 4;
  for (int e = slice; e < COORDINATES; e += SLICES) of_rows[e * ROWS + lane] = query[(size_t)e * query_stride + t0];
%else:
  const int row0 = 2 * (bundle / ${lanes_p // sub} * ${bundle_size // sub} + of_bundle / ${sub});
  realv q[COORDINATES];
  _Pragma("unroll") for (int e = 0; e < COORDINATES; ++e) q[e] = query[(size_t)e * query_stride + t0];
%endif
  const rowv upper = query_rows[t0];
  const realv nearest = nearest_of[t0], slope = rate_of[t0] * thetas[theta];
%if limited:
  const realv limit_squared = squared_of[t0];
  const rowv limit_row = row_of[t0];
%endif
  // Which regressors a work-item multiplies.
%if matrix_units:
%for e in range(eights):
  const int column${e} = block * WIDTH + column - 2 * (of_bundle % 4) + of_bundle / 4 + ${e * 2 * lanes_p};
  const int second${e} = second_regressor(column${e}), first${e} = first_regressor(column${e}, second${e});
%endfor
%else:
  const int slot = lid / ${min(width, wg)}, mine = lid % ${min(width, wg)};
%for i in range(product_columns):
  const int column${i} = mine + ${i} * WG;
  const int second${i} = column${i} < WIDTH ? second_regressor(block * WIDTH + column${i}) : 0;
  const int first${i} = column${i} < WIDTH ? first_regressor(block * WIDTH + column${i}, second${i}) : 0;
%endfor
%endif
  // ---- Sums over the library, tile by tile: weights, products of regressors, and sums of both ----
  moment sum_w = 0, sum_wy = 0, sum_wyy = 0;
%for r in range(rq):
  moment ${", ".join(f"s{r}_{i} = 0" for i in range(own_sums))};
%endfor
  moment ${", ".join(f"value{i}" for i in loads(tile * (K + 1)))};
  real ${", ".join(f"near{i}" for i in loads(tile * near_stride))};
  int near_row;
  ${fetch("j_begin")}

%if matrix_units:
  ${keep(0)}
  ${fetch("(j_begin + TILE)")}
  barrier(CLK_LOCAL_MEM_FENCE);
  ${units.weigh("j_begin", 0, 0, at_once)}
  const int late = SAME_FOR_ALL(lid / (WG / 2));  // whether a work-item multiplies first, then weighs
  int now = 0, next = 1, turn = 0;  // the places of this tile and of the next one, and that of this tile's weights
  for (int jt = j_begin; jt < j_end; jt += TILE) {
    ${keep("next")}
    ${fetch("(jt + 2 * TILE)")}
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll 1
    for (int step = 0; step < 2; ++step)
      if (step == late) {
        ${units.weigh("(jt + TILE)", "next", "(turn ^ 1)", at_once)}
      } else {
        ${units.multiply("now", "turn", sixteens, eights, 2 * lanes_q)}
      }
    now = next;
    next = next == 2 ? 0 : next + 1;
    turn ^= 1;
  }
%else:
  for (int jt = j_begin; jt < j_end; jt += TILE) {
    barrier(CLK_LOCAL_MEM_FENCE);
    ${keep(0)}
    ${fetch("(jt + TILE)")}
    barrier(CLK_LOCAL_MEM_FENCE);
    if (slot < ${product_slots})
      for (int j = slot; j < TILE; j += ${product_slots}) {
        local const moment* restrict v = values + j * VALUE_STRIDE;
%for i in range(product_columns):
        if (column${i} < WIDTH) products[j * WIDTH + column${i}] = v[first${i}] * v[second${i}];
%endfor
      }
    ${weigh("jt", 0, 0)}
    barrier(CLK_LOCAL_MEM_FENCE);
#pragma unroll ${steps}
    for (int j = 0; j < TILE; ++j) {
%for r in range(0, rq, 2):
      const double2 w${r} = *(local const double2*)(weights + j * WEIGHT_STRIDE + row0 + ${r * lanes_q});
%endfor
%for i in range(0, own_sums, 2):
      const double2 p${i} = *(local const double2*)(products + j * WIDTH + column + ${i * lanes_p});
%endfor
%for r in range(rq):
%for i in range(own_sums):
      s${r}_${i} = FUSED(w${r // 2 * 2}.s${r % 2}, p${i // 2 * 2}.s${i % 2}, s${r}_${i});
%endfor
%endfor
    }
  }
%endif
  // ---- Result ----
  const size_t to_slot = part == 0 ? first_tile + tile : n_slots + (size_t)(part - 1) * n_tiles + tile;
  global moment* restrict out = moments + (to_slot * n_thetas + theta) * ENTRIES * ROWS;
%for i in range(own_sums):
  if (block * WIDTH + column + ${i // 2 * 2 * lanes_p + i % 2} < SUMS) {
    global moment* restrict to = out + (size_t)(block * WIDTH + column + ${i // 2 * 2 * lanes_p + i % 2}) * ROWS + row0;
%for r in range(rq):
    to[${r // 2 * 2 * lanes_q + r % 2 * (8 if matrix_units else 1)}] = s${r}_${i};
%endfor
  }
%endfor
  // The sums of W are spread over the slices. They are joined where the weights were.
  if (block == 0) {
%for k, name in enumerate(("sum_w", "sum_wy", "sum_wyy")):
    barrier(CLK_LOCAL_MEM_FENCE);
    weights[slice * ROWS + lane] = ${name};
    barrier(CLK_LOCAL_MEM_FENCE);
    if (slice == 0) {
      for (int s = 1; s < SLICES; ++s) ${name} += weights[s * ROWS + lane];
      out[(size_t)(SUMS + ${k}) * ROWS + lane] = ${name};
    }
%endfor
  }
}
