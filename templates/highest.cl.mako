## The highest rho of several lags, of pairs of a library and a target, and how many surrogates of the target reach it. Targets lie
## in spans of columns: a series, and its surrogates behind it.
##
##   wanted [library][span]  --highest_begin-->  best [library][column]: NaN; rho: MARKED, for a lookup of marked pairs
##   rho of a lag            --highest_keep-->   best; rho: MARKED again, for the next lag
##   best                    --highest_count-->  of each library and span, rho of the series, and counts of its surrogates
##
## So only counts leave the device. The host's rule for them is counts() of pyedmcl/statistics.py.
## ---- parameters (python -m pyedmcl.kernels.describe --write) ----
## Given by the problem:
##   dtype  number type of data and distances: float32 or float64
## ---- end of parameters ----
#include "compact.clh"
#define WG 64
#define IMPOSSIBLE 3  // what stands instead of a rho that cannot be; fmax() keeps it

// span_of: of each column. Pairs that nobody wants are MARKED in best, and 0 in rho. Work-item (column, library).
kernel void highest_begin(global const uchar* restrict wanted, global const int* restrict span_of, const int n_spans,
                          const int width, global real* restrict best, global real* restrict rho) {
  const int column = get_global_id(0);
  const size_t library = get_global_id(1);
  if (column >= width) return;
  const bool asked = wanted[library * n_spans + span_of[column]];
  best[library * width + column] = asked ? (real)NAN : (real)MARKED;
  rho[library * width + column] = asked ? (real)MARKED : (real)0;
}

// most: the largest magnitude that rounding may give a rho. Work-item (column, library).
kernel void highest_keep(const real most, const int width, global real* restrict best, global real* restrict rho) {
  const int column = get_global_id(0);
  const size_t at = (size_t)get_global_id(1) * width + column;
  if (column >= width || best[at] == MARKED) return;
  best[at] = fabs(rho[at]) > most ? (real)IMPOSSIBLE : fmax(best[at], rho[at]);
  rho[at] = MARKED;
}

// span_begins: first column of each span, and the end of the last one. own: rho of the series itself; reached, valid: surrogates
// that have as much, and those that have a rho; nothing counts where the series has none. wrong: not 0 where a rho cannot be.
// Group (span, library).
kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void highest_count(global const uchar* restrict wanted, global const int* restrict span_begins, const int n_spans,
                   const int width, global const real* restrict best, global real* restrict own, global int* restrict reached,
                   global int* restrict valid, global uint* restrict wrong) {
  local int counts[2];
  const int span = get_group_id(0), id = get_local_id(0);
  const size_t library = get_global_id(1), pair = library * n_spans + span;
  const bool asked = wanted[pair];
  const real series = asked ? best[library * width + span_begins[span]] : (real)NAN;
  if (id < 2) counts[id] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (asked) {
    int higher = 0, defined = 0;
    bool impossible = series == IMPOSSIBLE;
    for (int column = span_begins[span] + 1 + id; column < span_begins[span + 1]; column += WG) {
      const real surrogate = best[library * width + column];
      impossible |= surrogate == IMPOSSIBLE;
      if (isnan(surrogate) || isnan(series)) continue;
      ++defined;
      higher += surrogate >= series;
    }
    atomic_add(&counts[0], higher);
    atomic_add(&counts[1], defined);
    if (impossible) *wrong = 1;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (id == 0) {
    own[pair] = series;
    reached[pair] = counts[0];
    valid[pair] = counts[1];
  }
}
