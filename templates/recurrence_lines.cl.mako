## Lines of a tile of recurrence bits, along diagonals, rows and columns at once: each line's words are walked in order, the
## result is joined with what is known of the line from earlier tiles. A lone lane counts a word's runs at once. Lanes of a
## vector, on processors, list the places where the colour turns first and count the runs between them afterwards: then no
## branch depends on what the bits are, but for how many words have turns.
## ---- parameters (python -m pyedmcl.kernels.describe --write) ----
## Tuned for speed, never changing what is computed (values; default of a processor, of a GPU):
##   wg       work-items of a group; they share histograms (1 32 64 128 256; 1, 256)
##   lanes    lines of a work-item, side by side (1 4 8 16; 16, 1)
##   batch    words of a line that are loaded together (1 2 4 8 16; 1, 8)
##   bitwise  runs as long as that are counted a word at once (0 1 2 3 4; 0, 2)
##   bins     line lengths counted in local memory (64 256 512 1024 2048; 1024, 1024)
## ---- end of parameters ----
#define WG ${wg}
#define BATCH ${batch}
#define BINS ${bins}
#define BITWISE ${bitwise}
#include "segments.clh"

// Lines within the Theiler window count where nobody looks.
#define QUIET(OFFSET)                                                \
  do {                                                               \
    const int quiet_ = abs(OFFSET) < theiler;                        \
    tally.black = quiet_ ? spare : counted;                          \
    tally.all_black = quiet_ ? all_spare : all_counted;              \
  } while (0)

%if lanes > 1:
#define TURNS 128  // of a line that are listed before they are counted
inline uint lanes_of(const int${lanes} there) {
%if lanes == 16:
  const int16 bit = there & (int16)(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768);
  const int8 h = bit.lo | bit.hi;
  const int4 q = h.lo | h.hi;
%elif lanes == 8:
  const int8 bit = there & (int8)(1, 2, 4, 8, 16, 32, 64, 128);
  const int4 q = bit.lo | bit.hi;
%else:
  const int4 q = there & (int4)(1, 2, 4, 8);
%endif
  const int2 d = q.lo | q.hi;
  return (uint)(d.x | d.y);
}

// Counts the runs that end by a line's listed turns, and forgets these. Also the white cells before the first black run,
// and that run: settle() takes back what is not final.
void take_turns(line_* restrict s, const tally_* restrict tally, const int* restrict at, int* restrict n_turns,
                int* restrict black) {
  const int n = *n_turns, first = *black;  // 1: the first run is black
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
  *n_turns = 0;
  s->last = at[n - 1];
  s->count += count;
}
%endif

