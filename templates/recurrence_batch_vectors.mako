## A part of recurrence_batch.cl.mako, for processors: a work-item has a matrix for itself and goes through it in vectors.
## recurrence_batch_group.mako has the same functions for GPUs, and shows how cells lie in words.
##
## Blocks of 32 x 32 cells are transposed in two vectors, in the five stages of transpose.clh: within each 2 J x 2 J bits the
## two off-diagonal blocks of J x J bits change places. A stage keeps half of the bits of each word and takes the others from
## the word J rows away, rotated by J to the left, or to the right in the lower rows.
##
## Of lines, as many as a vector has lanes are walked together, 64 cells of each at a time. A step takes the next edge of each
## line and counts the run that ends there; a line that has none left counts in a spare bin. So branches do not depend on the
## cells of one line: steps go on until no line has an edge left, and neighbouring lines are alike.

## ---- Cells, where float64 decides ----
## Nearly all cells are first found in float32, in vectors of twice as many numbers. A sum below ``low`` of a limit's guard band
## is below the limit in float64, too, and one of ``high`` and more is not (recurrence/problem.py). Where any of 32 x 16
## cells is between the two, all of these are found again in float64.
<%def name="screen_bits()">
// Copies the points of a side as float32: [coordinate][pitch], or, where coordinates are lags of one series, that series. It
// goes on to the next multiple of 32 points, since whole words of cells are found.
static void copy_coarse(global const real* from, const int step, const int n, const int pitch, global float* to) {
%if not embedded:
  for (int t = 0; t < (n + 31) / 32 * 32 + ${m - 1} * step; ++t) to[t] = (float)from[t];
%else:
  for (int e = 0; e < ${m}; ++e)
    for (int t = 0; t < (n + 31) / 32 * 32; ++t) to[e * pitch + t] = (float)from[(size_t)e * step + t];
%endif
}

// Finds all cells: word j of column a has cells 32 j .. 32 j + 31. x, y are the points in float64, x32, y32 in float32. limits:
// the limit itself and, of a corridor, the inner one; then both ends of the guard band of each.
static void screen_bits(global const real* x, global const real* y, const int step_x, const int step_y,
                        global const float* x32, global const float* y32, const int n_a, const int n_b, const int stride,
                        const int pitch, global const real* limits, global uint* bits) {
  const float16 low = (float)limits[2], high = (float)limits[3]${", inner_low = (float)limits[4], inner_high = (float)limits[5]" if corridor else ""};
<%
step = {"x": "step_x", "y": "step_y"} if not embedded else {"x": "pitch", "y": "pitch"}
looped = m > 32  # as in recurrence_batch
# JOIN_OR_NAN is for numbers: a vector chooses by select().
joined = "select(s, q, q > s || q != q)" if metric == "maximum" else "JOIN(s, q)"
%>
  for (int j = 0; 32 * j < n_b; ++j) {
    const uint within = ones(n_b - 32 * j);
    for (int a = 0; a < ${"32 * (j + 1)" if symmetric else "stride"}; a += 16) {
%for e in range(0 if looped else m):
      const float16 x${e} = vload16(0, x32 + a + ${e} * ${step["x"]});
%endfor
      uint16 word = 0, perhaps = 0, bit = 1;  // cells that surely are recurrent, those that may be, and the cell at work
#pragma unroll 8
      for (int b = 0; b < 32; ++b) {
        global const float* at = y32 + 32 * j + b;
        float16 s;
%if looped:
        EACH_COORDINATE(e, ${m}) {
          const float16 d = vload16(0, x32 + a + (size_t)e * ${step["x"]}) - at[(size_t)e * ${step["y"]}];
          const float16 q = TERM(d);
          s = e ? ${joined} : q;
        }
%endif
%for e in range(0 if looped else m):
        {
          const float16 d = x${e} - at[${e} * ${step["y"]}];
          const float16 q = TERM(d);
          s = ${joined if e else "q"};
        }
%endfor
        word |= as_uint16(s < low${" & s >= inner_high" if corridor else ""}) & bit;
        perhaps |= as_uint16(s < high${" & s >= inner_low" if corridor else ""}) & bit;
        bit += bit;
      }
      const uint16 open = (word ^ perhaps) & within;  // float32 cannot tell
      const uint8 open8 = open.lo | open.hi;
      const uint4 open4 = open8.lo | open8.hi;
      if (open4.x | open4.y | open4.z | open4.w)
        word = (uint16)(${", ".join(f"exact_words(x, y, step_x, step_y, a + {at}, j, limits[0], limits[1])" for at in range(0, 16, lanes))});
      vstore16(word & within, 0, bits + (size_t)j * stride + a);
    }
  }
  for (int j = 0; 32 * j < n_b; ++j)  // behind the last column
    for (int a = n_a; a < stride; ++a) bits[(size_t)j * stride + a] = 0;
}
</%def>
<%def name="make_blocks()">
<%
kept = {8: 0x00ff00ff, 4: 0x0f0f0f0f, 2: 0x33333333, 1: 0x55555555}

