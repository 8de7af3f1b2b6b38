## Recurrence quantification of many short matrices: a group takes one after the other until none is left.
##
## A matrix joins the points a of x, which its columns stand for, with the points b of y, which its rows stand for. Of each:
##
##   1. bits       32 cells of a column to a word: bits[b / 32][a]. Of a symmetric matrix only the words above and on the
##                 diagonal of 32 x 32 blocks are computed, and the others are their transposes.
##   2. diagonals  the same cells along diagonals k = b - a: words diagonals[a / 32][k]. The 32 words of a block are shifted, so
##                 that they begin on one diagonal, and transposed:
##
##                      columns a: 0 1 2 3                   diagonals k: 0 1 2 3
##                      b = 0      .                         bit a = 0    . . . .
##                          1      . .         shifted by a            1  . . . .
##                          2      . . .       and transposed          2  . . . .
##
##   3. lines      Runs are counted by length, in columns and then in diagonals.
##   4. results    Nearly all lengths occur in no line: those that do are written one behind the other, with their numbers.
##
## Words of neighbouring columns, or diagonals, lie side by side, so that the work-items of a group read and write together.
## Blocks and lines are handled in two ways: by a group of scalar work-items (recurrence_batch_group.mako), or in vectors by a
## work-item alone (recurrence_batch_vectors.mako), whose lines that have ended count in spare bins in front of the numbers.
## No pointer is declared restrict: NVIDIA's compiler then takes numbers, to which other work-items of the group have added, for
## the zeros that this one has written (driver 580).
## A cell is the compared distance of pyedmcl.recurrence.problem: terms joined in ascending order, no fused operations. Points
## that touch a gap are NaN and recur with nothing.
##
## Specialisation
##   m, metric, dtype  coordinate e of point t lies at t + e * step; how points are compared, and in what precision
##   strict, corridor  a distance equal to a limit does not recur; there is an inner limit
##   symmetric         y is x: columns are rows, and diagonals k >= 0 stand for both sides
##   screened, embedded  nearly all cells are decided in float32; then also whether each coordinate has a plane, or points are lags
##   lanes, wg         columns of a work-item (a SIMD register on processors), work-items of a group
##
## Types and names in capitals that are defined neither here nor in a fragment come from numeric.clh (vectors, sentinels),
## metric.clh (distances) and column_runs.clh (runs).
## ---- parameters (python -m pyedmcl.kernels.describe --write) ----
## Given by the problem:
##   m          coordinates of a point
##   metric     distance of two points: a row of pyedmcl/recurrence/arguments.py
##   dtype      number type of data and distances: float32 or float64
##   strict     a cell is recurrent below the radius, not at it
##   corridor   a cell counts between two radii, not up to one
##   symmetric  rows and columns are the same points
##   screened   nearly all cells are decided in float32, and the others in the precision of data
##   embedded   a point is a row of several coordinates; else it is made of lags of one series
##   lanes      columns of a matrix that a work-item takes: a vector on processors
##   wg         work-items of a group
## ---- end of parameters ----
<%namespace name="group" file="recurrence_batch_group.mako"/>
<%namespace name="vectors" file="recurrence_batch_vectors.mako"/>
<%
looped = m > 32  # more coordinates are not written out, but read in a loop, which compiles as fast for any number
%>\
## 32 cells of each of some columns: word.
<%def name="cells()">\
%for e in range(0 if looped else m):
      const realv x${e} = LOADV(x + a + ${f"{e} * (size_t)step_x" if e else "0"});
%endfor
%if lanes == 1:
      uint word = 0;
%else:
      u${"long" if dtype == "float64" else "int"}${lanes} word = 0;
%endif
#pragma unroll 8
      for (int b = 0; b < 32; ++b) {
        global const real* at = y + 32 * j + b;
        realv s = 0;
%if looped:
        EACH_COORDINATE(e, ${m}) {
          const realv d = LOADV(x + a + e * (size_t)step_x) - (realv)(at[e * (size_t)step_y]);
          const realv q = TERM(d);
          s = JOIN_OR_NAN(s, q);
        }
%endif
%for e in range(0 if looped else m):
        {
          const realv d = x${e} - (realv)(at[${f"{e} * (size_t)step_y" if e else "0"}]);
          const realv q = TERM(d);
          s = JOIN_OR_NAN(s, q);
        }
%endfor
%if lanes == 1:
        word |= (uint)(s ${"<" if strict else "<="} outer${f" && s {'>' if strict else '>='} inner" if corridor else ""}) << b;
%elif dtype == "float64":
        word |= as_ulong${lanes}(s ${"<" if strict else "<="} outer${f" & s {'>' if strict else '>='} inner" if corridor else ""}) & (ulong)(1u << b);
%else:
        word |= as_uint${lanes}(s ${"<" if strict else "<="} outer${f" & s {'>' if strict else '>='} inner" if corridor else ""}) & (1u << b);
%endif
      }
