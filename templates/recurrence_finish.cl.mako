## The ends of all lines, once all tiles are walked: the first and last runs of each line, which can go on no more, are counted,
## and so are the white cells at the border of the matrix. segments.clh explains segments, and segment_join.clh joins
## them, as pyedmcl/recurrence/counts.py does on the host for several devices and checkpoints.
##
##   finish_join        the segments of rows that another device has walked, behind those of the rows before
##   finish_begin       zeros
##   finish_diagonals   the ends of diagonals
##   finish_columns     the ends of columns, which are joined with rows where the matrix is symmetric
##   finish_end         counts added to the 64-bit sums of earlier tiles, and how long the longest line is
##
## wg: work-items of a group, each of which takes many lines: a group has bins of its own to add in the end.
## ---- parameters (python -m pyedmcl.kernels.describe --write) ----
## Given by the problem:
##   wg  work-items of a group
## ---- end of parameters ----
#define WG ${wg}
#define BINS 256

// Most runs are short, and all work-items would add to a few numbers: a group counts these in local memory.
inline void count_run(local uint* restrict bins, global uint* all, const int length) {
  if (length < BINS)
    atomic_inc(bins + length);
  else
    atomic_inc(all + length);
}

// Where the black and the white runs of a line are counted, by length, and whether they are.
typedef struct {
  local uint* black;
  local uint* white;
  global uint* all_black;
  global uint* all_white;
  int blacks, whites;
} tally_;

inline void count_final(const tally_* restrict tally, const int black, const int length) {
  if (black ? tally->blacks : tally->whites)
    count_run(black ? tally->black : tally->white, black ? tally->all_black : tally->all_white, length);
}

#include "segment_join.clh"

inline segment_ segment_at(global const int* restrict segments, const size_t n, const size_t line) {
  segment_ s;
  s.first_start = segments[line]; s.first_end = segments[line + n]; s.last_start = segments[line + 2 * n];
  s.last_end = segments[line + 3 * n]; s.count = segments[line + 4 * n];
  return s;
}

inline void clear_bins(local uint* restrict bins, const int n) {
  for (int b = get_local_id(0); b < n; b += WG) bins[b] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
}

inline void flush_bins(local const uint* restrict bins, global uint* all) {
  for (int b = get_local_id(0); b < BINS; b += WG)
    if (bins[b]) atomic_add(all + b, bins[b]);
}

