## Recurrence quantification of overlapping windows along a series: distances that windows share are evaluated once.
##
## Windows of `size` points cover a band of the matrix along its main diagonal. Each window is a square in it:
##
##      0 0 0 . .          0: cells of the first window alone
##      0 # # 1 .          1: of the second one alone, which begins `step` = 1 further
##      0 # # 1 .          #: of both
##      . 1 1 1 .
##
##   1. column_bits, diagonal_bits   Every cell of the band becomes a bit, twice: along columns (for vertical lines) and
##                                   along diagonals (from the main one on; the matrix is symmetric).
##   2. recurrence_windows           A group counts the runs of a window: it begins at bit `start` of a row of bits.
##
## A cell is the compared distance of pyedmcl.recurrence.problem: terms joined in ascending order, no fused operations.
##
## Specialisation
##   m, step, stride   coordinate e of point t lies at t * stride + e * step, e < m
##   metric, dtype     how points are compared, and in what precision
##   strict            a distance equal to a limit does not recur
## Tunables
##   wg                work-items of a group that makes bits: a word each
##   counting_wg       work-items that count the lines of a window
##
## Types and names in capitals that are not defined here come from metric.clh (distances) and column_runs.clh (runs).
## ---- parameters (python -m pyedmcl.kernels.describe --write) ----
## Given by the problem:
##   m            coordinates of a point
##   step         numbers from one coordinate of a point to the next
##   stride       numbers from one point to the next
##   metric       distance of two points: a row of pyedmcl/recurrence/arguments.py
##   dtype        number type of data and distances: float32 or float64
##   strict       a cell is recurrent below the radius, not at it
## Tuned for speed, never changing what is computed (values; default of a processor, of a GPU):
##   wg           work-items of a group that evaluates cells (8 16 32 64 128 256; 16, 64)
##   counting_wg  work-items that count a window's lines (1 32 64 128 256; 1, 128)
## ---- end of parameters ----
<%
looped = m > 32  # more coordinates are not written out, but read in a loop, which compiles as fast for any number
%>
#define UNFUSED  // a cell is a sum of products that are rounded one by one
#define METRIC ${metric}
#include "column_runs.clh"
#include "metric.clh"
%if looped:
#include "coordinates.clh"
%endif

## The coordinates of a point.
<%def name="point(name, at)">
%if looped:
  global const real* restrict ${name} = x + (size_t)(${at}) * ${stride};
%else:
%for e in range(m):
  const real ${name}${e} = x[(size_t)(${at}) * ${stride} + ${e * step}];
%endfor
%endif
</%def>

## recurs: whether the cell of the point y* and the point at is recurrent.
<%def name="cell(at)">
    real s = 0;
%if looped:
    global const real* restrict other = x + (size_t)(${at}) * ${stride};
    EACH_COORDINATE(e, ${m}) {
      const real d = y[(size_t)e * ${step}] - other[(size_t)e * ${step}];
      const real q = TERM(d);
      s = JOIN_OR_NAN(s, q);
    }
%else:
%for e in range(m):
    {
      const real d = y${e} - x[(size_t)(${at}) * ${stride} + ${e * step}];
      const real q = TERM(d);
      s = JOIN_OR_NAN(s, q);
    }
%endfor
%endif
    const uint recurs = s ${"<" if strict else "<="} outer && s ${">" if strict else ">="} inner;
</%def>

// ---- 1. Bits
//
// x has the n points of this part of the series. columns[c * words + w], bit b: cell (32 w + b, c), for the words that hold
// cells with |row - column| < reach; cells with |row - column| < dropped are white.
kernel __attribute__((reqd_work_group_size(${wg}, 1, 1)))
void column_bits(global const real* restrict x, global uint* restrict columns, const int n, const int words,
                 const int reach, const int dropped, const real inner, const real outer, const int word_begin) {
  const int c = get_global_id(0);
  const int w = max(c - reach + 1, 0) / 32 + word_begin + (int)get_global_id(1);
  if (c >= n || w >= words || 32 * w > c + reach - 1) return;
${point("y", "c")}
  uint word = 0;
  const int end = min(32, n - 32 * w);
  for (int b = 0; b < end; ++b) {
    const int r = 32 * w + b;
${cell("r")}
    const int apart = r > c ? r - c : c - r;
    word |= (recurs & (uint)(apart >= dropped)) << b;
  }
  columns[(size_t)c * words + w] = word;
}

