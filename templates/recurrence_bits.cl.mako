## Recurrence bits: 32 cells along a diagonal are one word, whatever the metric.
##
## Cell (i, i + k) compares point i of the rows with point i + k of the columns. Along a diagonal the terms of neighbouring
## cells are the same: q(t) = (x[t] - y[t + k])^2 is found once and a cell is q(i) + q(i + tau) + ... in ascending lags,
## bit for bit what a direct sum gives. With ${dtype} sweeps and float64 cells ("exact") two words are made, of cells that
## are recurrent for sure and of those that may be; where they differ the cell is decided in float64.
## ---- parameters (python -m pyedmcl.kernels.describe --write) ----
## Given by the problem:
##   m                  coordinates of a point
##   tau                lag: rows between the values of a state
##   metric             distance of two points: a row of pyedmcl/recurrence/metrics.py
##   dtype              number type of data and distances: float32 or float64
##   embedded           a point is a row of several coordinates; else it is made of lags of one series
##   exact              cells that float32 cannot decide are decided in float64
##   strict             a cell is recurrent below the radius, not at it
##   corridor           a cell counts between two radii, not up to one
##   per_column         each column has a radius of its own
##   also               the bits are joined with those of the pair of series before, by and
##   n_radii            radii that are swept together
##   limits_per_radius  numbers that a distance is compared with for each radius
##   coordinates        series that a point is read from: one for each coordinate, or a single one
## Tuned for speed, never changing what is computed (values; default of a processor, of a GPU):
##   wg                 work-items of a group, side by side (1 32 64 128 256; 1, 128)
##   lanes              diagonals of a work-item; a SIMD register on CPUs (1 4 8 16; 16, 1)
##   words              words of 32 rows that a group goes through (1 2 4 8 16 32; 32, 8)
##   staged             keep a group's values in local memory (no yes; no, yes)
##   turned             turn words in local memory, without a launch (no yes; no, yes)
##   most_shared        terms kept for a word; more are found anew (0 64 96; 96, 96)
##   edge               rows and diagonals of a tile (512 1024 2048 4096 8192 16384 32768 65536 131072; 4096, 65536)
## ---- end of parameters ----
<%
span = 32 + (m - 1) * tau
shared = not embedded and span <= most_shared
reach = 0 if embedded else (m - 1) * tau

# Lone lanes collect the signs of differences: a subtraction and a shift a cell. No NaN comes here.
signs = shared and lanes == 1 and dtype == "float32" and not corridor
less = "<" if strict else "<="
more = ">" if strict else ">="
%>
#define UNFUSED  // a cell is a sum of products that are rounded one by one
#undef MIN_SELECT
#define MIN_SELECT 1  // a maximum of distances is a selection on every device
#define WG ${wg}
#define WORDS ${words}
#define METRIC ${metric}
#include "metric.clh"
%if turned:
#include "turn.clh"
%endif
#pragma OPENCL FP_CONTRACT OFF
%if exact:
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
%endif

typedef PASTE(REAL_NAME, 4) real4;
%if lanes == 1:
typedef uint uintv;
#define BIT(MASK, B) ((MASK) ? 1u << (B) : 0u)
%else:
typedef uint${lanes} uintv;
%if dtype == "float64":
#define BIT(MASK, B) convert_uint${lanes}(as_ulong${lanes}(MASK) & (ulong)(1u << (B)))
%else:
#define BIT(MASK, B) (as_uint${lanes}(MASK) & (1u << (B)))
%endif
%endif

