## A part of recurrence_batch.cl.mako: blocks and lines of a matrix that scalar work-items of a group share (on GPUs). Each takes
## a block, and then a line.
<%def name="make_blocks()">
%if symmetric:
// Words below the diagonal of blocks, from those above it.
static void mirror_bits(const int words, const int stride, global uint* bits) {
  for (int at = get_local_id(0); at < words * (words - 1) / 2; at += WG) {
    int j = (int)((1 + sqrt((float)(8 * at + 1))) / 2);  // blocks (i, j), i < j, in sequence
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

// Diagonals: word w of diagonal k is diagonals[w * n_diagonals + k - k_first].
static void make_diagonals(const int words_a, const int words_b, const int stride, const int n_diagonals,
                           global const uint* bits, global uint* diagonals) {
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
#define ONES64(n) ((n) >= 64 ? ~(ulong)0 : ((ulong)1 << (n)) - 1)
%if wg > 1:
#define COUNT(bin, weight) atomic_add(&(bin), weight)
%else:
#define COUNT(bin, weight) ((bin) += (weight))
%endif

// sums: period, its count, gap, its count of pyedmcl.recurrence.counts.Counts, and recurrent cells
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

static void count_diagonals(const int n_a, const int n_b, const int n_diagonals, const int k_first, const int theiler,
                            global const uint* diagonals, global uint* lengths,
                            global ushort* per_diagonal) {
  const int least = ${"0" if symmetric else "1 - n_a"};
  for (int k = least + get_local_id(0); k < n_b; k += WG) {
    const int a_end = min(n_a, n_b - k), counted = k >= theiler || -k >= theiler;
    const uint weight = ${"k ? 2 : 1" if symmetric else "1"};  // of a symmetric matrix, both sides
    int begin = 0, points = 0;
    ulong black = 0;
    for (int p = max(-k, 0) & ~31; p < a_end; p += 64) {
      const ulong v = TWO_WORDS(diagonals + (size_t)(p / 32) * n_diagonals + k - k_first, n_diagonals, a_end - p);
      points += (int)popcount(v);
      if (counted) {
        for (ulong edges = (v ^ (v << 1 | black)) & ONES64(a_end - p); edges; edges &= edges - 1) {
          const int at = p + LOWEST(edges);
          if (!(v >> (at - p) & 1)) COUNT(lengths[at - begin], weight);
          begin = at;
        }
        black = v >> (min(64, a_end - p) - 1) & 1;
      }
    }
    if (black) COUNT(lengths[a_end - begin], weight);
    per_diagonal[k - least] = points;
  }
}
</%def>