def rows(choose):
    return "(uint16)(" + ", ".join(choose(row) for row in range(16)) + ")"
%>
// Transposes a block in two vectors of 16 words: ``upper`` has its rows 0 .. 15, ``lower`` 16 .. 31.
static void transpose_block(uint16* upper, uint16* lower) {
  uint16 a = bitselect(*lower << 16, *upper, (uint16)0x0000ffffu), b = bitselect(*upper >> 16, *lower, (uint16)0xffff0000u);
%for j, mask in kept.items():
  {
    const uint16 turn = ${rows(lambda row: str(32 - j if row & j else j))};
    const uint16 keep = ${rows(lambda row: f"0x{mask ^ (0xffffffff if row & j else 0):08x}u")};
    a = bitselect(rotate(a.s${"".join(f"{row ^ j:x}" for row in range(16))}, turn), a, keep);
    b = bitselect(rotate(b.s${"".join(f"{row ^ j:x}" for row in range(16))}, turn), b, keep);
  }
%endfor
  *upper = a;
  *lower = b;
}

%if symmetric:
// Fills the blocks below the diagonal of a symmetric matrix: each is the transpose of one above it.
static void mirror_bits(const int words, const int stride, global uint* bits) {
  for (int j = 1; j < words; ++j)
    for (int i = 0; i < j; ++i) {
      global const uint* from = bits + (size_t)j * stride + 32 * i;
      uint16 upper = vload16(0, from), lower = vload16(1, from);
      transpose_block(&upper, &lower);
      global uint* to = bits + (size_t)i * stride + 32 * j;
      vstore16(upper, 0, to);
      vstore16(lower, 1, to);
    }
}

%endif
// Diagonals: word w of diagonal k is diagonals[w * n_diagonals + k - k_first].
static void make_diagonals(const int words_a, const int words_b, const int stride, const int n_diagonals,
                           global const uint* bits, global uint* diagonals) {
  const uint16 row = ${rows(str)};
  for (int w = 0; w < words_a; ++w)
    for (int j = ${"w" if symmetric else "-1"}; j < words_b; ++j) {
      global const uint* at = bits + 32 * w;
      uint16 low[2] = {0, 0}, high[2] = {0, 0};
      ${"" if symmetric else "if (j >= 0) "}for (int part = 0; part < 2; ++part) low[part] = vload16(part, at + (size_t)j * stride);
      if (j + 1 < words_b)
        for (int part = 0; part < 2; ++part) high[part] = vload16(part, at + (size_t)(j + 1) * stride);
      // Word r of a block begins r cells further.
      uint16 upper = low[0] >> row | high[0] << 1 << (31 - row), lower = low[1] >> (16 + row) | high[1] << (16 - row);
      transpose_block(&upper, &lower);
      global uint* to = diagonals + (size_t)w * n_diagonals + 32 * (j - w${"" if symmetric else " + words_a"});
      vstore16(upper, 0, to);
      vstore16(lower, 1, to);
    }
}
</%def>
<%def name="count_lines()">
<%
each = [f"{lane:x}" for lane in range(lanes)]  # as components of a vector are named
numbers = ", ".join(map(str, range(lanes)))
%>
typedef ulong${lanes} wordv;
typedef long${lanes} placev;

// 64 cells of each line, of which ``left`` are left.
#define WORDS64(at, row, left)                                     \
  (convert_ulong${lanes}(vload${lanes}(0, at)) |                               \
   ((left) > 32 ? convert_ulong${lanes}(vload${lanes}(0, (at) + (row))) << 32 : (wordv)0))
#define LOWEST_OF(words) (63 - as_long${lanes}(clz((words) & -(words))))
#define HIGHEST_OF(words) (63 - as_long${lanes}(clz(words)))

// Bins of what does not count, one for each line of a step: increments of one bin wait for each other.
#define SPARE (placev)(${numbers})

// Counts the runs that end at ``edges`` of cells from p on.
//   begin     where the run began that is under way
//   white     all bits where it is white
//   bins      of black runs; those of white ones lie ``whites`` further, spare ones at ``spare``
static void count_edges(wordv edges, const int p, placev* begin, placev* white, global uint* bins, const long whites,
                        const int spare) {
  while (any(edges != 0)) {
    const placev ends = edges != 0, at = p + LOWEST_OF(edges);
    const placev bin = select(spare + SPARE, at - *begin + (*white & whites), ends);
    *begin = select(*begin, at, ends);
    *white ^= ends;
    edges &= edges - 1;
    const int${lanes} of = convert_int${lanes}(bin);
%for i in each:
    ++bins[of.s${i}];
%endfor
  }
}