</%def>\
#define UNFUSED  // a cell is a sum of products that are rounded one by one
#define METRIC ${metric}
#include "column_runs.clh"
#include "metric.clh"
%if looped:
#include "coordinates.clh"
%endif
#include "transpose.clh"
#define WG ${wg}
#define SPARES ${lanes if lanes > 1 else 0}

#define MEET barrier(CLK_GLOBAL_MEM_FENCE | CLK_LOCAL_MEM_FENCE)

// The lowest n bits, 0 <= n <= 32.
static uint ones(const int n) { return n >= 32 ? 0xffffffffu : (1u << n) - 1; }

// ---- 1. Bits

%if not screened:
static void make_bits(global const real* x, global const real* y, const int step_x, const int step_y,
                      const int n_a, const int n_b, const int stride, const real outer, const real inner,
                      global uint* bits) {
  for (int j = 0; 32 * j < n_b; ++j) {
    const uint within = ones(n_b - 32 * j);
    const int a_end = ${"32 * (j + 1)" if symmetric else "stride"};
    for (int a = get_local_id(0) * ${lanes}; a < a_end; a += WG * ${lanes}) {
${cells()}\
%if lanes == 1:
      bits[(size_t)j * stride + a] = a < n_a ? word & within : 0;
%else:
      vstore${lanes}(convert_uint${lanes}(word) & within, 0, bits + (size_t)j * stride + a);
%endif
    }
  }
%if lanes > 1:
  for (int j = 0; 32 * j < n_b; ++j)  // behind the last column
    for (int a = n_a + get_local_id(0); a < stride; a += WG) bits[(size_t)j * stride + a] = 0;
%endif
}
%else:
// The words of some columns, in the precision that decides.
static uint${lanes} exact_words(global const real* x, global const real* y, const int step_x, const int step_y, const int a,
                         const int j, const real outer, const real inner) {
${cells()}\
  return convert_uint${lanes}(word);
}

${vectors.screen_bits()}
%endif

// Cells with |b - a| < dropped become white.
static void drop_bits(const int n_a, const int words, const int stride, const int dropped, global uint* bits) {
  for (int a = get_local_id(0); a < n_a; a += WG)
    for (int j = max(a - dropped + 1, 0) / 32; j < words && 32 * j < a + dropped; ++j)
      bits[(size_t)j * stride + a] &= ~(ones(clamp(a + dropped - 32 * j, 0, 32)) & ~ones(clamp(a - dropped + 1 - 32 * j, 0, 32)));
}

// ---- 2. Diagonals

${(vectors if lanes > 1 else group).make_blocks()}

// ---- 3. Lines. An edge is a cell that differs from the one before; a run of one colour ends at each.

// 64 cells of a line, of which ``left`` are left: a word and, a row of words further, the next one.
#define TWO_WORDS(at, row, left) (*(at) | ((left) > 32 ? (ulong)(at)[row] << 32 : 0))
#define LOWEST(bits) ((int)popcount(((bits) & -(bits)) - 1))  // place of the lowest bit

${(vectors if lanes > 1 else group).count_lines()}

// ---- 4. Results: (kind << 24 | length, number of lines) of all lengths that occur (0 never does), kind by kind and in
// ascending order.
static ulong write_lines(global const uint* numbers, const int lengths, global uint* taken,
                         global uint* lines, local uint* places) {
  const int all = 4 * lengths, share = (all + WG - 1) / WG;
  const int from = min((int)get_local_id(0) * share, all), to = min(from + share, all);
  uint here = 0;
  for (int at = from; at < to; ++at) here += numbers[at] != 0;
  places[get_local_id(0)] = here;
  MEET;
  if (get_local_id(0) == 0) {
    uint before = 0;
    for (int item = 0; item < WG; ++item) {
      const uint own = places[item];
      places[item] = before;
      before += own;
    }
    places[WG] = before;
    places[WG + 1] = atomic_add(taken + 1, before);
  }
  MEET;
  size_t place = (size_t)places[WG + 1] + places[get_local_id(0)];
  uint kind = from / lengths, length = from % lengths;
  for (int at = from; at < to; ++at) {
    const uint number = numbers[at];
    if (number) {
      lines[2 * place] = kind << 24 | length;
      lines[2 * place + 1] = number;
      ++place;
    }
    if (++length == lengths) {
      length = 0;
      ++kind;
    }
  }
  return (ulong)places[WG + 1] << 32 | places[WG];
}

