## Convergent cross mapping (Sugihara et al., Science 338, 496, 2012) by scanning: the skill of many random sub-libraries.
##
## The neighbours of each query row are sorted once, among all library rows. The nearest members of a random sub-library are
## the first ones in this list that it holds. A word for each library row holds the membership of sixteen samples (bit s:
## the row is a member of sample s), so that one scan of the list serves sixteen samples.
##
##   ccm_prepare  squared distances become distances, and "no neighbour" becomes row n_rows, which is no one's member
##   ccm          scans, predicts, and sums what rho is made of, for chunks of query rows
##   ccm_rho      rho of each sample from the sums of its chunks
##
##   neighbours of a query row, nearest first    7  19   3  42   8 ..
##   word of each of them, bits of samples 0-3   0110  1010  0011  1100 ..
##   with k = 2: sample 1 finds 7 and 3; sample 2 finds 7 and 19; ..
##
## A work-item has `lanes` samples of a column (ccm.clh), and scans for `rows` query rows side by side: these are independent
## chains of operations. Few neighbours (k <= 8) are kept in registers: a hit shifts the list and enters at its end, without
## a branch. More of them are put in their places in memory.
##
##   in registers   distance<r>_<c>, future<r>_<c>: row r's list; the latest hit is c = 0, so a full list ends with its nearest
##   in memory      member_distances, member_futures: [neighbour][LANES], nearest first
##
## Types and names in capitals that are not defined here come from numeric.clh (vectors, sentinels), ccm.clh (columns),
## order.clh (order of neighbours, lists), reduce.clh (sums) and weights.clh (weights).
## ---- parameters (python -m pyedmcl.kernels.describe --write) ----
## Given by the problem:
##   k           number of neighbours
##   dtype       number type of data and distances: float32 or float64
## Tuned for speed, never changing what is computed (values; default of a processor, of a GPU):
##   lanes       samples of a work-item; a SIMD register on CPUs (1 4 8 16; 16, 1)
##   wg          work-items of a group (1 16 32 64 128 256; 1, 64)
##   row_chains  query rows that a work-item scans side by side (1 2 3 4; 3, 1)
##   unroll      neighbours looked at between two tests for the end (1 2 4 8; 2, 4)
## ---- end of parameters ----
<%
in_registers = k <= 8
# As many query rows as 24 registers hold the lists of: AVX-512 has 32, and the rest of the loop needs some.
rows = max(min(row_chains, 24 // (2 * k)), 1) if in_registers else 1
# The fewest members that a list has, of the query rows at hand.
smallest_count = "count0"
for r in range(1, rows):
    smallest_count = f"min({smallest_count}, count{r})"
at_once = 16  # rows that are looked up together where all are searched

def distance(r, i):
    """Distance of the i-th nearest member of query row r, in a full list."""
    return f"distance{r}_{k - 1 - i}" if in_registers else f"LOADV(member_distances + {i} * LANES)"

def future(r, i):
    """The future target of the i-th nearest member."""
    return f"future{r}_{k - 1 - i}" if in_registers else f"LOADV(member_futures + {i} * LANES)"

sums = ["n", "p", "o", "pp", "oo", "po"]
%>
## From the members found for query row r to its prediction and the sums.
<%def name="predict(r)">
    if (ANYV(count${r} < (rowv)(K))) {
%if in_registers:
      // Lists with fewer than K members are shifted to where full ones end: in K - 1 steps (the loop over c), of which a list takes
      // as many as it lacks members, and each of which moves all entries by one (written out below).
      for (int c = 1; c < K; ++c) {
        const rowv short_list = count${r} < (rowv)(K) && (rowv)(c) <= (rowv)(K) - count${r};
%for c in range(k - 1, 0, -1):
        distance${r}_${c} = CHOOSE(distance${r}_${c}, distance${r}_${c - 1}, short_list);
        future${r}_${c} = CHOOSE(future${r}_${c}, future${r}_${c - 1}, short_list);
%endfor
      }
%endif
      if (j${r}[entries - 1] != n_rows) {  // there are more neighbours than were sorted
%if in_registers:
        real member_distances[K * LANES], member_futures[K * LANES];
        whole counts[LANES];
        STOREV(count${r}, counts);
%for c in range(k):
        STOREV(${distance(r, c)}, member_distances + ${c} * LANES);
        STOREV(${future(r, c)}, member_futures + ${c} * LANES);
%endfor
%endif
        for (int l = 0; l < LANES; ++l)
          if (counts[l] < K)
            counts[l] = search_all(x, future_target, rows_of + COLUMN_ROWS(column), COLUMN_CHOICES(column), words,
                                   lane0 + l, t + ${r}, E, tau, exclusion_radius, member_distances + l,
                                   member_futures + l);
        count${r} = LOADV(counts);
%if in_registers:
%for c in range(k):
        ${distance(r, c)} = LOADV(member_distances + ${c} * LANES);
        ${future(r, c)} = LOADV(member_futures + ${c} * LANES);
%endfor
%endif
      }
    }
    {
      // The prediction; what lies behind the last member found has no weight, whatever it holds.
      const realv d_min = ${distance(r, 0)};
      const rowv at_zero = d_min == (realv)(0);
      const realv inverse = INVERSE_DISTANCE(d_min, at_zero);
      realv weights = 1, p = ${future(r, 0)};
%if in_registers:
%for c in range(1, k):
      {
        const realv w = CHOOSE((realv)(0), SIMPLEX_WEIGHT(${distance(r, c)}, inverse, at_zero), count${r} > (rowv)(${c}));
        weights += w;
        p = FUSED(w, ${future(r, c)}, p);
      }
%endfor
%else:
      for (int c = 1; c < K; ++c) {
        const rowv present = count${r} > (rowv)(c);
        const realv d = CHOOSE((realv)(0), ${distance(r, "c")}, present);
        const realv w = CHOOSE((realv)(0), SIMPLEX_WEIGHT(d, inverse, at_zero), present);
        weights += w;
        p = FUSED(w, CHOOSE((realv)(0), ${future(r, "c")}, present), p);
      }
%endif

      // The sums, of lanes with enough members. A query row that is not predicted began with full lists, K members, and so
      // never reaches K + 1.
      const rowv predicted = count${r} >= (is_predicted${r} ? (rowv)(least) : (rowv)(K + 1));
      const realv one = CHOOSE((realv)(0), (realv)(1), predicted), o = CHOOSE((realv)(0), (realv)(o${r}), predicted);
      p = CHOOSE((realv)(0), quotient(p, weights), predicted);
      sum_n += one;
      sum_p += p;
      sum_o += o;
      sum_pp = FUSED(p, p, sum_pp);
      sum_oo = FUSED(o, o, sum_oo);
      sum_po = FUSED(p, o, sum_po);
    }
</%def>
#define WG ${wg}
#define K ${k}
#include "ccm.clh"

// ---- Sorted neighbours, as a scan reads them ----
//
// near, dist: of this launch entries begin to end - 1, of which a work-item takes CHUNK.
kernel void ccm_prepare(global int* restrict near, global real* restrict dist, const ulong begin, const ulong end,
                        const int n_rows) {
  const ulong first = begin + (ulong)get_global_id(0) * CHUNK, last = min(first + CHUNK, end);
  for (ulong i = first; i < last; ++i) {
    near[i] = near[i] < 0 ? n_rows : near[i];
    dist[i] = scalar_root(dist[i]);
  }
}

// ---- The scan ----
//
// The K nearest members of one sample among all library rows, for the rare query rows whose sorted neighbours hold fewer.
// rows: the rows to draw from, ascending, so that a later member loses a tie. member_distances, member_futures: [K][LANES],
// this sample's lane of them. Returns how many there are.
__attribute__((noinline)) int search_all(global const real* restrict x, global const real* restrict future_target,
                                         global const int* restrict rows, const int n_choices, global const ushort* restrict words,
                                         const int sample, const int t, const int E, const int tau, const int exclusion_radius,
                                         real* restrict member_distances, real* restrict member_futures) {
  int count = 0;
  for (int p = 0; p < n_choices; p += ${at_once}) {
    // A work-item that searches alone waits for memory, as long for the membership of many rows as for that of one.
    uint held = 0;  // bit u: row p + u of the list is a member
%for u in range(at_once):
    held |= (uint)((words[rows[min(p + ${u}, n_choices - 1)]] >> sample) & 1) << ${u};
%endfor
    held &= n_choices - p < ${at_once} ? (1u << (n_choices - p)) - 1 : ${(1 << at_once) - 1};
    for (; held; held &= held - 1) {
      const int j = rows[p + 31 - (int)clz(held & -held)];
      if ((int)abs_diff(t, j) <= exclusion_radius) continue;
      real d = x[t] - x[j], a = d * d;
      for (int e = 1; e < E; ++e) {
        d = x[t - e * tau] - x[j - e * tau];
        a = FUSED(d, d, a);
      }
      if (count == K && !IS_NEARER(a, j, member_distances[(K - 1) * LANES], j)) continue;
      const int last = count < K ? count++ : K - 1;
      INSERT_SCALAR(IS_NEARER, LANES, last, member_distances, member_futures, a, future_target[j]);
    }
  }
  for (int i = 0; i < count; ++i) member_distances[i * LANES] = scalar_root(member_distances[i * LANES]);
  return count;
}

// near, dist: [table][n_rows][entries], rows and distances of sorted neighbours, prepared. library: [table][library_stride],
// row 0 at column front. future_targets: [target][future_stride], what the state of each row leads to, GAP where that is
// missing. columns: [column][COLUMN_INTS], see ccm.clh; column_of: which columns are scanned; rows_of: lists of the rows that may
// be drawn. members: [draw][stride], a word for each library row, bit s of which says that sample s holds the row; a column
// has those of COLUMN_WORDS.
// sums: [column][n_chunks][SUMS][SAMPLES]. Rows with fewer than `least` members among their neighbours are not predicted.
// A work-item takes ${lanes} samples of a column through a chunk of query rows, from t_begin on; this launch has items
// begin to end - 1, number (chunk * n_scanned + column) * (SAMPLES / LANES) + samples.
kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void ccm(global const int* restrict near, global const real* restrict dist, const int entries,
         global const real* restrict library, const int library_stride, const int front,
         global const real* restrict future_targets, const int future_stride, global const int* restrict columns,
         global const int* restrict rows_of, global const ushort* restrict members, const int stride,
         global const int* restrict column_of, const int n_scanned, const int n_rows, const int t_begin,
         const int t_end, const int E, const int tau, const int exclusion_radius, const int least,
         const int n_chunks, const ulong begin, const ulong end, global real* restrict sums) {
  // ---- The samples: a column, and LANES of its sixteen ----
  const ulong item = begin + get_global_id(0);
  if (item >= end) return;
  const int lane0 = (int)(item % (SAMPLES / LANES)) * LANES;
  const ulong pair = item / (SAMPLES / LANES);
  const int at = column_of[pair % n_scanned], chunk = (int)(pair / n_scanned);
  global const int* restrict column = columns + at * COLUMN_INTS;
  global const ushort* restrict words = members + (size_t)COLUMN_WORDS(column) * stride;
  global const real* restrict future_target = future_targets + (size_t)COLUMN_FUTURE(column) * future_stride;
  global const real* restrict x = library + (size_t)COLUMN_TABLE(column) * library_stride + front;
%if lanes > 1:
  const PASTE(int, LANES) lane32 = (PASTE(int, LANES))(${", ".join(map(str, range(lanes)))}) + lane0;
  const rowv lane = PASTE(PASTE(convert_, WHOLE_NAME), LANES)(lane32), bit = (rowv)(1) << lane;
%else:
  const rowv lane = lane0, bit = (rowv)1 << lane;
%endif
  // Lanes without a sample have a full list from the start.
  const rowv full = CHOOSE((rowv)(K), (rowv)(0), lane < (rowv)(COLUMN_SAMPLES(column)));
  realv ${", ".join(f"sum_{s} = 0" for s in sums)};

  // ---- The query rows of the chunk, ${rows} at a time ----
  const int first = t_begin + chunk * CHUNK, last = min(first + CHUNK, t_end);
%if not in_registers:
  real member_distances[K * LANES], member_futures[K * LANES];
  whole counts[LANES];
%endif
  for (int t = first; t < last; t += ${rows}) {
    // A row that is not predicted has a full list from the start.
%for r in range(rows):
    const real o${r} = ${"future_target[t]" if r == 0 else f"t + {r} < last ? future_target[t + {r}] : GAP"};
    const size_t row${r} = ((size_t)COLUMN_TABLE(column) * n_rows + min(t + ${r}, last - 1)) * entries;
    global const int* restrict j${r} = near + row${r};
    global const real* restrict dist${r} = dist + row${r};
    const bool is_predicted${r} = fabs(o${r}) < PRESENT && j${r}[0] != n_rows;
    rowv count${r} = is_predicted${r} ? full : (rowv)(K);
%endfor

    // Scan the sorted neighbours, nearest first, until every list is full.
    if (!(${" || ".join(f"is_predicted{r}" for r in range(rows))})) continue;
%if in_registers:
%for r in range(rows):
    realv ${", ".join(f"distance{r}_{i} = 0, future{r}_{i} = 0" for i in range(k))};
%endfor
    for (int i = 0; i < entries; i += ${unroll}) {
%for u in range(unroll):
%for r in range(rows):
      {
        const int row = j${r}[i + ${u}];
        const rowv hit = (((rowv)(words[row]) & bit) != (rowv)(0)) && (count${r} < (rowv)(K));
        const realv new_d = dist${r}[i + ${u}], new_y = future_target[row];
%for c in range(k - 1, 0, -1):
        distance${r}_${c} = CHOOSE(distance${r}_${c}, distance${r}_${c - 1}, hit);
        future${r}_${c} = CHOOSE(future${r}_${c}, future${r}_${c - 1}, hit);
%endfor
        distance${r}_0 = CHOOSE(distance${r}_0, new_d, hit);
        future${r}_0 = CHOOSE(future${r}_0, new_y, hit);
        count${r} += CHOOSE((rowv)(0), (rowv)(1), hit);
      }
%endfor
%endfor
      if (!ANYV(${smallest_count} < (rowv)(K))) break;
    }
%else:
    STOREV(count0, counts);
    uint unfilled = 0;  // bit l: lane l's list
    for (int l = 0; l < LANES; ++l) unfilled |= (counts[l] < K ? 1u : 0u) << l;
    for (int i = 0; i < entries && unfilled; ++i) {
      const int row = j0[i];
      uint hits = ((uint)words[row] >> lane0) & unfilled;
      while (hits) {
        const int l = 31 - (int)clz(hits & -hits), c = (int)counts[l]++;
        hits &= hits - 1;
        member_distances[c * LANES + l] = dist0[i];
        member_futures[c * LANES + l] = future_target[row];
        if (c + 1 == K) unfilled &= ~(1u << l);
      }
    }
    count0 = LOADV(counts);
%endif

    // Predict, and add to the sums.
%for r in range(rows):
    ${predict(r)}
%endfor
  }

  // ---- The sums of the chunk ----
  global real* restrict out = sums + ((size_t)at * n_chunks + chunk) * (SUMS * SAMPLES) + lane0;
%for i, s in enumerate(sums):
  STOREV(sum_${s}, out + ${i} * SAMPLES);
%endfor
}

// ---- From sums to rho ----
//
// rho: [column][SAMPLES]. A work-item takes ${lanes} samples.
kernel void ccm_rho(global const real* restrict sums, const int n_columns, const int n_chunks, global real* restrict rho) {
  const int lane0 = (int)(get_global_id(0) % (SAMPLES / LANES)) * LANES, at = (int)(get_global_id(0) / (SAMPLES / LANES));
  if (at >= n_columns) return;
  realv ${", ".join(f"sum_{s} = 0, rest_{s} = 0" for s in sums)};
  for (int chunk = 0; chunk < n_chunks; ++chunk) {
    global const real* restrict part = sums + ((size_t)at * n_chunks + chunk) * (SUMS * SAMPLES) + lane0;
%for i, s in enumerate(sums):
    ADD_EXACT(sum_${s}, rest_${s}, LOADV(part + ${i} * SAMPLES));
%endfor
  }
  STOREV(pearson(${", ".join(f"sum_{s} + rest_{s}" for s in sums)}), rho + (size_t)at * SAMPLES + lane0);
}
