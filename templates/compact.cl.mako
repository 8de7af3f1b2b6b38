## Puts the targets of a map into half the bytes, for lookups whose rho may err by 2e-5 (compact.clh says how a number lies in
## 16 bits).
##
##   targets [step][column]  --compact_parts-->  least, largest, sum and sum of squares of each part of the rows
##                           --compact_scales--> low, scale and error of each column
##                           --compact-->        codes [step][column]
##
## A column is shifted and scaled so that its range becomes [0.5, 1.9999]; rho knows nothing of shift and scale. Rounding moves a
## number by up to h = range / 98,304. What that does to rho is estimated by d = 5.0e-5 * range / sqrt(S), where S is the sum of
## squares of what is predicted around its mean: six standard deviations, were the roundings of predictions and observations
## independent. The host lets a column have 16 bits where 2 d is at most 2e-5 (engines/targets.py).
##
## They are not independent where a library has few states, as an exactly periodic one: its predictions are made of few rows
## again and again, whose roundings then do not average.
##
##   neighbour tables  --compact_used-->  used [library][row], counted in parts  --compact_repeats-->  repeats [library]
##
## repeats is n times the sum of squared weights that the rows of a library have as neighbours, in parts of their squared sum: 1
## where all rows are used alike, n / m where m of them are. Where d * sqrt(repeats) passes 2e-5, compact_mark has the pair
## looked up again.
##
## Types and names in capitals that are not defined here come from numeric.clh (numbers, sentinels) and compact.clh (16 bits).
## ---- parameters (python -m pyedmcl.kernels.describe --write) ----
## Given by the problem:
##   dtype          number type of data and distances: float32 or float64
##   column_parts   parts of a column's rows whose sums are made side by side
##   library_parts  parts of a library's query rows that are counted side by side
##   most_ratio     square of what 16 bits may change rho by, in parts of the estimate's factor
## ---- end of parameters ----
#include "division.clh"
#include "compact.clh"

#define PARTS ${column_parts}  // of the rows; sums of parts are added in their order, so that the same columns are taken on every device

// Work-item (column, part). parts: [4][PARTS][target_stride]. Only rows first .. end - 1 of the targets are predicted.
kernel void compact_parts(global const real* restrict targets, const int target_stride, const int n_steps, const int first,
                          const int end, global real* restrict parts) {
  const int c = get_global_id(0), part = get_global_id(1);
  if (c >= target_stride) return;
  const int rows = (n_steps + PARTS - 1) / PARTS, begin = part * rows, stop = min(begin + rows, n_steps);
  real low = NOWHERE, high = -NOWHERE, sum = 0, squares = 0;
  for (int t = begin; t < stop; ++t) {
    const real x = targets[(size_t)t * target_stride + c];
    low = MINIMUM(low, x);
    high = MAXIMUM(high, x);
    if (t >= first && t < end) {
      sum += x;
      squares = FUSED(x, x, squares);
    }
  }
  const size_t at = (size_t)part * target_stride + c, next = (size_t)PARTS * target_stride;
  parts[at] = low;
  parts[at + next] = high;
  parts[at + 2 * next] = sum;
  parts[at + 3 * next] = squares;
}

// Work-item c. scales: [3][target_stride], the number in [0.5, 1.9999] that 0 becomes, the factor, and range^2 / S, which is NaN
// or infinite for a column that does not vary.
kernel void compact_scales(global const real* restrict parts, const int target_stride, const int n_scored,
                           global real* restrict scales) {
  const int c = get_global_id(0);
  if (c >= target_stride) return;
  const size_t next = (size_t)PARTS * target_stride;
  real low = NOWHERE, high = -NOWHERE, sum = 0, squares = 0;
  for (int part = 0; part < PARTS; ++part) {
    const size_t at = (size_t)part * target_stride + c;
    low = MINIMUM(low, parts[at]);
    high = MAXIMUM(high, parts[at + next]);
    sum += parts[at + 2 * next];
    squares += parts[at + 3 * next];
  }
  const real range = high - low;
  const real around = FUSED(-quotient(sum, (real)max(n_scored, 1)), sum, squares);
  const real scale = range > 0 ? quotient((real)LITERAL(1.4999), range) : (real)0;
  scales[c] = FUSED(-low, scale, (real)LITERAL(0.5));
  scales[target_stride + c] = scale;
  scales[2 * target_stride + c] = range > 0 && around > 0 ? quotient(range * range, around) : (real)INFINITY;
}

