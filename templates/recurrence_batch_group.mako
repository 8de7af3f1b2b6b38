## A part of recurrence_batch.cl.mako, for GPUs: the scalar work-items of a group share one matrix. Each takes a block of 32 x
## 32 cells at a time, and once all blocks are there, a line at a time. recurrence_batch_vectors.mako has the same functions for
## processors, where a work-item has a matrix for itself.
##
##   bits        word j * stride + c        cells 32 j .. 32 j + 31 of column c, the first in the lowest bit
##   diagonals   word w * n_diagonals + k   cells 32 w .. 32 w + 31 of diagonal k, which has the cells (a, a + k)
##
## A line (a column or a diagonal) is read 64 cells at a time. A run of black or white cells ends where a cell differs from the
## one before it, and exclusive or with the word moved by one bit marks all these places at once. A loop then takes them from
## the lowest to the highest, so that its steps are the runs of a line and not its cells.
<%def name="make_blocks()">
%if symmetric:
// Fills the blocks below the diagonal of a symmetric matrix: each is the transpose of one above it, so that only half of the
// distances have to be computed. Words are written that no work-item reads here.
static void mirror_bits(const int words, const int stride, global uint* bits) {
  for (int at = get_local_id(0); at < words * (words - 1) / 2; at += WG) {
    // The blocks (i, j) with i < j are numbered (0, 1), (0, 2), (1, 2), (0, 3), ..: those of j begin at j (j - 1) / 2. By the
    // root of a float32, j may be off by one either way.
    int j = (int)((1 + sqrt((float)(8 * at + 1))) / 2);
    j -= j * (j - 1) / 2 > at;
    j += j * (j + 1) / 2 <= at;
    const int i = at - j * (j - 1) / 2;
    uint a[32];
    for (int r = 0; r < 32; ++r) a[r] = bits[(size_t)j * stride + 32 * i + r];
    transpose32(a);
    for (int r = 0; r < 32; ++r) bits[(size_t)i * stride + 32 * j + r] = a[r];
  }
}
%endif

// Writes the diagonals as words, so that they are walked like columns: word w of diagonal k is diagonals[w * n_diagonals + k -
// k_first]. What 32 columns and 32 diagonals have in common is a parallelogram, in which each column begins a cell further on
// than the one before it. Two blocks hold it. Moved by r bits, column r of both becomes row r of a square block, and the
// transpose of this has a diagonal in each word.
static void make_diagonals(const int words_a, const int words_b, const int stride, const int n_diagonals,
                           global const uint* bits, global uint* diagonals) {
  // Without symmetry there are diagonals below the main one, too, whose first block (j = -1) lies half outside the matrix.
  const int first = ${"0" if symmetric else "-1"}, across = words_b - first;
  for (int at = get_local_id(0); at < words_a * across; at += WG) {
    const int w = at / across, j = first + at % across;
%if symmetric:
    if (j < w) continue;
%endif
    uint a[32];
    for (int r = 0; r < 32; ++r) {
      const uint low = ${"" if symmetric else "j < 0 ? 0 : "}bits[(size_t)${"j" if symmetric else "max(j, 0)"} * stride + 32 * w + r];
      const uint high = j + 1 < words_b ? bits[(size_t)(j + 1) * stride + 32 * w + r] : 0;
      a[r] = (uint)(((ulong)high << 32 | low) >> r);
    }
    transpose32(a);
    global uint* to = diagonals + (size_t)w * n_diagonals + 32 * (j - w${"" if symmetric else " + words_a"});
    for (int r = 0; r < 32; ++r) to[r] = a[r];
  }
}
</%def>
<%def name="count_lines()">
// A word whose lowest n bits are set: the cells of 64 that still belong to the line.
#define ONES64(n) ((n) >= 64 ? ~(ulong)0 : ((ulong)1 << (n)) - 1)
// Work-items meet in a bin of lengths, unless the group has one of them only.
%if wg > 1:
#define COUNT(bin, weight) atomic_add(&(bin), weight)
%else:
#define COUNT(bin, weight) ((bin) += (weight))
%endif

// Counts the runs of each column: black ones (vertical lines), white ones between them, and those at the borders, which may be
// longer than they look. BEGIN_RUNS, END_RUN and END_RUNS of column_runs.clh keep the run under way and count it.
// per_column gets the recurrent cells of each column. sums: what this work-item adds to period, its count, gap, its count of
// pyedmcl.recurrence.counts.Counts, and to the recurrent cells.
static void count_columns(const int n_a, const int n_b, const int stride, global const uint* bits,
                          global uint* vertical, global uint* white, global uint* border,
                          global ushort* per_column, ulong* sums) {
  for (int c = get_local_id(0); c < n_a; c += WG) {
    BEGIN_RUNS;
    int points = 0;
    ulong black = 0;
    for (int p = 0; p < n_b; p += 64) {
      const ulong v = TWO_WORDS(bits + (size_t)(p / 32) * stride + c, stride, n_b - p);
      points += (int)popcount(v);
      // `black` is the cell before this word, so that a run may go on across words.
      for (ulong edges = (v ^ (v << 1 | black)) & ONES64(n_b - p); edges; edges &= edges - 1) {
        const int at = p + LOWEST(edges);
        END_RUN(at, v >> (at - p) & 1);
      }
      black = v >> 63;
    }
    END_RUNS(n_b);
    if (blacks > 0) {
      sums[0] += last_begin - first;
      sums[1] += blacks - 1;
      sums[2] += last - first;
      sums[3] += points - 1;
      sums[4] += points;
    }
    per_column[c] = points;
  }
}

// Counts the black runs of each diagonal, by length. Those nearer to the main diagonal than `theiler` are left out, of which
// per_diagonal still gets the recurrent cells. It begins at the least diagonal there is.
static void count_diagonals(const int n_a, const int n_b, const int n_diagonals, const int k_first, const int theiler,
                            global const uint* diagonals, global uint* lengths,
                            global ushort* per_diagonal) {
  const int least = ${"0" if symmetric else "1 - n_a"};
  for (int k = least + get_local_id(0); k < n_b; k += WG) {
    const int a_end = min(n_a, n_b - k), counted = k >= theiler || -k >= theiler;
    const uint weight = ${"k ? 2 : 1" if symmetric else "1"};  // a diagonal of a symmetric matrix stands for two
    int begin = 0, points = 0;
    ulong black = 0;
    for (int p = max(-k, 0) & ~31; p < a_end; p += 64) {
      const ulong v = TWO_WORDS(diagonals + (size_t)(p / 32) * n_diagonals + k - k_first, n_diagonals, a_end - p);
      points += (int)popcount(v);
      if (counted) {
        for (ulong edges = (v ^ (v << 1 | black)) & ONES64(a_end - p); edges; edges &= edges - 1) {
          const int at = p + LOWEST(edges);
          // A white cell ends a black run; a black one begins the next.
          if (!(v >> (at - p) & 1)) COUNT(lengths[at - begin], weight);
          begin = at;
        }
        black = v >> (min(64, a_end - p) - 1) & 1;
      }
    }
    if (black) COUNT(lengths[a_end - begin], weight);  // the run that the end of the diagonal ends
    per_diagonal[k - least] = points;
  }
}
</%def>
