## Lines of a tile of recurrence bits: the runs along its diagonals, rows and columns are counted by length, and the segment of
## each line is joined with that of earlier tiles. segments.clh explains runs, edges and segments.
##
## A tile has 32 n_words rows from i0 and n_diagonals diagonals from k0. One launch walks all its lines; each work-item walks
## LANES neighbouring lines of one kind, word after word (layouts: recurrence_bits, recurrence_transpose):
##
##      group               0 ... groups_diagonals - 1  |  ... + groups_rows - 1      |  ...
##      lines               diagonals k0, k0 + 1, ...   |  rows i0, i0 + 1, ...       |  columns i0 + k0, ...
##      words               bits                        |  rows                       |  columns
##      earlier tiles hold  the rows above              |  the columns to the right * |  the rows above
##
##   * Where the matrix is symmetric, tiles have only cells on and above the main diagonal, and column i goes on below it as
##     row i. Tiles are walked from right to left, so that earlier tiles hold what follows in a row. In other matrices rows
##     are not walked (groups_rows = 0).
##
## Parameters
##   lanes = 1   A scalar work-item walks a line and counts the runs of a word at once: suits GPUs, where work-items that
##               branch differently wait for each other.
##   lanes > 1   A vector of lines, on processors. Their edges are listed first, and the runs between them are counted
##               afterwards: then no branch depends on the cells, except that words without edges are skipped.
##   batch       words of a line that are loaded before the first of them is looked at (scalar work-items)
##   bitwise     runs of up to `bitwise` cells are counted by bit operations on a whole word (scalar work-items)
##   bins        lengths that are counted in local memory; longer lines are counted in global memory
##   wg          work-items of a group, which share the bins
##
## Types and names in capitals that are not defined here come from segments.clh (runs, segments). LANES is `lanes`.
## ---- parameters (python -m pyedmcl.kernels.describe --write) ----
## Tuned for speed, never changing what is computed (values; default of a processor, of a GPU):
##   wg       work-items of a group; they share histograms (1 32 64 128 256; 1, 256)
##   lanes    lines of a work-item, side by side (1 4 8 16; 16, 1)
##   batch    words of a line that are loaded together (1 2 4 8 16; 1, 8)
##   bitwise  runs of up to this many cells are counted by bit operations on a whole word (0 1 2 3 4; 0, 2)
##   bins     line lengths counted in local memory (64 256 512 1024 2048; 1024, 1024)
## ---- end of parameters ----
#define WG ${wg}
#define BATCH ${batch}
#define BINS ${bins}
#define BITWISE ${bitwise}
#include "segments.clh"

// Within the Theiler window the black runs of a diagonal do not count: they are added to bins and lengths that nothing reads.
#define COUNT_OR_SPARE(OFFSET)                                       \
  do {                                                               \
    const int in_window_ = abs(OFFSET) < theiler;                    \
    tally.black = in_window_ ? spare : counted;                      \
    tally.all_black = in_window_ ? all_spare : all_counted;          \
  } while (0)

%if lanes > 1:
// ---- Edges of several lines, listed

#define LISTED 128  // edges of a line that are listed before their runs are counted

// The lanes in which a comparison holds, as bits.
inline uint lanes_of(const int${lanes} holds) {
%if lanes == 16:
  const int16 bit = holds & (int16)(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768);
  const int8 h = bit.lo | bit.hi;
  const int4 q = h.lo | h.hi;
%elif lanes == 8:
  const int8 bit = holds & (int8)(1, 2, 4, 8, 16, 32, 64, 128);
  const int4 q = bit.lo | bit.hi;
%else:
  const int4 q = holds & (int4)(1, 2, 4, 8);
%endif
  const int2 d = q.lo | q.hi;
  return (uint)(d.x | d.y);
}

// Counts the runs that end at the listed edges of a line, and empties the list. at: the positions of the edges; black: in, the
// colour before the first listed edge; out, the colour after the last. The white cells before the first black run and that run
// itself are counted, too: segment_of() takes back what is not final.
void count_listed(line_* restrict s, const tally_* restrict tally, const int* restrict at, int* restrict n_edges,
                  int* restrict black) {
  const int n = *n_edges, first = *black;  // 1: the first run is black
  if (!n) return;
  s->first = min(s->first, at[0]);
  const int length = at[0] - s->last;
  if (first || tally->whites) count_run(tally, first, length, 1);
  int count = first ? length : 0;
  for (int i = 1 + first; i < n; i += 2) {
    const int run = at[i] - at[i - 1];
    count_run(tally, 1, run, 1);
    count += run;
  }
  if (tally->whites)
    for (int i = 2 - first; i < n; i += 2) count_run(tally, 0, at[i] - at[i - 1], 1);
  *black = first ^ (n & 1);
  *n_edges = 0;
  s->last = at[n - 1];
  s->count += count;
}
%endif