// Counts the black runs that end at ``ends``, where ``counted``.
//   starts    where runs begin, behind the one that is under way
static void count_black(wordv starts, wordv ends, const int p, placev* begin, global uint* bins, const placev counted,
                        const int spare) {
  while (any(ends != 0)) {
    const placev bin = select(spare + SPARE, p + LOWEST_OF(ends) - *begin, (ends != 0) & counted);
    *begin = select(*begin, p + LOWEST_OF(starts), starts != 0);
    ends &= ends - 1;
    starts &= starts - 1;
    const int${lanes} of = convert_int${lanes}(bin);
%for i in each:
    ++bins[of.s${i}];
%endfor
  }
}

// sums: period, its count, gap, its count of pyedmcl.recurrence.counts.Counts, and recurrent cells
static void count_columns(const int n_a, const int n_b, const int stride, global const uint* bits,
                          global uint* vertical, global uint* white, global uint* border,
                          global ushort* per_column, ulong* sums, const int spare) {
  for (int c = 0; c < n_a; c += ${lanes}) {
    placev begin = 0, is_white = -1, first = -1, last = -1, last_begin = 0, blacks = 0, points = 0;
    wordv black = 0;
    int p = 0;
    for (; p < n_b; p += 64) {
      const wordv v = WORDS64(bits + (size_t)(p / 32) * stride + c, stride, n_b - p), before = v << 1 | black;
      const wordv starts = v & ~before;
      black = v >> 63;
      first = select(first, p + LOWEST_OF(v), (v != 0) & (first < 0));
      last = select(last, p + HIGHEST_OF(v), v != 0);
      last_begin = select(last_begin, p + HIGHEST_OF(starts), starts != 0);
      blacks += as_long${lanes}(popcount(starts));
      points += as_long${lanes}(popcount(v));
      count_edges(v ^ before, p, &begin, &is_white, vertical, white - vertical, spare);
    }
    count_edges(black, p, &begin, &is_white, vertical, white - vertical, spare);
%for i in each:
    if (c + 0x${i} < n_a) {
      per_column[c + 0x${i}] = points.s${i};
      if (points.s${i}) {
        --white[first.s${i}];
        ++border[first.s${i}];
        ++border[n_b - 1 - last.s${i}];
        sums[0] += last_begin.s${i} - first.s${i};
        sums[1] += blacks.s${i} - 1;
        sums[2] += last.s${i} - first.s${i};
        sums[3] += points.s${i} - 1;
        sums[4] += points.s${i};
      } else {
        ++border[n_b];
      }
    }
%endfor
  }
  white[0] = border[0] = 0;  // lengths of no line
}

static void count_diagonals(const int n_a, const int n_b, const int n_diagonals, const int k_first, const int theiler,
                            global const uint* diagonals, global uint* lengths,
                            global ushort* per_diagonal, const int spare) {
  const int least = ${"0" if symmetric else "1 - n_a"};
  for (int k = ${"0" if symmetric else f"k_first + (least - k_first) / {lanes} * {lanes}"}; k < n_b; k += ${lanes}) {
    const int a_end = min(n_a, n_b - k);
    const placev of = k + SPARE, counted = (of >= (long)theiler) | (-of >= (long)theiler);
    placev begin = 0, points = 0;
    wordv black = 0;
    int p = max(-k - ${lanes - 1}, 0) & ~31;
    for (; p < a_end; p += 64) {
      const wordv v = WORDS64(diagonals + (size_t)(p / 32) * n_diagonals + k - k_first, n_diagonals, a_end - p);
      points += as_long${lanes}(popcount(v));
      const wordv before = v << 1 | black;
      wordv starts = v & ~before;
      const placev fresh = (black == 0) & (starts != 0);
      begin = select(begin, p + LOWEST_OF(starts), fresh);
      starts = select(starts, starts & (starts - 1), fresh);
      count_black(starts, before & ~v, p, &begin, lengths, counted, spare);
      black = v >> 63;
    }
    count_black(0, black, p, &begin, lengths, counted, spare);
%for i in each:
    if (k + 0x${i} >= least && k + 0x${i} < n_b) per_diagonal[k + 0x${i} - least] = points.s${i};
%endfor
  }
%if symmetric:
  // Both sides, but for the main diagonal.
  for (int length = 0; length <= n_a; ++length) lengths[length] *= 2;
  if (theiler > 0) return;
  int begin = 0;
  ulong black = 0;
  for (int p = 0; p < n_a; p += 64) {
    const ulong v = TWO_WORDS(diagonals + (size_t)(p / 32) * n_diagonals, n_diagonals, n_a - p);
    for (ulong edges = v ^ (v << 1 | black); edges; edges &= edges - 1) {
      const int at = p + LOWEST(edges);
      if (!(v >> (at - p) & 1)) --lengths[at - begin];
      begin = at;
    }
    black = v >> 63;
  }
  if (black) --lengths[n_a - begin];
%endif
}
</%def>