%if exact:
// One cell in float64, as the definition says: what is compared with the limits.
double exact_cell(global const double* restrict x, global const double* restrict y, const int x_stride, const int y_stride) {
  double s = 0;
%if embedded:
  for (int e = 0; e < ${m}; ++e) {
    const double d = x[(size_t)e * x_stride] - y[(size_t)e * y_stride];
%else:
  for (int e = 0; e < ${m}; ++e) {
    const double d = x[e * ${tau}] - y[e * ${tau}];
%endif
    const double q = TERM(d);
    s = JOIN_OR_NAN(s, q);
  }
  return s;
}
%endif

// x: [coordinate][x_stride], rows 0, 1, ...; y: [coordinate][y_stride], column 0 at y_front; both padded with values that
// recur with nothing. limits: per radius ${"sure below, below at all" if exact else "outer"}${", sure above, above at all" if exact and corridor else (", inner" if corridor else "")}; limits64: ${"per radius outer" + (", inner" if corridor else "") if exact else "unused"}.
// per column instead where so specialised. bits: [radius][word of 32 rows][diagonal], rows from i0, diagonals from k0 on.
kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void recurrence_bits(global const real* restrict x, global const real* restrict y, global const ${"double" if exact else "real"}* restrict x64,
                     global const ${"double" if exact else "real"}* restrict y64, global const real* restrict limits, global const ${"double" if exact else "real"}* restrict limits64,
                     const int x_stride, const int y_stride, const int y_front, const int i0, const int k0, const int n_words,
                     const int n_diagonals, const int limit_stride, const int theiler, const int i_end, const int n_columns,
                     global uint* restrict bits, global uint* restrict rows) {
  // Blocks of 32 x 32 cells behind the last column: their words are not written, and nobody reads them.
#define BEHIND(W, K) (i0 + 32 * (W) + k0 + ((int)(K) & ~31) >= n_columns)
  const int first = get_group_id(1) * WORDS, end = min(first + WORDS, n_words);
  if (BEHIND(first, get_group_id(0) * (WG * LANES))) return;
%if staged:
#define XS (32 * WORDS + ${-(-reach // 4) * 4})
#define YS (32 * WORDS + ${reach} + WG)
  // The rows' values are the same for all work-items, the columns' overlap.
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
  local const real* restrict px = xs;
  local const real* restrict py = ys + get_local_id(0);
%else:
  global const real* restrict px = x + i0 + 32 * first;
  global const real* restrict py = y + y_front + i0 + k0 + (ptrdiff_t)get_global_id(0) * LANES + 32 * first;
#define XS (size_t)x_stride
#define YS (size_t)y_stride
%endif
  const int k_local = get_global_id(0) * LANES, k = k0 + k_local;
%if turned:
  // Words of the group, in blocks of 32 diagonals that lie 33 words apart: work-items then meet no other's bank.
  local uint held[${n_radii} * 33 * WG / 32 * WORDS];
#define HELD(R, W, LANE) held[33 * (((R) * WORDS + (W)) * (WG / 32) + (LANE) / 32) + (LANE) % 32]
%else:
  if (k_local >= n_diagonals) return;
%endif
%for r in range(n_radii):
%if not per_column:
%for n in range(limits_per_radius):
  const real limit${r}_${n} = limits[${r * limits_per_radius + n}];
%endfor
%endif
%endfor
  for (int w = first; w < end && !BEHIND(w, k_local); ++w, px += 32, py += 32) {
    uintv ${", ".join(f"in{r} = 0" + (f", open{r} = 0" if exact else "") for r in range(n_radii))};
%if shared:
    realv ${", ".join(f"q{t}" for t in range(span))};
%for t in range(span):
%if staged and t % 4 == 0:
    const real4 x${t} = *(local const real4*)(px + ${t});
%endif
    q${t} = ${f"x{t - t % 4}.s{t % 4}" if staged else f"px[{t}]"} - LOADV(py + ${t}); q${t} = TERM(q${t});
%endfor
%endif
%for b in (range(31, -1, -1) if shared else ("b",)):
%if shared:
    {
      realv s = q${b};
%for e in range(1, m):
      s = JOIN(s, q${b + e * tau});
%endfor
%else:
    for (int b = 0; b < 32; ++b) {
      realv s = 0;
%if embedded:
      for (int e = 0; e < ${m}; ++e) {
        realv q = px[e * XS + b] - LOADV(py + e * YS + b);
%else:
      for (int e = 0; e < ${m}; ++e) {
        realv q = px[b + e * ${tau}] - LOADV(py + b + e * ${tau});
%endif
        q = TERM(q);
        s = JOIN(s, q);
      }
%endif
%if per_column:
      const size_t column = y_front + i0 + 32 * w + ${b} + k;
%for n in range(limits_per_radius):
      const realv limit0_${n} = LOADV(limits + ${n} * (size_t)limit_stride + column);
%endfor
%endif
%for r in range(n_radii):
%if exact:
<%
sure = f"s < limit{r}_0" + (f" && s > limit{r}_2" if corridor else "")
maybe = f"s <= limit{r}_1" + (f" && s >= limit{r}_3" if corridor else "")
%>
%if signs:
      in${r} = in${r} << 1 | as_uint(s - limit${r}_0) >> 31;
      open${r} = open${r} << 1 | as_uint(limit${r}_1 - s) >> 31;
%else:
      in${r} |= BIT(${sure}, ${b});
      open${r} |= BIT(${maybe}, ${b});
%endif
%else:
%if signs:
      in${r} = in${r} << 1 | as_uint(${f"s - limit{r}_0" if strict else f"limit{r}_0 - s"}) >> 31;
%else:
      in${r} |= BIT(s ${less} limit${r}_0${f" && s {more} limit{r}_1" if corridor else ""}, ${b});
%endif
%endif
%endfor
    }
%endfor
%if signs:
%for r in range(n_radii):
    ${f"open{r} = ~open{r};" if exact else ("" if strict else f"in{r} = ~in{r};")}
%endfor
%endif
%if exact:
%for r in range(n_radii):
    open${r} &= ~in${r};
    if (${f"open{r}" if lanes == 1 else f"any(as_int{lanes}(open{r} != 0))"}) {
      uint undecided[LANES], decided[LANES];
      ${f"undecided[0] = open{r}; decided[0] = in{r};" if lanes == 1 else f"vstore{lanes}(open{r}, 0, undecided); vstore{lanes}(in{r}, 0, decided);"}
      for (int l = 0; l < LANES; ++l)
        while (undecided[l]) {
          const int b = 31 - (int)clz(undecided[l] & -undecided[l]);
          undecided[l] &= undecided[l] - 1;
          const size_t row = i0 + 32 * w + b, column = y_front + row + k + l;
          const double s = exact_cell(x64 + row, y64 + column, x_stride, y_stride);
%if per_column:
          if (s ${less} limits64[column]) decided[l] |= 1u << b;
%else:
          if (s ${less} limits64[${r * (2 if corridor else 1)}]${f" && s {more} limits64[{2 * r + 1}]" if corridor else ""}) decided[l] |= 1u << b;
%endif
        }
      in${r} = ${"decided[0]" if lanes == 1 else f"vload{lanes}(0, decided)"};
    }
%endfor
%endif
    const int rows_left = i_end - (i0 + 32 * w);
    const uint kept = rows_left < 32 ? (1u << rows_left) - 1 : ~0u;
%for r in range(n_radii):
    in${r} &= kept;
    {
      global uint* at = bits + ((size_t)${r} * n_words + w) * n_diagonals + k_local;
%if lanes == 1:
      if (abs(k) < theiler) in${r} = 0;
%if turned:
      if (k_local < n_diagonals) {
        ${"in%d &= *at;" % r if also else ""}
        *at = in${r};
      }
      HELD(${r}, w - first, (int)get_local_id(0)) = k_local < n_diagonals ? in${r} : 0;
%else:
      *at = ${"*at & " if also else ""}in${r};
%endif
%else:
      uint word[LANES];
      vstore${lanes}(in${r}, 0, word);
      for (int l = 0; l < LANES && k < theiler && k + LANES > -theiler; ++l)
        if (abs(k + l) < theiler) word[l] = 0;
      vstore${lanes}(vload${lanes}(0, word)${f" & vload{lanes}(0, at)" if also else ""}, 0, at);
%endif
    }
%endfor
  }
%if turned:
  // Blocks turned: words along rows, [word of 32 diagonals][row].
  barrier(CLK_LOCAL_MEM_FENCE);
  const int blocks = ${n_radii} * WORDS * (WG / 32);
  for (int block = get_local_id(0); block < blocks; block += WG) {
    uint a[32];
#pragma unroll
    for (int p = 0; p < 32; ++p) a[p] = held[33 * block + p];
    turn(a);
#pragma unroll
    for (int p = 0; p < 32; ++p) held[33 * block + p] = a[p];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int i = get_local_id(0); i < 32 * blocks; i += WG) {
    const int block = i / 32, r = block / (WORDS * (WG / 32)), w = first + block / (WG / 32) % WORDS;
    const int q = (int)get_group_id(0) * (WG / 32) + block % (WG / 32);
    if (w < end && 32 * q < n_diagonals)
      rows[(((size_t)r * (n_diagonals / 32) + q) * n_words + w) * 32 + i % 32] = held[33 * block + i % 32];
  }
%endif
}
