## Convergent cross mapping with small sub-libraries: distances to all their members are fewer than neighbours to scan.
##
## A work-item takes one sample through a chunk of rows, a vector of rows at a time, and writes the same sums as a scan.
## ---- parameters (python -m pyedmcl.kernels.describe --write) ----
## Given by the problem:
##   E        embedding dimension: values in a state
##   k        number of neighbours
##   dtype    number type of data and distances: float32 or float64
## Tuned for speed, never changing what is computed (values; default of a processor, of a GPU):
##   lanes    query rows of a work-item; a SIMD register on CPUs (1 4 8 16; 16, 1)
##   vectors  vectors of rows of a work-item, side by side (1 2 3 4; 2, 1)
##   wg       work-items of a group (1 32 64 128 256; 1, 64)
## ---- end of parameters ----
<%
listed = k > 8
# As many vectors of rows as registers hold the lists of.
rows = 1 if listed else max(min(vectors, 24 // (2 * k + E)), 1)
def D(r, i):
    return f"found_d[{i}]" if listed else f"d{r}_{i}"
def Y(r, i):
    return f"found_y[{i}]" if listed else f"y{r}_{i}"
%>
## From the neighbours of a vector of rows to their predictions and the sums.
<%def name="one_vector(r)">
    {
      rowv enough = ${D(r, 0)} < (realv)(FAR);
%if listed:
      if (least > 1) enough = enough && found_d[least - 1] < (realv)(FAR);
%else:
%for c in range(1, k):
      if (least == ${c + 1}) enough = enough && ${D(r, c)} < (realv)(FAR);
%endfor
%endif
      const realv nearest = sqrt(${D(r, 0)});
      const rowv at_zero = nearest == (realv)(0);
      const realv inverse = CHOOSE((realv)(1) / CHOOSE(nearest, (realv)(1), at_zero), (realv)(0), at_zero);
      realv weights = 1, p = ${Y(r, 0)};
%if listed:
      for (int c = 1; c < K; ++c) {
${a_weight(r, "c")}
      }
%else:
%for c in range(1, k):
      {
${a_weight(r, c)}
      }
%endfor
%endif
      // One row after the other, as a scan adds them.
      real predicted[LANES];
      whole found[LANES];
      STOREV(p / weights, predicted);
      STOREV(enough, found);
      const int begin = t0 + ${r} * LANES;
      for (int l = 0; l < min(LANES, last - begin); ++l) {
        const real o = aim[begin + l];
        if (!found[l] || !(fabs(o) < PRESENT)) continue;
        sum_n += 1;
        sum_p += predicted[l];
        sum_o += o;
        sum_pp = FUSED(predicted[l], predicted[l], sum_pp);
        sum_oo = FUSED(o, o, sum_oo);
        sum_po = FUSED(predicted[l], o, sum_po);
      }
    }
</%def>
<%def name="a_weight(r, c)">
        const rowv there = ${D(r, c)} < (realv)(FAR);
        const realv near_d = sqrt(${D(r, c)});
        const realv w = CHOOSE((realv)(0), CCM_WEIGHT(near_d, inverse, at_zero), there);
        weights += w;
        p = FUSED(w, ${Y(r, c)}, p);
</%def>
#define WG ${wg}
#define K ${k}
#include "ccm.clh"

// library: [table][library_stride], query: [table][query_stride], row 0 at column front, GAP around the data; lists: from
// ccm_list; sample_of: [n_sampled] column * SAMPLES + lane; all else as for ccm.
kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void ccm_direct(global const real* restrict library, const int library_stride, global const real* restrict query,
                const int query_stride, const int front, global const real* restrict aims, const int aim_stride,
                global const int* restrict columns, global const int* restrict lists, global const int* restrict sample_of,
                const int n_sampled, const int t_begin, const int t_end, const int tau, const int exclusion_radius,
                const int least, const int n_chunks, const ulong begin, const ulong end, global real* restrict sums) {
  const ulong item = begin + get_global_id(0);
  if (item >= end) return;
  const int sample = sample_of[item % n_sampled], chunk = (int)(item / n_sampled);
  const int at = sample / SAMPLES, lane = sample % SAMPLES;
  global const int* restrict column = columns + at * COLUMN_INTS;
  const int size = COLUMN_SIZE(column);
  global const int* restrict list = lists + (size_t)COLUMN_LISTS(column) + (size_t)lane * size;
  global const real* restrict aim = aims + (size_t)COLUMN_AIM(column) * aim_stride;
  global const real* restrict x = library + (size_t)COLUMN_TABLE(column) * library_stride + front;
  global const real* restrict asked = query + (size_t)COLUMN_TABLE(column) * query_stride + front;
  const int first = t_begin + chunk * CHUNK, last = min(first + CHUNK, t_end);
  real sum_n = 0, sum_p = 0, sum_o = 0, sum_pp = 0, sum_oo = 0, sum_po = 0;
  for (int t0 = first; t0 < last; t0 += LANES * ${rows}) {
%for r in range(rows):
%for e in range(E):
    const realv q${r}_${e} = LOADV(asked + t0 + ${r} * LANES - ${e} * tau);
%endfor
%if listed:
    realv found_d[K], found_y[K];
    for (int i = 0; i < K; ++i) {
      found_d[i] = FAR;
      found_y[i] = 0;
    }
%else:
    realv ${", ".join(f"d{r}_{i} = FAR, y{r}_{i} = 0" for i in range(k))};
%endif
%endfor
    for (int i = 0; i < size; ++i) {
      const int j = list[i];
      realv d, ${", ".join(f"a{r}" for r in range(rows))};
%for e in range(E):
      const realv x${e} = x[j - ${e} * tau];
%for r in range(rows):
      d = q${r}_${e} - x${e}; a${r} = ${f"FUSED(d, d, a{r})" if e else "d * d"};
%endfor
%endfor
      if (j >= t0 - exclusion_radius && j < t0 + LANES * ${rows} + exclusion_radius) {
        real each[LANES];
%for r in range(rows):
        STOREV(a${r}, each);
        for (int l = 0; l < LANES; ++l)
          if ((int)abs_diff(t0 + ${r} * LANES + l, j) <= exclusion_radius) each[l] = NOWHERE;
        a${r} = LOADV(each);
%endfor
      }
      const realv y = aim[j];
%for r in range(rows):
      // At first nearly every member is near enough for some lane: a branch would only be guessed wrong.
      if (${"" if listed else "i < 128 || "}ANYV(a${r} < ${D(r, k - 1)})) {
%if listed:
        INSERT_SORTED(IS_NEARER, AS_IT_LIKES, 0, K, found_d, found_y, a${r}, y);
%else:
%for c in range(k - 1, 0, -1):
        { INSERT_ENTRY(IS_NEARER, ${D(r, c)}, ${Y(r, c)}, ${D(r, c - 1)}, ${Y(r, c - 1)}, a${r}, y); }
%endfor
        INSERT_FIRST(IS_NEARER, ${D(r, 0)}, ${Y(r, 0)}, a${r}, y);
%endif
      }
%endfor
    }
%for r in range(rows):
    ${one_vector(r)}
%endfor
  }
  global real* restrict out = sums + ((size_t)at * n_chunks + chunk) * (SUMS * SAMPLES) + lane;
  out[0] = sum_n;
  out[SAMPLES] = sum_p;
  out[2 * SAMPLES] = sum_o;
  out[3 * SAMPLES] = sum_pp;
  out[4 * SAMPLES] = sum_oo;
  out[5 * SAMPLES] = sum_po;
}