// diagonals[k * words + w], bit b: cell (32 w + b, 32 w + b + k), k < reach; white where k < dropped.
kernel __attribute__((reqd_work_group_size(${wg}, 1, 1)))
void diagonal_bits(global const real* restrict x, global uint* restrict diagonals, const int n, const int words,
                   const int reach, const int dropped, const real inner, const real outer, const int word_begin) {
  const int k = get_global_id(0), w = word_begin + get_global_id(1);
  if (k >= reach) return;
  uint word = 0;
  const int end = k < dropped ? 0 : min(32, n - k - 32 * w);
  for (int b = 0; b < end; ++b) {
    const int i = 32 * w + b;
${point("y", "i")}
${cell("i + k")}
    word |= recurs << b;
  }
  diagonals[(size_t)k * words + w] = word;
}

// ---- 2. Lines

// 32 cells from bit p on; a row of bits ends with a spare word.
static uint cells_at(global const uint* restrict bits, const int p) {
  const int shift = p & 31;
  const uint low = bits[p >> 5] >> shift;
  return shift ? low | bits[(p >> 5) + 1] << (32 - shift) : low;
}

%if counting_wg > 1:
#define COUNT(bin, weight) atomic_add(&(bin), weight)
%else:
#define COUNT(bin, weight) ((bin) += (weight))
%endif

// A group walks the lines of a window: each work-item takes every ${counting_wg}-th column, and then diagonal. An edge
// is a cell that differs from the one before; a run of one colour ends at each.
//
// Window g covers points g * step to g * step + size - 1. Of each window:
//   histograms     [diagonal, vertical, white, white border][size + 1], which start at zero
//   per_column     recurrent cells of each column, [size]
//   per_diagonal   of each diagonal from the main one on, [size]
//   sums           for each work-item the sums of pyedmcl.recurrence.counts.Counts: period, its count, gap, its count
kernel __attribute__((reqd_work_group_size(${counting_wg}, 1, 1)))
void recurrence_windows(global const uint* restrict columns, global const uint* restrict diagonals,
                        global uint* restrict histograms, global uint* restrict per_column,
                        global uint* restrict per_diagonal, global ulong* restrict sums, const int words,
                        const int size, const int step, const int theiler,
                        const int first_window) {
  const int g = first_window + get_group_id(0), lane = get_local_id(0), start = g * step;
  global uint* restrict diagonal = histograms + (size_t)g * 4 * (size + 1);
  global uint* restrict vertical = diagonal + (size + 1);
  global uint* restrict white = vertical + (size + 1);
  global uint* restrict border = white + (size + 1);
  ulong period = 0, periods = 0, gap = 0, gaps = 0;
  for (int c = lane; c < size; c += ${counting_wg}) {
    global const uint* restrict row = columns + (size_t)(start + c) * words;
    BEGIN_RUNS;
    int points = 0;
    uint black = 0;
    for (int p = 0; p < size; p += 32) {
      const uint here = size - p < 32 ? (1u << (size - p)) - 1 : 0xffffffffu;
      const uint v = cells_at(row, start + p) & here;
      points += popcount(v);
      for (uint edges = (v ^ (v << 1 | black)) & here; edges; edges &= edges - 1) {
        const int at = p + 31 - clz(edges & -edges);
        END_RUN(at, v >> (at - p) & 1);
      }
      black = v >> 31;
    }
    END_RUNS(size);
    if (blacks > 0) {
      period += last_begin - first;
      periods += blacks - 1;
      gap += last - first;
      gaps += points - 1;
    }
    per_column[(size_t)g * size + c] = points;
  }
  for (int k = lane; k < size; k += ${counting_wg}) {
    global const uint* restrict row = diagonals + (size_t)k * words;
    const uint weight = k ? 2 : 1;  // the matrix is symmetric
    const int length = size - k;
    int begin = 0, points = 0;
    uint black = 0;
    for (int p = 0; p < length; p += 32) {
      const uint here = length - p < 32 ? (1u << (length - p)) - 1 : 0xffffffffu;
      const uint v = cells_at(row, start + p) & here;
      points += popcount(v);
      if (k >= theiler) {
        for (uint edges = (v ^ (v << 1 | black)) & here; edges; edges &= edges - 1) {
          const int at = p + 31 - clz(edges & -edges);
          if (!(v >> (at - p) & 1)) COUNT(diagonal[at - begin], weight);
          begin = at;
        }
        const int left = min(32, length - p);
        black = v >> (left - 1) & 1;
      }
    }
    if (black) COUNT(diagonal[length - begin], weight);
    per_diagonal[(size_t)g * size + k] = points;
  }
  global ulong* restrict out = sums + ((size_t)g * ${counting_wg} + lane) * 4;
  out[0] = period;
  out[1] = periods;
  out[2] = gap;
  out[3] = gaps;
}