// ---- Walking: LANES lines that lie side by side
//
// line         of the first lane. Lanes skip to valid - 1 exist in the matrix; the others are padding
// words        of the lines; successive words of a line are `stride` apart, and hold 32 cells each
// position     of the first cell; each further lane begins `shear` cells later (rows: their first cell lies one further right)
// segments     [field][n_lines], of what earlier tiles gave. The piece walked here follows the one in `segments`, or precedes it
//              where `in_front`
// offset       of the first lane's diagonal; black runs of diagonals within the Theiler window go to spare and all_spare
void walk(global const uint* restrict words, const size_t stride, const int n_words, const int position,
          global int* restrict segments, const long n_lines, const long line, const int skip, const int valid,
          const int in_front, const int shear, const int offset, const int theiler, local uint* restrict spare,
          global uint* restrict all_spare, tally_ tally) {
  if (skip >= valid) return;
  local uint* counted = tally.black;
  global uint* all_counted = tally.all_black;
%if lanes == 1:
  line_ s[1];
  uint before[1] = {0};  // the word before
  s[0].first = 0x7fffffff; s[0].last = position; s[0].count = 0;
  for (int length = 0; length <= BITWISE; ++length) tally.short_black[length] = tally.short_white[length] = 0;
  COUNT_OR_SPARE(offset);
#define NEXT(WORD, W)                                                                                             \
  do {                                                                                                            \
    const uint word_ = WORD, edges_ = word_ ^ (word_ << 1 | before[0] >> 31);                                     \
    s[0].count += popcount(word_);                                                                                \
    if (edges_) count_runs_of_word(&s[0], &tally, word_, edges_, (int)before[0] < 0, position + 32 * (W));        \
    before[0] = word_;                                                                                            \
  } while (0)
  global const uint* restrict at = words;
  int w = 0;
%if batch > 1:
#pragma unroll 1
  for (; w + BATCH <= n_words; w += BATCH) {
%for b in range(batch):
    const uint word${b} = *at;
    at += stride;
%endfor
%for b in range(batch):
    NEXT(word${b}, w + ${b});
%endfor
  }
%endif
#pragma unroll 1
  for (; w < n_words; ++w, at += stride) NEXT(*at, w);
%else:
  line_ s[LANES];
  int n[LANES], black[LANES], edge_at[LANES * LISTED];  // of each line: listed edges, the colour before them, where they are
  for (int l = 0; l < LANES; ++l) {
    s[l].first = 0x7fffffff; s[l].last = 0; s[l].count = 0;
    n[l] = black[l] = 0;
  }
  uint${lanes} before = 0;  // all bits like the last cell of the word before
  const uint walked = (1u << valid) - (1u << skip);
  for (int w = 0; w < n_words; ++w) {
    const uint${lanes} word = vload${lanes}(0, words + (size_t)w * stride), edges = word ^ (word << 1 | before & 1);
    before = as_uint${lanes}(as_int${lanes}(word) >> 31);
    uint with_edges = lanes_of(edges != 0) & walked;  // lanes, as bits
    if (!with_edges) continue;
    uint edges_of[LANES];
    vstore${lanes}(edges, 0, edges_of);
    do {
      const int l = 31 - (int)clz(with_edges & -with_edges);
      with_edges &= with_edges - 1;
      if (n[l] > LISTED - 32) {
        COUNT_OR_SPARE(offset + l);
        count_listed(&s[l], &tally, edge_at + l * LISTED, n + l, black + l);
      }
      uint left = edges_of[l];
      int* at = edge_at + l * LISTED + n[l];
      // Most words have at most six edges. Six places are written, however many edges there are: the processor would guess
      // the end of a loop over the edges wrongly for nearly every word. The places behind the last edge are overwritten by
      // the next word.
%for i in range(6):
      at[${i}] = 32 * w + 31 - (int)clz(left & -left); left &= left - 1;
%endfor
      for (at += 6; left; left &= left - 1) *at++ = 32 * w + 31 - (int)clz(left & -left);
      n[l] += popcount(edges_of[l]);
    } while (with_edges);
  }
  for (int l = skip; l < valid; ++l) {
    COUNT_OR_SPARE(offset + l);
    count_listed(&s[l], &tally, edge_at + l * LISTED, n + l, black + l);
    if (black[l]) s[l].count += 32 * n_words - s[l].last;
    s[l].first += position + shear * l;
    s[l].last += position + shear * l;
  }
%endif
  // Join each line's segment with what earlier tiles gave.
  for (int l = skip; l < valid; ++l) {
    if (!s[l].count) continue;
    COUNT_OR_SPARE(offset + l);
    const segment_ here = segment_of(s[l], &tally, words + l, stride, n_words, position + shear * l,
                                     ${'(int)before[0] < 0' if lanes == 1 else 'black[l]'});
    global int* restrict mine = segments + line + l;
    segment_ old;
    old.first_start = mine[0]; old.first_end = mine[n_lines]; old.last_start = mine[2 * n_lines];
    old.last_end = mine[3 * n_lines]; old.count = mine[4 * n_lines];
    const segment_ both = in_front ? join(here, old, &tally) : join(old, here, &tally);
    mine[0] = both.first_start; mine[n_lines] = both.first_end; mine[2 * n_lines] = both.last_start;
    mine[3 * n_lines] = both.last_end; mine[4 * n_lines] = both.count;
  }
%if lanes == 1:
  flush_short(&tally);
%endif
}