// Work-item (column, row). codes: [rows][target_stride]
kernel void compact(global const real* restrict targets, const int target_stride, global const real* restrict scales,
                    global ushort* restrict codes) {
  const int c = get_global_id(0);
  const size_t at = get_global_id(1) * target_stride + c;
  if (c >= target_stride) return;
  const real x = FUSED(targets[at], scales[target_stride + c], scales[c]);
  codes[at] = ENCODED(MAXIMUM(MINIMUM(x, (real)LITERAL(1.9999)), (real)LITERAL(0.5)));
}

#define LANES_OF_A_LIBRARY ${library_parts}
#define NEAREST 4     // neighbours that are counted: they have most of the weight
#define UNITS 64      // of a weight: whole numbers, whose sums do not depend on the order

// Work-item (row, library): nothing is used yet.
kernel void compact_clear(global int* restrict used, const int n_rows) {
  const int row = get_global_id(0);
  if (row < n_rows) used[get_global_id(1) * n_rows + row] = 0;
}

// Work-item (lane, library): the query rows t_begin + lane, and every LANES_OF_A_LIBRARY-th from there on. Tables are those of
// the lookup. parts: [library][lane][2], sum of squares of what rows are used, and sum.
kernel void compact_used(global const int* restrict rows, global const real* restrict weights, const ulong table_begin,
                         const int table_rows, const int k, const int stride, const int tile, const int t_begin,
                         const int t_end, const int n_rows, global int* restrict used, global ulong* restrict parts) {
  const int lane = get_global_id(0);
  const size_t library = get_global_id(1);
  if (lane >= LANES_OF_A_LIBRARY) return;
  ulong squares = 0, sum = 0;
  for (int t = t_begin + lane; t < t_end; t += LANES_OF_A_LIBRARY) {
    const size_t at = table_begin + (library * table_rows + t / tile * tile) * stride + t % tile;
    for (int i = 0; i < min(k, NEAREST); ++i) {
      const int more = (int)FUSED(weights[at + (size_t)i * tile], (real)UNITS, (real)LITERAL(0.5));
      if (more <= 0) continue;
      const int before = atomic_add(used + library * n_rows + rows[at + (size_t)i * tile], more);
      squares += (ulong)more * (2 * (ulong)before + more);  // the difference of two squares
      sum += more;
    }
  }
  parts[(library * LANES_OF_A_LIBRARY + lane) * 2] = squares;
  parts[(library * LANES_OF_A_LIBRARY + lane) * 2 + 1] = sum;
}

// Work-item: a library.
kernel void compact_repeats(global const ulong* restrict parts, const int n_libraries, const int n_predicted,
                            global real* restrict repeats) {
  const int library = get_global_id(0);
  if (library >= n_libraries) return;
  ulong squares = 0, sum = 0;
  for (int i = 0; i < LANES_OF_A_LIBRARY; ++i) {
    squares += parts[((size_t)library * LANES_OF_A_LIBRARY + i) * 2];
    sum += parts[((size_t)library * LANES_OF_A_LIBRARY + i) * 2 + 1];
  }
  const real whole = (real)sum;
  repeats[library] = sum > 0 ? quotient((real)squares * (real)n_predicted, whole * whole) : (real)n_predicted;
}

#define MOST_RATIO ${"%.9g" % most_ratio}f  // of repeats * range^2 / S

// Work-item (column, library) of a launch of the lookup.
kernel void compact_mark(global const real* restrict scales, const int target_stride, const int column_begin,
                         const int column_end, global const int* restrict target_of, global const real* restrict repeats,
                         const int first_library, const int rho_stride, global real* restrict rho) {
  const int c = column_begin + (int)get_global_id(0);
  if (c >= column_end) return;
  const size_t library = get_global_id(1);
  if (!(repeats[library] * scales[2 * target_stride + c] <= MOST_RATIO))
    rho[(first_library + library) * rho_stride + target_of[c]] = MARKED;
}
