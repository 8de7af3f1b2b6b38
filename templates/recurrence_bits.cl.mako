## Recurrence bits: the cells of a tile are decided, and 32 of them along a diagonal make a word.
##
## Cell (i, j) is 1 where point i of the rows and point j of the columns are within a limit of each other. A tile is a
## parallelogram of the matrix: 32 n_words rows from i0 and n_diagonals diagonals from k0; diagonal k has the cells (i, i + k).
##
##      columns ->             diagonals k0, k0 + 1, ...
##      row i0                 a b c d e f            bits: [radius][word of 32 rows][diagonal]
##      row i0 + 1               a b c d e f          Bit r of word w of the diagonal k is the cell
##      ...                        a b c d e f        (i0 + 32 w + r, i0 + 32 w + r + k): each letter is a word.
##      row i0 + 31                  a b c d e f      Word 1 of each diagonal goes on below.
##
## For each word:
##   1. terms    A cell joins the terms q(i), q(i + tau), ... of q(t) = TERM(x[t] - y[t + k]). Cells of a diagonal share
##               them: where the 32 + (m - 1) tau terms of a word fit registers, each is computed once. They are joined in
##               the order of the lags, so that a cell is bit for bit what a direct sum gives.
##   2. cells    What was joined is compared with the limits of a radius. An exact sweep in float32 compares with both
##               ends of a guard band: `in` has the cells that are surely recurrent, `open` those that may be. Where there
##               are several radii, what was joined is kept for all cells, and the steps from here on are a loop over the
##               radii: their number is an argument, so that there is one text for any number.
##   3. decide   Cells that are open and not in are decided in float64 (recurrence/problem.py says why these suffice).
##   4. store    Words along diagonals; where transposed, words along rows as well, as recurrence_transpose would make them.
##
## Specialisation
##   m, tau, metric   coordinates of a point, the lag between them, how they are compared
##   embedded         points are given as such, coordinate by coordinate, and no terms are shared; else x and y are series
##   coordinates      series that are read: m where embedded, else 1
##   exact            float32 decides where it can, float64 where it must; else dtype decides alone
##   strict           a distance equal to the radius does not recur
##   n_radii          matrices that are made at once: one, or several
##   corridor         each radius has an inner limit, which a recurrent cell must exceed
##   per_column       each column has a limit of its own
##   limits_per_radius  see `limits` below
##   second_partner   the second series of a joint recurrence: its words are combined with those of the first
## Tunables
##   wg, lanes, words   work-items of a group, diagonals of a work-item (a vector on processors), words of a group
##   staged           a group reads its values once, into local memory (scalar work-items: they read the same ones)
##   transposed       words along rows are made here, in local memory, which saves a launch (scalar work-items)
##   most_shared      terms that registers may hold; where a word has more, each cell computes its own
##   edge             rows and diagonals of a tile; not used here
##
## Types and names in capitals that are defined neither here nor in a fragment come from numeric.clh (vectors, sentinels) and
## metric.clh (distances).
## ---- parameters (python -m pyedmcl.kernels.describe --write) ----
## Given by the problem:
##   m                  coordinates of a point
##   tau                lag: rows between the values of a state
##   metric             distance of two points: a row of pyedmcl/recurrence/arguments.py
##   dtype              number type of data and distances: float32 or float64
##   embedded           a point is a row of several coordinates; else it is made of lags of one series
##   exact              cells that float32 cannot decide are decided in float64
##   strict             a cell is recurrent below the radius, not at it
##   corridor           a cell counts between two radii, not up to one
##   per_column         each column has a radius of its own
##   second_partner     the second series of a joint recurrence: its words are combined with those of the first
##   n_radii            radii that are swept together; texts for several are alike
##   limits_per_radius  numbers that a distance is compared with for each radius
##   coordinates        series that a point is read from: one for each coordinate, or a single one
## Tuned for speed, never changing what is computed (values; default of a processor, of a GPU):
##   wg                 work-items of a group, side by side (1 32 64 128 256; 1, 128)
##   lanes              diagonals of a work-item; a SIMD register on CPUs (1 4 8 16; 16, 1)
##   words              words of 32 rows that a group goes through (1 2 4 8 16 32; 32, 8)
##   staged             keep a group's values in local memory (no yes; no, yes)
##   transposed         make words along rows, without a launch (no yes; no, yes)
##   most_shared        terms kept for a word; more are found anew (0 64 96; 96, 96)
##   edge               rows and diagonals of a tile (512 1024 2048 4096 8192 16384 32768 65536 131072; 4096, 65536)
## ---- end of parameters ----
<%namespace name="decide" file="recurrence_bits_decide.mako"/>
<%namespace name="store" file="recurrence_bits_store.mako"/>
<%
terms = 32 + (m - 1) * tau  # of a word
shared = not embedded and terms <= most_shared
looped = m > 32
each_coordinate = f"EACH_COORDINATE(e, {m})" if looped else f"for (int e = 0; e < {m}; ++e)"
reach = 0 if embedded else (m - 1) * tau  # how far a point's coordinates lie behind its first one
# The sign of a difference tells on which side of a limit a sum lies: a subtraction and a shift make a bit. That is less than
# a comparison, a selection and an OR where work-items are scalar, and it needs cells in descending order, one limit each.
by_sign = shared and lanes == 1 and dtype == "float32" and not corridor
below, above = ("<", ">") if strict else ("<=", ">=")
deciding = "double" if exact else "real"  # the type of what decides
# The limits of a radius, as the kernel's comment on its arguments names them.
outer = "surely below, maybe below" if exact else "outer"
inner = ("" if not corridor else ", surely above, maybe above" if exact else ", inner")
several = n_radii > 1
held_words = 16 if several else words  # words of a work-item that are transposed together
%>
#define UNFUSED  // a cell is a sum of products that are rounded one by one
#undef MIN_SELECT
#define MIN_SELECT 1  // a maximum of distances is a selection on every device
#define WG ${wg}
#define WORDS ${words}
#define METRIC ${metric}
#include "metric.clh"
%if looped:
#include "coordinates.clh"
%endif
%if transposed:
#include "transpose.clh"
%endif
%if exact:
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
%endif

