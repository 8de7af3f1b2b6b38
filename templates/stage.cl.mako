## Puts raw series into the layouts of the kernels, on the device: the host sends each series once, as it is.
##
##   raw [step][series]  --centre-->         shift[series], exponent[series]   so that magnitudes are at most 1
##                       --stage_targets-->  targets [step][target column]     what the lookup gathers from: a row of many
##                                                                             targets in one read
##                       --stage_series-->   series [series][step]             what the neighbour search reads, with padding
##                                                                             around each series
##                       --widen_series-->  the same in double, from a raw series in single precision, without padding
##
##   rows     [row]           --hide_rows-->      weights of these rows in neighbour tables are 0: nothing is predicted there
##
## NaN becomes GAP everywhere: a finite number too large for data, so that comparing it needs no special case.
## ---- parameters (python -m pyedmcl.kernels.describe --write) ----
## Given by the problem:
##   dtype  number type of data and distances: float32 or float64
## ---- end of parameters ----
#include "numeric.clh"
#define AT_ONCE ${reads_ahead}  // rows of a series

// A work-item finds shift and exponent of series c.
// shift[c] is the mean over the rows that are scored, [scored_from[c], n_scored): a mean over other rows would leave an offset
// in the sums of rho. It is summed as differences from the first value, so that a constant series becomes exactly zero, and
// in parts of 64 rows, so that roundings do not grow with the length. exponent[c] is such that (x - shift) * 2^-exponent has
// magnitude at most 1 in all rows; a power of two adds no rounding.
kernel void centre(global const real* restrict raw, const int n_series, const int n_steps,
                   global const int* restrict scored_from, const int n_scored, global real* restrict shift,
                   global int* restrict exponent) {
  const int c = get_global_id(0);
  if (c >= n_series) return;
  const int scored = scored_from[c];
  real first = NAN, total = 0, low = NOWHERE, high = -NOWHERE;
  int n = 0;
  for (int begin = 0; begin < n_steps; begin += 64) {
    real part = 0;
    // Several rows are read before the first is looked at: they come one after the other else, each from far away on a GPU.
    for (int from = begin; from < min(begin + 64, n_steps); from += AT_ONCE) {
      real read[AT_ONCE];
      _Pragma("unroll") for (int i = 0; i < AT_ONCE; ++i)
        read[i] = from + i < n_steps ? raw[(size_t)(from + i) * n_series + c] : (real)NAN;
      _Pragma("unroll") for (int i = 0; i < AT_ONCE; ++i) {
        const real x = read[i];
        if (isnan(x)) continue;
        low = fmin(low, x);
        high = fmax(high, x);
        if (from + i < scored || from + i >= n_scored) continue;
        if (n++ == 0) first = x;
        part += x - first;
      }
    }
    total += part;
  }
  const real mean = n > 0 ? first + total / n : (real)0;
  const real largest = high >= low ? fmax(fabs(low - mean), fabs(high - mean)) : (real)0;
  int power = 0;
  if (largest > 0) frexp(largest, &power);
  shift[c] = mean;
  exponent[c] = power;
}

// Columns [begin, begin + n_series) of n_all are in raw; each goes, centred, to its column of the targets. Columns and rows
// behind the last are zero: vectors reach into them.
kernel void stage_targets(global const real* restrict raw, const int n_series, const int begin,
                          const int n_all, const int n_steps, global const int* restrict column_of, const int target_stride,
                          global const real* restrict shift, global const int* restrict exponent,
                          global real* restrict targets) {
  const int c = get_global_id(0);
  const size_t t = get_global_id(1);
  if (begin + c >= target_stride) return;
  if (begin + c >= n_all || (c < n_series && t >= n_steps)) targets[t * target_stride + begin + c] = 0;
  if (c >= n_series || t >= n_steps) return;
  const real x = raw[t * n_series + c];
  targets[t * target_stride + column_of[begin + c]] = isnan(x) ? (real)GAP : ldexp(x - shift[c], -exponent[c]);
}

// series[s][front + t] = raw[t][first + s] for t < end, centred on request; GAP elsewhere.
kernel void stage_series(global const real* restrict raw, const int n_series, const int first, const int front, const int end,
                         const int stride, const int centred, global const real* restrict shift,
                         global const int* restrict exponent, global real* restrict series) {
  const int column = get_global_id(0);
  const size_t s = get_global_id(1);
  if (column >= stride) return;
  const int t = column - front;
  real x = GAP;
  if (t >= 0 && t < end) {
    x = raw[(size_t)t * n_series + first + s];
    if (centred) x = ldexp(x - shift[first + s], -exponent[first + s]);
    if (isnan(x)) x = GAP;
  }
  series[s * stride + column] = x;
}

// series[s][t] = raw[t][first + s], not centred, in the precision of this program from single precision; GAP for NaN.
kernel void widen_series(global const float* restrict raw, const int n_series, const int first, const int n_steps,
                         global real* restrict series) {
  const int t = get_global_id(0);
  const size_t s = get_global_id(1);
  if (t >= n_steps) return;
  const real x = raw[(size_t)t * n_series + first + s];
  series[s * n_steps + t] = isnan(x) ? (real)GAP : x;
}

// Query rows of neighbour tables of which the nearest neighbour's weight becomes 0, as that of a row without neighbours is.
// weights: the tables of a dimension from table_begin on, one library after another, each [table_rows][stride], within a tile
// of rows neighbour by neighbour.
kernel void hide_rows(global const int* restrict rows, const int n_rows, const ulong table_begin, const int table_rows,
                      const int stride, const int tile, global real* restrict weights) {
  const int i = get_global_id(0);
  if (i >= n_rows) return;
  const int t = rows[i];
  weights[table_begin + ((size_t)get_global_id(1) * table_rows + t / tile * tile) * stride + t % tile] = 0;
}