// ---- All lines of a tile
//
// *_segments: [5][number of lines of the matrix]; the first diagonal of the matrix is k_first, and k_end - 1 its last.
// histograms: [diagonal, black vertical, white vertical, border][longest + 1]. Here the fourth takes runs that must not count;
// finish_begin (recurrence_finish) clears it before white runs at the border are counted in it.
// bits_begin: the first word of the radius at work, in bits and in rows.
kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void recurrence_lines(global const uint* restrict bits, global const uint* restrict rows,
                      global const uint* restrict columns, const int n_words, const int n_diagonals, const int i0,
                      const int k0, const int n_rows, const int n_columns, const int k_first, const int k_end,
                      const int theiler, const int groups_diagonals, const int groups_rows,
                      global int* restrict diagonal_segments, global int* restrict row_segments,
                      global int* restrict column_segments, global uint* restrict histograms, const int longest,
                      const ulong bits_begin) {
  // Bins of black runs, then those of white runs. White runs of diagonals do not count: there these bins are the spare ones.
  local uint bins[2 * BINS];
  for (int b = get_local_id(0); b < 2 * BINS; b += WG) bins[b] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  const int group = get_group_id(0);
  tally_ tally;
  tally.black = bins;
  tally.white = bins + BINS;
  tally.all_black = histograms + longest + 1;
  tally.all_white = histograms + 2 * (longest + 1);
  tally.whites = 1;
  // What the three kinds of lines differ in. There is one call of walk() for all of them: its code is long.
  const int lane0 = (int)get_local_id(0) * LANES;
  global const uint* words;
  global int* segments;
  long n_lines, line;
  size_t stride;
  int here = n_words, position = i0, skip = 0, valid, is_row = 0, offset = 0, window = 0;
  if (group < groups_diagonals) {
    const int at = group * WG * LANES + lane0, k = k0 + at;
    tally.all_black = histograms;
    tally.whites = 0;
    words = bits + bits_begin + at;
    stride = n_diagonals;
    segments = diagonal_segments;
    n_lines = (long)k_end - k_first;
    line = (long)k - k_first;
    skip = max(k_first - k, 0);
    valid = min(min(LANES, n_diagonals - at), k_end - k);
    here = clamp((n_columns - i0 - k + 31) >> 5, 0, n_words);  // words behind the last column were not written
    offset = k;
    window = theiler;
  } else if (group < groups_diagonals + groups_rows) {
    // Positions are columns: below the diagonal a column of the matrix goes on as this row.
    const int at = (group - groups_diagonals) * WG * LANES + lane0;
    words = rows + bits_begin + at;
    stride = 32 * n_words;
    position = i0 + at + k0;
    here = clamp((n_columns - position + 31) >> 5, 0, n_diagonals / 32);
    segments = row_segments;
    n_lines = n_rows;
    line = (long)i0 + at;
    valid = min(min(LANES, 32 * n_words - at), n_rows - i0 - at);
    is_row = 1;
  } else {
    const int at = (group - groups_diagonals - groups_rows) * WG * LANES + lane0, j = i0 + k0 + at;
    // Words that touch the tile's diagonals: others were not written.
    const int c = at / 32, first = max(c - n_diagonals / 32, 0), end = min(c + 1, n_words);
    stride = n_diagonals + 32 * n_words;
    words = columns + (size_t)first * stride + at;
    here = end - first;
    position = i0 + 32 * first;
    segments = column_segments;
    n_lines = n_columns;
    line = j;
    skip = max(-j, 0);
    valid = here > 0 ? min(min(LANES, (int)stride - at), n_columns - j) : 0;
  }
  walk(words, stride, here, position, segments, n_lines, line, skip, valid, is_row, is_row, offset, window, bins + BINS,
       histograms + 3 * (longest + 1), tally);
  // Local bins to global memory.
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int b = get_local_id(0); b < BINS; b += WG) {
    if (bins[b]) atomic_add(histograms + (group < groups_diagonals ? 0 : longest + 1) + b, bins[b]);
    if (bins[BINS + b] && group >= groups_diagonals) atomic_add(histograms + 2 * (longest + 1) + b, bins[BINS + b]);
  }
}

// ---- What is done before, between and after tiles

// Adds counts to sums of 64 bits and sets them to zero again: 32 bits hold the counts of some tiles only.
kernel void recurrence_fold(global uint* restrict counts, global ulong* restrict sums, const int n) {
  const int i = get_global_id(0);
  if (i < n && counts[i]) {
    sums[i] += counts[i];
    counts[i] = 0;
  }
}

// Lines of which no piece was walked yet. segments: [5][n].
kernel void recurrence_clear(global int* restrict segments, const ulong n) {
  const size_t i = get_global_id(0);
  if (i < n) {
    segments[i] = -1;
    segments[i + n] = segments[i + 2 * n] = segments[i + 3 * n] = segments[i + 4 * n] = 0;
  }
}

kernel void recurrence_zero(global uint* restrict numbers, const ulong n) {
  const size_t i = get_global_id(0);
  if (i < n) numbers[i] = 0;
}