typedef PASTE(REAL_NAME, 4) real4;
// uintv: a word of each lane. BIT: bit B of each lane in which a comparison holds.
%if lanes == 1:
typedef uint uintv;
#define BIT(HOLDS, B) ((HOLDS) ? 1u << (B) : 0u)
%else:
typedef uint${lanes} uintv;
%if dtype == "float64":
#define BIT(HOLDS, B) convert_uint${lanes}(as_ulong${lanes}(HOLDS) & (ulong)(1u << (B)))
%else:
#define BIT(HOLDS, B) (as_uint${lanes}(HOLDS) & (1u << (B)))
%endif
%endif

%if exact:
${decide.functions()}
%endif

## ---- Memory steps

## Global to local memory: the rows' values, which all work-items read, and the columns', which overlap.
<%def name="stage_values()">
  local real xs[${coordinates} * XS] __attribute__((aligned(32)));
  local real ys[${coordinates} * (32 * WORDS + ${reach} + WG)];
  {
    const int from = i0 + 32 * first, n = 32 * (end - first) + ${reach};
    global const real* restrict column = y + y_front + from + k0 + (int)(get_group_id(0) * WG);
    for (int c = 0; c < ${coordinates}; ++c) {
      for (int t = get_local_id(0); t < n; t += WG) xs[c * XS + t] = x[(size_t)c * x_stride + from + t];
      for (int t = get_local_id(0); t < n + WG; t += WG) ys[c * YS + t] = column[(size_t)c * y_stride + t];
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
</%def>

## ---- Stages of a word

## 1. The terms that its cells share: q0, q1, ...
<%def name="shared_terms()">
    realv ${", ".join(f"q{t}" for t in range(terms))};
%for t in range(terms):
%if staged and t % 4 == 0:
    const real4 four${t} = *(local const real4*)(px + ${t});
%endif
    q${t} = ${f"four{t - t % 4}.s{t % 4}" if staged else f"px[{t}]"} - LOADV(py + ${t}); q${t} = TERM(q${t});
%endfor
</%def>

## What is compared in bit b: joined terms.
<%def name="joined_shared(b)">
      realv s = q${b};
%for e in range(1, m):
      s = JOIN(s, q${b + e * tau});
%endfor
</%def>
<%def name="joined_directly()">
      realv s = 0;
      ${each_coordinate} {
%if embedded:
        realv q = px[e * XS + b] - LOADV(py + e * YS + b);
%else:
        realv q = px[b + e * ${tau}] - LOADV(py + b + e * ${tau});
%endif
        q = TERM(q);
        s = JOIN(s, q);
      }
</%def>

## 2. The limits of a radius.
<%def name="load_limits()">
%for n in range(limits_per_radius):
  const real limit${n} = limits[${f"{limits_per_radius} * r + {n}" if several else n}];
%endfor
</%def>

## Bit b of a radius' word.
<%def name="compared(b)">
%if per_column:
      const size_t column = y_front + i0 + 32 * w + ${b} + k;
%for n in range(limits_per_radius):
      const realv limit${n} = LOADV(limits + ${n} * (size_t)limit_stride + column);
%endfor
%endif
%if exact and by_sign:
      in = in << 1 | as_uint(s - limit0) >> 31;
      open = open << 1 | as_uint(limit1 - s) >> 31;
%elif exact:
      in |= BIT(s < limit0${" && s > limit2" if corridor else ""}, ${b});
      open |= BIT(s <= limit1${" && s >= limit3" if corridor else ""}, ${b});
%elif by_sign:
      in = in << 1 | as_uint(${"s - limit0" if strict else "limit0 - s"}) >> 31;
%else:
      in |= BIT(s ${below} limit0${f" && s {above} limit1" if corridor else ""}, ${b});
%endif
</%def>

## Signs that were collected the other way round: of limit - s.
<%def name="invert_signs()">
%if exact:
    open = ~open;
%elif not strict:
    in = ~in;
%endif
</%def>

## 3 and 4, when all bits of a radius' word are there.
<%def name="finish_word()">
%if by_sign:
${invert_signs()}
%endif
%if exact:
${decide.open_cells()}
%endif
${store.word()}
</%def>

## 2 to 4 of one radius after the other; cell[b]: what was joined. Single cells stay in registers where the loop over them
## is unrolled; vectors of cells do not fit there, and compilers take three times as long for the unrolled text.
<%def name="each_radius()">
    for (int r = 0; r < n_radii; ++r) {
${load_limits()}
    uintv in = 0${", open = 0" if exact else ""};
%if lanes == 1:
#pragma unroll
%endif
    for (int b = 31; b >= 0; --b) {
      const realv s = cell[b];
${compared("b")}
    }
${finish_word()}
%if transposed:
    if (++n_held == HELD_WORDS) ${store.rows_of_radii()}
%endif
    }
</%def>

// ---- A work-item makes the words [first, end) of LANES neighbouring diagonals.
//
// x        [coordinate][x_stride], row 0 first
// y        [coordinate][y_stride], column 0 at y_front; both are padded with values that recur with nothing
// limits   for each radius: ${outer}${inner}${" (of each column, which lies where it does in y)" if per_column else ""}
// x64, y64, limits64   the same in the precision that decides${"; limits: outer" + (", inner" if corridor else "") if exact else ", which is that of the sweep: not read"}
// theiler  diagonals |k| < theiler are left white
// i_end    rows from here on are left white
kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void recurrence_bits(global const real* restrict x, global const real* restrict y,
                     global const ${deciding}* restrict x64, global const ${deciding}* restrict y64,
                     global const real* restrict limits, global const ${deciding}* restrict limits64, const int x_stride,
                     const int y_stride, const int y_front, const int i0, const int k0, const int n_words,
                     const int n_diagonals, const int limit_stride, const int theiler, const int i_end,
                     const int n_columns, global uint* restrict bits,
                     global uint* restrict rows${", const int n_radii" if several else ""}) {
  // Blocks of 32 x 32 cells behind the last column are not written, and nobody reads them.
#define BEHIND(W, K) (i0 + 32 * (W) + k0 + ((int)(K) & ~31) >= n_columns)
  const int first = get_group_id(1) * WORDS, end = min(first + WORDS, n_words);
  if (BEHIND(first, get_group_id(0) * (WG * LANES))) return;
%if staged:
#define XS (32 * WORDS + ${-(-reach // 4) * 4})  // coordinates begin at multiples of a vector
#define YS (32 * WORDS + ${reach} + WG)
${stage_values()}
  local const real* restrict px = xs;
  local const real* restrict py = ys + get_local_id(0);
%else:
#define XS (size_t)x_stride
#define YS (size_t)y_stride
  global const real* restrict px = x + i0 + 32 * first;
  global const real* restrict py = y + y_front + i0 + k0 + (ptrdiff_t)get_global_id(0) * LANES + 32 * first;
%endif
  const int k_local = get_global_id(0) * LANES, k = k0 + k_local;
%if transposed:
  // The group's words in blocks of 32 diagonals, which lie 33 words apart: word p of 32 blocks is then in 32 banks. All
  // work-items stay, those behind the last diagonal with words of zeros.
#define HELD_WORDS ${held_words}
  local uint held[33 * WG / 32 * HELD_WORDS];
#define HELD(AT, LANE) held[33 * ((AT) * (WG / 32) + (LANE) / 32) + (LANE) % 32]
%if several:
  int n_held = 0, r_stored = 0, w_stored = first;
%endif
%else:
  if (k_local >= n_diagonals) return;
%endif
%if not per_column and not several:
${load_limits()}
%endif
%if several and transposed:  # a group's work-items meet within the loop: either all of them go on or none does
#define LEFTMOST (get_group_id(0) * WG)
%else:
#define LEFTMOST k_local
%endif
  for (int w = first; w < end && !BEHIND(w, LEFTMOST); ++w, px += 32, py += 32) {
%if several:
    realv cell[32];
%else:
    uintv in = 0${", open = 0" if exact else ""};
%endif
%if shared:
${shared_terms()}
%for b in range(31, -1, -1):
    {
${joined_shared(b)}
${f"      cell[{b}] = s;" if several else compared(b)}
    }
%endfor
%else:
%if several and lanes == 1:
#pragma unroll
%endif
    for (int b = 0; b < 32; ++b) {
${joined_directly()}
${"      cell[b] = s;" if several else compared("b")}
    }
%endif
${each_radius() if several else finish_word()}
  }
%if transposed and several:
  if (n_held) ${store.rows_of_radii()}
%elif transposed:
${store.rows()}
%endif
}