// Lines [line + skip, line + valid) of LANES that lie side by side; their words are `stride` apart, 32 cells each, the first
// at `position` (+ shear * l). known: [field][n_lines] of what earlier tiles gave; this tile lies behind them, or in front where `in_front`.
// Diagonals are at `offset` and on; those within the Theiler window count nothing but their cells.
void walk(global const uint* restrict words, const size_t stride, const int n_words, const int position,
          global int* restrict known, const long n_lines, const long line, const int skip, const int valid, const int in_front,
          const int shear, const int offset, const int theiler, local uint* restrict spare,
          global uint* restrict all_spare, tally_ tally) {
  if (skip >= valid) return;
  local uint* counted = tally.black;
  global uint* all_counted = tally.all_black;
%if lanes == 1:
  line_ s[1];
  uint before[1] = {0};  // the word before
  s[0].first = 0x7fffffff; s[0].last = position; s[0].count = 0;
  for (int length = 0; length <= BITWISE; ++length) tally.short_black[length] = tally.short_white[length] = 0;
  QUIET(offset);
#define NEXT(WORD, W)                                                                                   \
  do {                                                                                                  \
    const uint word_ = WORD, turns_ = word_ ^ (word_ << 1 | before[0] >> 31);                           \
    s[0].count += popcount(word_);                                                                      \
    if (turns_) visit(&s[0], &tally, word_, turns_, (int)before[0] < 0, position + 32 * (W));           \
    before[0] = word_;                                                                                  \
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
  int n[LANES], black[LANES], turned[LANES * TURNS];  // turns that are listed, the colour before them, where they are
  for (int l = 0; l < LANES; ++l) {
    s[l].first = 0x7fffffff; s[l].last = 0; s[l].count = 0;
    n[l] = black[l] = 0;
  }
  uint${lanes} before = 0;  // like the last cell of the word before
  const uint asked = (1u << valid) - (1u << skip);
  for (int w = 0; w < n_words; ++w) {
    const uint${lanes} word = vload${lanes}(0, words + (size_t)w * stride), turns = word ^ (word << 1 | before & 1);
    before = as_uint${lanes}(as_int${lanes}(word) >> 31);
    uint lanes = lanes_of(turns != 0) & asked;
    if (!lanes) continue;
    uint each[LANES];
    vstore${lanes}(turns, 0, each);
    do {
      const int l = 31 - (int)clz(lanes & -lanes);
      lanes &= lanes - 1;
      if (n[l] > TURNS - 32) {
        QUIET(offset + l);
        take_turns(&s[l], &tally, turned + l * TURNS, n + l, black + l);
      }
      uint left = each[l];
      int* at = turned + l * TURNS + n[l];
      // Most words have few turns. That many are written whether they are there or not: a loop would end at a guess.
%for i in range(6):
      at[${i}] = 32 * w + 31 - (int)clz(left & -left); left &= left - 1;
%endfor
      for (at += 6; left; left &= left - 1) *at++ = 32 * w + 31 - (int)clz(left & -left);
      n[l] += popcount(each[l]);
    } while (lanes);
  }
  for (int l = skip; l < valid; ++l) {
    QUIET(offset + l);
    take_turns(&s[l], &tally, turned + l * TURNS, n + l, black + l);
    if (black[l]) s[l].count += 32 * n_words - s[l].last;
    s[l].first += position + shear * l;
    s[l].last += position + shear * l;
  }
%endif
  for (int l = skip; l < valid; ++l) {
    if (!s[l].count) continue;
    QUIET(offset + l);
    const segment_ found = settle(s[l], &tally, words + l, stride, n_words, position + shear * l, ${'(int)before[0] < 0' if lanes == 1 else 'black[l]'});
    global int* restrict mine = known + line + l;
    segment_ old;
    old.first_start = mine[0]; old.first_end = mine[n_lines]; old.last_start = mine[2 * n_lines];
    old.last_end = mine[3 * n_lines]; old.count = mine[4 * n_lines];
    const segment_ both = in_front ? join(found, old, &tally) : join(old, found, &tally);
    mine[0] = both.first_start; mine[n_lines] = both.first_end; mine[2 * n_lines] = both.last_start;
    mine[3 * n_lines] = both.last_end; mine[4 * n_lines] = both.count;
  }
%if lanes == 1:
  flush_short(&tally);
%endif
}

// bits, rows, columns: as recurrence_bits and recurrence_turn leave them. The tile has n_words * 32 rows from i0 and
// n_diagonals diagonals from k0. Groups below groups_diagonals walk diagonals, those below groups_rows rows (none where
// the matrix is not symmetric), the others columns. known_*: [5][number of lines]; diagonals begin with k_first.
// histograms: [diagonal, black vertical, white vertical, what is not counted][longest + 1].
kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void recurrence_lines(global const uint* restrict bits, global const uint* restrict rows, global const uint* restrict columns,
                      const int n_words, const int n_diagonals, const int i0, const int k0, const int n_rows, const int n_columns,
                      const int k_first, const int k_end, const int theiler, const int groups_diagonals, const int groups_rows,
                      global int* restrict known_diagonals, global int* restrict known_rows, global int* restrict known_columns,
                      global uint* restrict histograms, const int longest, const ulong bits_begin) {
  // Black, and white or, of diagonals, what is not counted.
  local uint few[2 * BINS];
  for (int b = get_local_id(0); b < 2 * BINS; b += WG) few[b] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  const int group = get_group_id(0);
  tally_ tally;
  tally.black = few;
  tally.white = few + BINS;
  tally.all_black = histograms + longest + 1;
  tally.all_white = histograms + 2 * (longest + 1);
  tally.whites = 1;
  // One call for all kinds of lines: what a call becomes is long.
  const int lane0 = (int)get_local_id(0) * LANES;
  global const uint* words;
  global int* known;
  long n_lines, line;
  size_t stride;
  int here = n_words, position = i0, skip = 0, valid, rows_here = 0, offset = 0, window = 0;
  if (group < groups_diagonals) {
    const int at = group * WG * LANES + lane0, k = k0 + at;
    tally.all_black = histograms;
    tally.whites = 0;
    words = bits + bits_begin + at;
    stride = n_diagonals;
    known = known_diagonals;
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
    known = known_rows;
    n_lines = n_rows;
    line = (long)i0 + at;
    valid = min(min(LANES, 32 * n_words - at), n_rows - i0 - at);
    rows_here = 1;
  } else {
    const int at = (group - groups_diagonals - groups_rows) * WG * LANES + lane0, j = i0 + k0 + at;
    // Words that touch the tile's diagonals: others were not written.
    const int c = at / 32, first = max(c - n_diagonals / 32, 0), end = min(c + 1, n_words);
    stride = n_diagonals + 32 * n_words;
    words = columns + (size_t)first * stride + at;
    here = end - first;
    position = i0 + 32 * first;
    known = known_columns;
    n_lines = n_columns;
    line = j;
    skip = max(-j, 0);
    valid = here > 0 ? min(min(LANES, (int)stride - at), n_columns - j) : 0;
  }
  walk(words, stride, here, position, known, n_lines, line, skip, valid, rows_here, rows_here, offset, window, few + BINS,
       histograms + 3 * (longest + 1), tally);
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int b = get_local_id(0); b < BINS; b += WG) {
    if (few[b]) atomic_add(histograms + (group < groups_diagonals ? 0 : longest + 1) + b, few[b]);
    if (few[BINS + b] && group >= groups_diagonals) atomic_add(histograms + 2 * (longest + 1) + b, few[BINS + b]);
  }
}

// Adds counts to sums of 64 bits and sets them to zero again: a count of 32 bits holds some tiles.
kernel void recurrence_fold(global uint* restrict counts, global ulong* restrict sums, const int n) {
  const int i = get_global_id(0);
  if (i < n && counts[i]) {
    sums[i] += counts[i];
    counts[i] = 0;
  }
}

// Lines of which nothing is known. known: [5][n].
kernel void recurrence_clear(global int* restrict known, const ulong n) {
  const size_t i = get_global_id(0);
  if (i < n) {
    known[i] = -1;
    known[i + n] = known[i + 2 * n] = known[i + 3 * n] = known[i + 4 * n] = 0;
  }
}

kernel void recurrence_zero(global uint* restrict numbers, const ulong n) {
  const size_t i = get_global_id(0);
  if (i < n) numbers[i] = 0;
}