// shapes   of each matrix: first point of x, points of x, first point of y, points of y, its place in per_column and that in
//          per_diagonal
// limits   of each matrix: outer, inner; where float32 screens cells, also low and high of the guard band of each
// scratch  of each group scratch_words: bits, diagonals, and numbers of diagonal, vertical, white, and white lines at the border;
//          where float32 screens cells, also both sides in float32
// longest  points of the longest side there is
// taken    matrices that were begun, and lengths that were written
// heads    of each matrix: where its lengths begin (upper half) and how many, recurrent cells, and the sums of Counts
kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void recurrence_batch(global const real* x, global const real* y, global const int* shapes,
                      global const real* limits, const int step_x, const int step_y, const int theiler,
                      const int dropped, global uint* scratch, const ulong scratch_words, const int longest,
                      global uint* taken, const uint end, global ulong* heads,
                      global uint* lines, global ushort* per_column,
                      global ushort* per_diagonal) {
  local uint mine, places[WG + 2];
  local ulong totals[5 * WG];
  const int most_words = (longest + 31) / 32;
  global uint* bits = scratch + (size_t)get_group_id(0) * scratch_words;
  global uint* diagonals = bits + (size_t)32 * most_words * most_words;
  global uint* numbers = diagonals + (size_t)${"32" if symmetric else "64"} * most_words * most_words + SPARES;
%if screened:
  const int pitch = 32 * most_words${f" + {m - 1} * max(step_x, step_y)" if not embedded else ""};
  global float* x32 = (global float*)(numbers + 4 * (longest + 1));
  global float* y32 = x32${"" if symmetric else f" + (size_t){m if embedded else 1} * pitch"};
%endif
  for (;;) {
    MEET;
    if (get_local_id(0) == 0) mine = atomic_inc(taken);
    MEET;
    const size_t g = mine;
    if (g >= end) break;
    global const int* shape = shapes + 6 * g;
    const int n_a = shape[1], n_b = shape[3], words_a = (n_a + 31) / 32, words_b = (n_b + 31) / 32, stride = 32 * words_a;
    const int n_diagonals = ${"stride" if symmetric else "32 * (words_a + words_b)"}, k_first = ${"0" if symmetric else "-stride"};
    const int lengths = max(n_a, n_b) + 1;
    for (int at = (int)get_local_id(0) - SPARES; at < 4 * lengths; at += WG) numbers[at] = 0;
%if not screened:
    make_bits(x + shape[0], y + shape[2], step_x, step_y, n_a, n_b, stride, limits[2 * g], limits[2 * g + 1], bits);
%else:
    copy_coarse(x + shape[0], step_x, n_a, pitch, x32);
%if not symmetric:
    copy_coarse(y + shape[2], step_y, n_b, pitch, y32);
%endif
    screen_bits(x + shape[0], y + shape[2], step_x, step_y, x32, y32, n_a, n_b, stride, pitch, limits + 6 * g, bits);
%endif
    MEET;
%if symmetric:
    mirror_bits(words_a, stride, bits);
    MEET;
%endif
    if (dropped > 0) {
      drop_bits(n_a, words_b, stride, dropped, bits);
      MEET;
    }
    make_diagonals(words_a, words_b, stride, n_diagonals, bits, diagonals);
    MEET;
    ulong sums[5] = {0, 0, 0, 0, 0};
    count_columns(n_a, n_b, stride, bits, numbers + lengths, numbers + 2 * lengths, numbers + 3 * lengths,
                  per_column + shape[4], sums${', -lengths - SPARES' if lanes > 1 else ''});
    count_diagonals(n_a, n_b, n_diagonals, k_first, theiler, diagonals, numbers, per_diagonal + shape[5]${', -SPARES' if lanes > 1 else ''});
    for (int of = 0; of < 5; ++of) totals[of * WG + get_local_id(0)] = sums[of];
    MEET;
    const ulong written = write_lines(numbers, lengths, taken, lines, places);
    for (int of = get_local_id(0); of < 5; of += WG) {
      ulong total = 0;
      for (int item = 0; item < WG; ++item) total += totals[of * WG + item];
      heads[6 * g + 1 + of] = total;
    }
    if (get_local_id(0) == 0) heads[6 * g] = written;
  }
}
