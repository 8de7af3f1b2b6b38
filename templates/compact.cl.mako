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
## independent. The host lets a column have 16 bits where 2 d is at most 2e-5 (engines/compact.py).
## ---- parameters (python -m pyedmcl.kernels.describe --write) ----
## Given by the problem:
##   dtype  number type of data and distances: float32 or float64
## ---- end of parameters ----
#include "division.clh"
#include "compact.clh"

#define PARTS 64  // of the rows; sums of parts are added in their order, so that the same columns are taken on every device

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
