## Convergent cross mapping by scanning: each row's neighbours are sorted once; a random sub-library's nearest are the
## first of them that it holds. A word per library row holds sixteen samples' membership, so one scan serves sixteen.
##
##   ccm_prepare  squared distances become distances, and "no neighbour" the row that is no one's member
##   ccm          scans, predicts, and sums what rho is made of, for chunks of rows
##   ccm_rho      rho of each sample from its chunks
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
# Few neighbours are kept in registers and shifted along; many are put in their places in memory.
shifted = k <= 8
# As many rows as registers hold the lists of.
rows = max(min(row_chains, 24 // (2 * k)), 1) if shifted else 1
smallest_count = "count0"
for r in range(1, rows):
    smallest_count = f"min({smallest_count}, count{r})"
ahead = 16  # rows that are looked up together where all are searched
# From the nearest on.
def D(r, i):
    return f"d{r}_{k - 1 - i}" if shifted else f"LOADV(found_d + {i} * LANES)"
def Y(r, i):
    return f"y{r}_{k - 1 - i}" if shifted else f"LOADV(found_y + {i} * LANES)"
sums = ["n", "p", "o", "pp", "oo", "po"]
%>
## From a row's neighbours to its prediction and the sums.
<%def name="one_row(r)">
    if (ANYV(count${r} < (rowv)(K))) {
%if shifted:
      // Lists are shifted to where full ones end.
      for (int c = 1; c < K; ++c) {
        const rowv some = count${r} < (rowv)(K) && (rowv)(c) <= (rowv)(K) - count${r};
%for c in range(k - 1, 0, -1):
        d${r}_${c} = CHOOSE(d${r}_${c}, d${r}_${c - 1}, some);
        y${r}_${c} = CHOOSE(y${r}_${c}, y${r}_${c - 1}, some);
%endfor
      }
%endif
      if (j${r}[entries - 1] != n_rows) {  // there are more neighbours than were sorted
%if shifted:
        real found_d[K * LANES], found_y[K * LANES];
        whole counts[LANES];
        STOREV(count${r}, counts);
%for c in range(k):
        STOREV(${D(r, c)}, found_d + ${c} * LANES);
        STOREV(${Y(r, c)}, found_y + ${c} * LANES);
%endfor
%endif
        for (int l = 0; l < LANES; ++l)
          if (counts[l] < K)
            counts[l] = search_all(x, aim, rows_of + COLUMN_ROWS(column), COLUMN_LEGAL(column), words, lane0 + l, t + ${r}, E,
                                   tau, exclusion_radius, found_d + l, found_y + l);
        count${r} = LOADV(counts);
%if shifted:
%for c in range(k):
        ${D(r, c)} = LOADV(found_d + ${c} * LANES);
        ${Y(r, c)} = LOADV(found_y + ${c} * LANES);
%endfor
%endif
      }
    }
    {
      // What lies behind the last neighbour found has no weight, whatever it holds.
      const realv nearest = ${D(r, 0)};
      const rowv at_zero = nearest == (realv)(0);
      const realv inverse = CHOOSE((realv)(1) / CHOOSE(nearest, (realv)(1), at_zero), (realv)(0), at_zero);
      realv weights = 1, p = ${Y(r, 0)};
%if shifted:
%for c in range(1, k):
      {
        const realv w = CHOOSE((realv)(0), CCM_WEIGHT(${D(r, c)}, inverse, at_zero), count${r} > (rowv)(${c}));
        weights += w;
        p = FUSED(w, ${Y(r, c)}, p);
      }
%endfor
%else:
      for (int c = 1; c < K; ++c) {
        const rowv there = count${r} > (rowv)(c);
        const realv near_d = CHOOSE((realv)(0), ${D(r, "c")}, there);
        const realv w = CHOOSE((realv)(0), CCM_WEIGHT(near_d, inverse, at_zero), there);
        weights += w;
        p = FUSED(w, CHOOSE((realv)(0), ${Y(r, "c")}, there), p);
      }
%endif
      const rowv there = count${r} >= (go${r} ? (rowv)(least) : (rowv)(K + 1));
      const realv yes = CHOOSE((realv)(0), (realv)(1), there), of = CHOOSE((realv)(0), (realv)(o${r}), there);
      p = CHOOSE((realv)(0), p / weights, there);
      sum_n += yes;
      sum_p += p;
      sum_o += of;
      sum_pp = FUSED(p, p, sum_pp);
      sum_oo = FUSED(of, of, sum_oo);
      sum_po = FUSED(p, of, sum_po);
    }
</%def>
#define WG ${wg}
#define K ${k}
#include "ccm.clh"

kernel void ccm_prepare(global int* restrict near, global real* restrict dist, const ulong begin, const ulong end, const int n_rows) {
  const ulong first = begin + (ulong)get_global_id(0) * CHUNK, last = min(first + CHUNK, end);
  for (ulong i = first; i < last; ++i) {
    near[i] = near[i] < 0 ? n_rows : near[i];
    dist[i] = sqrt(dist[i]);
  }
}

// The K nearest members of one sample among all its rows: for the rare ones that the sorted neighbours did not reach.
// found_d, found_y: [K][LANES], this sample's lane of them; returns how many there are.
__attribute__((noinline)) int search_all(global const real* restrict x, global const real* restrict aim,
                                         global const int* restrict rows, const int n_legal, global const ushort* restrict words,
                                         const int sample, const int t, const int E, const int tau, const int exclusion_radius,
                                         real* restrict found_d, real* restrict found_y) {
  int count = 0;
  for (int p = 0; p < n_legal; p += ${ahead}) {
    // Work-items that search alone wait for memory: as long for many rows' membership as for one's.
    uint held = 0;
%for u in range(ahead):
    held |= (uint)((words[rows[min(p + ${u}, n_legal - 1)]] >> sample) & 1) << ${u};
%endfor
    held &= n_legal - p < ${ahead} ? (1u << (n_legal - p)) - 1 : ${(1 << ahead) - 1};
    for (; held; held &= held - 1) {
      const int j = rows[p + 31 - (int)clz(held & -held)];
      if ((int)abs_diff(t, j) <= exclusion_radius) continue;
      real d = x[t] - x[j], a = d * d;
      for (int e = 1; e < E; ++e) {
        d = x[t - e * tau] - x[j - e * tau];
        a = FUSED(d, d, a);
      }
      if (count == K && !(a < found_d[(K - 1) * LANES])) continue;
      const int last = count < K ? count++ : K - 1;
      INSERT_SCALAR(IS_NEARER, LANES, last, found_d, found_y, a, aim[j]);
    }
  }
  for (int i = 0; i < count; ++i) found_d[i * LANES] = sqrt(found_d[i * LANES]);
  return count;
}

// near, dist: [table][n_rows][entries], prepared; library: [table][library_stride], row 0 at column front; aims:
// [target][aim_stride], what each row leads to, GAP where it is not known; columns, rows_of, members: as for ccm_draw,
// column_of: the columns that are scanned; sums: [column][n_chunks][SUMS][SAMPLES].
// Rows with fewer than `least` neighbours are not predicted.
// A work-item takes ${lanes} samples of a column through a chunk of rows from t_begin on.
kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void ccm(global const int* restrict near, global const real* restrict dist, const int entries,
         global const real* restrict library, const int library_stride, const int front, global const real* restrict aims,
         const int aim_stride, global const int* restrict columns, global const int* restrict rows_of,
         global const ushort* restrict members, const int stride, global const int* restrict column_of, const int n_scanned,
         const int n_rows, const int t_begin, const int t_end, const int E, const int tau, const int exclusion_radius,
         const int least, const int n_chunks, const ulong begin, const ulong end, global real* restrict sums) {
  const ulong item = begin + get_global_id(0);
  if (item >= end) return;
  const int lane0 = (int)(item % (SAMPLES / LANES)) * LANES;
  const ulong pair = item / (SAMPLES / LANES);
  const int at = column_of[pair % n_scanned], chunk = (int)(pair / n_scanned);
  global const int* restrict column = columns + at * COLUMN_INTS;
  global const ushort* restrict words = members + (size_t)at * stride;
  global const real* restrict aim = aims + (size_t)COLUMN_AIM(column) * aim_stride;
  global const real* restrict x = library + (size_t)COLUMN_TABLE(column) * library_stride + front;
%if lanes > 1:
  const PASTE(int, LANES) lane32 = (PASTE(int, LANES))(${", ".join(map(str, range(lanes)))}) + lane0;
  const rowv lane = PASTE(PASTE(convert_, WHOLE_NAME), LANES)(lane32), bit = (rowv)(1) << lane;
%else:
  const rowv lane = lane0, bit = (rowv)1 << lane;
%endif
  // Lanes without a sample are content from the start.
  const rowv full = CHOOSE((rowv)(K), (rowv)(0), lane < (rowv)(COLUMN_SAMPLES(column)));
  realv ${", ".join(f"sum_{s} = 0" for s in sums)};
  const int first = t_begin + chunk * CHUNK, last = min(first + CHUNK, t_end);
%if not shifted:
  real found_d[K * LANES], found_y[K * LANES];
  whole counts[LANES];
%endif
  for (int t = first; t < last; t += ${rows}) {
    // Rows side by side are independent chains of operations. One that is not predicted has all it wants.
%for r in range(rows):
    const real o${r} = ${"aim[t]" if r == 0 else f"t + {r} < last ? aim[t + {r}] : GAP"};
    const size_t row${r} = ((size_t)COLUMN_TABLE(column) * n_rows + min(t + ${r}, last - 1)) * entries;
    global const int* restrict j${r} = near + row${r};
    global const real* restrict dist${r} = dist + row${r};
    const bool go${r} = fabs(o${r}) < PRESENT && j${r}[0] != n_rows;
    rowv count${r} = go${r} ? full : (rowv)(K);
%endfor
    if (!(${" || ".join(f"go{r}" for r in range(rows))})) continue;
%if shifted:
%for r in range(rows):
    realv ${", ".join(f"d{r}_{i} = 0, y{r}_{i} = 0" for i in range(k))};
%endfor
    for (int i = 0; i < entries; i += ${unroll}) {
%for u in range(unroll):
%for r in range(rows):
      {
        const int row = j${r}[i + ${u}];
        const rowv hit = (((rowv)(words[row]) & bit) != (rowv)(0)) && (count${r} < (rowv)(K));
        const realv new_d = dist${r}[i + ${u}], new_y = aim[row];
%for c in range(k - 1, 0, -1):
        d${r}_${c} = CHOOSE(d${r}_${c}, d${r}_${c - 1}, hit);
        y${r}_${c} = CHOOSE(y${r}_${c}, y${r}_${c - 1}, hit);
%endfor
        d${r}_0 = CHOOSE(d${r}_0, new_d, hit);
        y${r}_0 = CHOOSE(y${r}_0, new_y, hit);
        count${r} += CHOOSE((rowv)(0), (rowv)(1), hit);
      }
%endfor
%endfor
      if (!ANYV(${smallest_count} < (rowv)(K))) break;
    }
%else:
    STOREV(count0, counts);
    uint wanted = 0;
    for (int l = 0; l < LANES; ++l) wanted |= (counts[l] < K ? 1u : 0u) << l;
    for (int i = 0; i < entries && wanted; ++i) {
      const int row = j0[i];
      uint hits = ((uint)words[row] >> lane0) & wanted;
      while (hits) {
        const int l = 31 - (int)clz(hits & -hits), c = (int)counts[l]++;
        hits &= hits - 1;
        found_d[c * LANES + l] = dist0[i];
        found_y[c * LANES + l] = aim[row];
        if (c + 1 == K) wanted &= ~(1u << l);
      }
    }
    count0 = LOADV(counts);
%endif
%for r in range(rows):
    ${one_row(r)}
%endfor
  }
  global real* restrict out = sums + ((size_t)at * n_chunks + chunk) * (SUMS * SAMPLES) + lane0;
%for i, s in enumerate(sums):
  STOREV(sum_${s}, out + ${i} * SAMPLES);
%endfor
}

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
