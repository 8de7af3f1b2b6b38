## Lines of a tile of recurrence bits, along diagonals, rows and columns at once: each line's words are walked in order, the
## result is joined with what is known of the line from earlier tiles.
#define LANES ${lanes}
#define WG ${wg}
#define AHEAD ${ahead}
#define BINS ${bins}
#include "segments.clh"

// Lines [line + skip, line + valid) of LANES that lie side by side; their words are `stride` apart, 32 cells each, the first
// at `position` (+ shear * l). known: [field][n_lines] of what earlier tiles gave; this tile lies behind them, or in front where `in_front`.
// Diagonals are at `offset` and on; those within the Theiler window count nothing but their cells.
void walk(global const uint* restrict words, const size_t stride, const int n_words, const int position,
          global int* restrict known, const long n_lines, const long line, const int skip, const int valid, const int in_front,
          const int shear, const int offset, const int theiler, tally_ tally) {
  if (skip >= valid) return;
  segment_ s[LANES];
  uint inside[LANES];  // all ones within a black run
  int start[LANES];
  for (int l = 0; l < LANES; ++l) {
    s[l].first_start = -1; s[l].count = 0; s[l].first_end = 0; s[l].last_start = 0; s[l].last_end = 0;
    inside[l] = 0; start[l] = 0;
  }
  for (int w0 = 0; w0 < n_words; w0 += AHEAD) {
    uint ahead[AHEAD][LANES];
#pragma unroll
    for (int a = 0; a < AHEAD; ++a)
      if (w0 + a < n_words) {
%if lanes == 1:
        ahead[a][0] = words[(size_t)(w0 + a) * stride];
%else:
        vstore${lanes}(vload${lanes}(0, words + (size_t)(w0 + a) * stride), 0, ahead[a]);
%endif
      }
#pragma unroll
    for (int a = 0; a < AHEAD; ++a) {
      if (w0 + a >= n_words) break;
%if lanes > 1:
      if (!any(vload${lanes}(0, ahead[a]) != vload${lanes}(0, inside))) continue;
%endif
      for (int l = 0; l < LANES; ++l) {
        const uint word = ahead[a][l];
        if (word == inside[l]) continue;
        uint edges = word ^ (word << 1 | (inside[l] & 1));
        while (edges) {
          const int at = position + shear * l + 32 * (w0 + a) + 31 - (int)clz(edges & -edges);
          edges &= edges - 1;
          tally.quiet = abs(offset + l) < theiler;
          if (inside[l]) add_run(&s[l], tally, start[l], at);
          start[l] = at;
          inside[l] = ~inside[l];
        }
      }
    }
  }
  for (int l = skip; l < valid; ++l) {
    tally.quiet = abs(offset + l) < theiler;
    if (inside[l]) add_run(&s[l], tally, start[l], position + shear * l + 32 * n_words);
    if (s[l].first_start < 0) continue;
    global int* restrict mine = known + line + l;
    segment_ old;
    old.first_start = mine[0]; old.first_end = mine[n_lines]; old.last_start = mine[2 * n_lines];
    old.last_end = mine[3 * n_lines]; old.count = mine[4 * n_lines];
    const segment_ both = in_front ? join(s[l], old, tally) : join(old, s[l], tally);
    mine[0] = both.first_start; mine[n_lines] = both.first_end; mine[2 * n_lines] = both.last_start;
    mine[3 * n_lines] = both.last_end; mine[4 * n_lines] = both.count;
  }
}

// bits, rows, columns: as recurrence_bits and recurrence_turn leave them. The tile has n_words * 32 rows from i0 and
// n_diagonals diagonals from k0. Groups below groups_diagonals walk diagonals, those below groups_rows rows (none where
// the matrix is not symmetric), the others columns. known_*: [5][number of lines]; diagonals begin with k_first.
// histograms: [diagonal, black vertical, white vertical][longest + 1].
kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void recurrence_lines(global const uint* restrict bits, global const uint* restrict rows, global const uint* restrict columns,
                      const int n_words, const int n_diagonals, const int i0, const int k0, const int n_rows, const int n_columns,
                      const int k_first, const int k_end, const int theiler, const int groups_diagonals, const int groups_rows,
                      global int* restrict known_diagonals, global int* restrict known_rows, global int* restrict known_columns,
                      global uint* restrict histograms, const int longest, const ulong bits_begin) {
  local uint few[2 * BINS];
  for (int b = get_local_id(0); b < 2 * BINS; b += WG) few[b] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  const int group = get_group_id(0);
  tally_ tally;
  tally.black = few;
  tally.white = few + BINS;
  tally.quiet = 0;
  tally.all_black = histograms + longest + 1;
  tally.all_white = histograms + 2 * (longest + 1);
  const int lane0 = (int)get_local_id(0) * LANES;
  if (group < groups_diagonals) {
    const int at = group * WG * LANES + lane0, k = k0 + at;
    tally.all_black = histograms;
    tally.all_white = 0;
    walk(bits + bits_begin + at, n_diagonals, n_words, i0, known_diagonals, (long)k_end - k_first, (long)k - k_first, max(k_first - k, 0),
         min(min(LANES, n_diagonals - at), k_end - k), 0, 0, k, theiler, tally);
  } else if (group < groups_diagonals + groups_rows) {
    // Positions are columns: below the diagonal a column of the matrix goes on as this row.
    const int at = (group - groups_diagonals) * WG * LANES + lane0;
    walk(rows + at, 32 * n_words, n_diagonals / 32, i0 + at + k0, known_rows, n_rows, (long)i0 + at, 0,
         min(min(LANES, 32 * n_words - at), n_rows - i0 - at), 1, 1, 0, 0, tally);
  } else {
    const int at = (group - groups_diagonals - groups_rows) * WG * LANES + lane0, j = i0 + k0 + at, width = n_diagonals + 32 * n_words;
    // Words that touch the tile's diagonals: others were not written.
    const int c = at / 32, first = max(c - n_diagonals / 32, 0), end = min(c + 1, n_words);
    if (first < end)
      walk(columns + (size_t)first * width + at, width, end - first, i0 + 32 * first, known_columns, n_columns, j, max(-j, 0),
           min(min(LANES, width - at), n_columns - j), 0, 0, 0, 0, tally);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int b = get_local_id(0); b < BINS; b += WG) {
    if (few[b]) atomic_add(tally.all_black + b, few[b]);
    if (few[BINS + b]) atomic_add(histograms + 2 * (longest + 1) + b, few[BINS + b]);
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
