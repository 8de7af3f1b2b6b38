## What is left once all tiles are walked: the first and last runs of each line, which may go on no more, and the white cells at
## the border. The same algebra as in segments.clh and in pyedmcl/recurrence/partial.py.
## ---- parameters (python -m pyedmcl.kernels.describe --write) ----
## Given by the problem:
##   wg  work-items of a group
## ---- end of parameters ----
#define WG ${wg}
#define BINS 256

typedef struct {
  int first_start, first_end, last_start, last_end, count;  // first_start = -1: no black cell
} segment_;

inline segment_ known_of(global const int* restrict known, const size_t n, const size_t line) {
  segment_ s;
  s.first_start = known[line]; s.first_end = known[line + n]; s.last_start = known[line + 2 * n];
  s.last_end = known[line + 3 * n]; s.count = known[line + 4 * n];
  return s;
}

// Most runs are short and would meet in a few numbers: a group counts these on its own.
inline void count_run(local uint* restrict few, global uint* all, const int length) {
  if (length < BINS)
    atomic_inc(few + length);
  else
    atomic_inc(all + length);
}

inline void clear_few(local uint* restrict few, const int n) {
  for (int b = get_local_id(0); b < n; b += WG) few[b] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
}

inline void flush_few(local const uint* restrict few, global uint* all) {
  for (int b = get_local_id(0); b < BINS; b += WG)
    if (few[b]) atomic_add(all + b, few[b]);
}

// known: [5][n] of diagonals k_first and on; those within the Theiler window count nothing. lengths: of diagonal lines.
kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void finish_diagonals(global const int* restrict known, const ulong n, const long k_first, const int theiler,
                      global uint* restrict lengths) {
  local uint few[BINS];
  clear_few(few, BINS);
  for (size_t line = get_global_id(0); line < n; line += get_global_size(0)) {
    const long k = k_first + (long)line;
    const int first_start = known[line];
    if (first_start < 0 || (k < theiler && -k < theiler)) continue;
    const int last_start = known[line + 2 * n];
    count_run(few, lengths, known[line + n] - first_start);
    if (last_start != first_start) count_run(few, lengths, known[line + 3 * n] - last_start);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  flush_few(few, lengths);
}

// Columns; where the matrix is symmetric column i goes on as row i, and its black cells are put where those of the column were.
// counts: as in finish_begin. totals: [group][columns that have black cells, sums over these of the first
// black cell, of the start and of the end of the last run, and of black cells].
kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void finish_columns(global int* restrict columns, global const int* restrict rows, const int n, const int n_rows,
                    const int symmetric, global uint* counts, const ulong n_lengths, global ulong* restrict totals) {
  global uint* black = counts + n_lengths;
  global uint* white = counts + 2 * n_lengths;
  global uint* border = counts + 3 * n_lengths;
  local uint few[3 * BINS];
  local ulong sums[5 * WG];
  clear_few(few, 3 * BINS);
  ulong sum[5] = {0, 0, 0, 0, 0};
  for (size_t line = get_global_id(0); line < n; line += get_global_size(0)) {
    segment_ s = known_of(columns, n, line);
    if (symmetric) {
      const segment_ b = known_of(rows, n, line);
      if (s.first_start < 0) {
        s = b;
      } else if (b.first_start >= 0) {
        const int s_single = s.first_start == s.last_start, b_single = b.first_start == b.last_start;
        s.count += b.count;
        if (b.first_start == s.last_end) {  // one run
          if (!s_single && !b_single) count_run(few, black, b.first_end - s.last_start);
          if (s_single) s.first_end = b.first_end;
          if (!b_single) s.last_start = b.last_start;
        } else {
          count_run(few + BINS, white, b.first_start - s.last_end);
          if (!s_single) count_run(few, black, s.last_end - s.last_start);
          if (!b_single) count_run(few, black, b.first_end - b.first_start);
          s.last_start = b.last_start;
        }
        s.last_end = b.last_end;
      }
      columns[line + 4 * (size_t)n] = s.count;
    }
    if (s.first_start < 0) {
      count_run(few + 2 * BINS, border, n_rows);
      continue;
    }
    count_run(few, black, s.first_end - s.first_start);
    if (s.last_start != s.first_start) count_run(few, black, s.last_end - s.last_start);
    if (s.first_start > 0) count_run(few + 2 * BINS, border, s.first_start);
    if (s.last_end < n_rows) count_run(few + 2 * BINS, border, n_rows - s.last_end);
    sum[0] += 1; sum[1] += s.first_start; sum[2] += s.last_start; sum[3] += s.last_end; sum[4] += s.count;
  }
  for (int of = 0; of < 5; ++of) sums[of * WG + get_local_id(0)] = sum[of];
  barrier(CLK_LOCAL_MEM_FENCE);
  flush_few(few, black);
  flush_few(few + BINS, white);
  flush_few(few + 2 * BINS, border);
  for (int of = get_local_id(0); of < 5; of += WG) {
    ulong total = 0;
    for (int i = 0; i < WG; ++i) total += sums[of * WG + i];
    totals[get_group_id(0) * 5 + of] = total;
  }
}

// counts: [diagonal, black, white, border][n]. Before lines are finished: nothing at the border, nothing found.
kernel void finish_begin(global uint* restrict counts, global int* restrict longest, const ulong n) {
  const size_t i = get_global_id(0);
  if (i < n) counts[3 * n + i] = 0;
  if (i < 4) longest[i] = 0;
}

// After: counts are added to the sums of before, longest becomes the greatest length that occurs in each; 0 for none.
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