// segments: [5][n] of diagonals k_first and on; runs of those within the Theiler window do not count. lengths: of diagonal lines.
kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void finish_diagonals(global const int* restrict segments, const ulong n, const long k_first, const int theiler,
                      global uint* restrict lengths) {
  local uint bins[BINS];
  clear_bins(bins, BINS);
  for (size_t line = get_global_id(0); line < n; line += get_global_size(0)) {
    const long k = k_first + (long)line;
    const int first_start = segments[line];
    if (first_start < 0 || (k < theiler && -k < theiler)) continue;
    const int last_start = segments[line + 2 * n];
    count_run(bins, lengths, segments[line + n] - first_start);
    if (last_start != first_start) count_run(bins, lengths, segments[line + 3 * n] - last_start);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  flush_bins(bins, lengths);
}

// a: segments of n lines, [5][n]; b: of the rows behind them, [5][held], from line `first` on, the others have no black cell
// there. a becomes the segments of both. k_first, theiler: of diagonals; those within the Theiler window do not count.
// counts: of all lines, as in finish_begin; verticals: whether a and b are columns or rows.
kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void finish_join(global int* restrict a, global const int* restrict b, const ulong n, const ulong first, const ulong held,
                 const long k_first, const int theiler, const int verticals, global uint* counts, const ulong n_lengths) {
  local uint bins[2 * BINS];
  clear_bins(bins, 2 * BINS);
  global uint* black = counts + (verticals ? n_lengths : 0);
  global uint* white = counts + 2 * n_lengths;
  tally_ tally = {bins, bins + BINS, black, white, 1, verticals};
  for (size_t at = get_global_id(0); at < held; at += get_global_size(0)) {
    const size_t line = first + at;
    const long k = k_first + (long)line;
    tally.blacks = verticals || k >= theiler || -k >= theiler;
    const segment_ s = join(segment_at(a, n, line), segment_at(b, held, at), &tally);
    a[line] = s.first_start; a[line + n] = s.first_end; a[line + 2 * n] = s.last_start; a[line + 3 * n] = s.last_end;
    a[line + 4 * n] = s.count;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  flush_bins(bins, black);
  flush_bins(bins + BINS, white);
}

// columns, rows: segments, [5][n]. Where the matrix is symmetric column i goes on as row i, and the column's number of black
// cells becomes that of both. counts: as in finish_begin. totals: [group][number of columns that have black cells, sums over
// these of the first black cell, of the start and of the end of the last run, and of black cells].
kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void finish_columns(global int* restrict columns, global const int* restrict rows, const int n, const int n_rows,
                    const int symmetric, global uint* counts, const ulong n_lengths, global ulong* restrict totals) {
  global uint* black = counts + n_lengths;
  global uint* white = counts + 2 * n_lengths;
  global uint* border = counts + 3 * n_lengths;
  local uint bins[3 * BINS];
  local ulong sums[5 * WG];
  clear_bins(bins, 3 * BINS);
  const tally_ tally = {bins, bins + BINS, black, white, 1, 1};
  ulong sum[5] = {0, 0, 0, 0, 0};
  for (size_t line = get_global_id(0); line < n; line += get_global_size(0)) {
    segment_ s = segment_at(columns, n, line);
    if (symmetric) {
      s = join(s, segment_at(rows, n, line), &tally);
      columns[line + 4 * (size_t)n] = s.count;
    }
    if (s.first_start < 0) {
      count_run(bins + 2 * BINS, border, n_rows);
      continue;
    }
    count_run(bins, black, s.first_end - s.first_start);
    if (s.last_start != s.first_start) count_run(bins, black, s.last_end - s.last_start);
    if (s.first_start > 0) count_run(bins + 2 * BINS, border, s.first_start);
    if (s.last_end < n_rows) count_run(bins + 2 * BINS, border, n_rows - s.last_end);
    sum[0] += 1; sum[1] += s.first_start; sum[2] += s.last_start; sum[3] += s.last_end; sum[4] += s.count;
  }
  for (int of = 0; of < 5; ++of) sums[of * WG + get_local_id(0)] = sum[of];
  barrier(CLK_LOCAL_MEM_FENCE);
  flush_bins(bins, black);
  flush_bins(bins + BINS, white);
  flush_bins(bins + 2 * BINS, border);
  for (int of = get_local_id(0); of < 5; of += WG) {
    ulong total = 0;
    for (int i = 0; i < WG; ++i) total += sums[of * WG + i];
    totals[get_group_id(0) * 5 + of] = total;
  }
}

// counts: [diagonal, black, white, border][n]. Before lines are finished: none at the border, and no longest one.
kernel void finish_begin(global uint* restrict counts, global int* restrict longest, const ulong n) {
  const size_t i = get_global_id(0);
  if (i < n) counts[3 * n + i] = 0;
  if (i < 4) longest[i] = 0;
}

// Adds counts to the sums of earlier tiles; longest becomes the greatest length that occurs in each of the four, 0 for none.
kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void finish_end(global const uint* restrict counts, global ulong* restrict sums, global int* restrict longest, const ulong n) {
  local int most;
  if (get_local_id(0) == 0) most = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  const size_t kind = get_global_id(1);
  int mine = 0;
  for (size_t i = get_global_id(0); i < n; i += get_global_size(0)) {
    const ulong sum = (kind < 3 ? sums[kind * n + i] : 0) + counts[kind * n + i];
    sums[kind * n + i] = sum;
    if (sum) mine = (int)i;
  }
  if (mine) atomic_max(&most, mine);
  barrier(CLK_LOCAL_MEM_FENCE);
  if (get_local_id(0) == 0 && most) atomic_max(longest + kind, most);
}
