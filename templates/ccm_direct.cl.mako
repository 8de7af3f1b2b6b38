## Convergent cross mapping (Sugihara et al., Science 338, 496, 2012) with small sub-libraries: distances to all their members.
##
## Where a sub-library has few members, computing its distances is less work than scanning sorted neighbours for them
## (ccm.cl.mako). A work-item takes one sample through a chunk of query rows, `rows` vectors of LANES rows at a time, and
## writes the same sums as a scan, with the same bits.
##
## The k nearest members of a query row are kept as a list by distance; members come in ascending rows (order.clh).
##
##   k <= 8   in registers: distance<r>_<i>, future<r>_<i>, i = 0 for the nearest; r numbers the vectors of rows
##   k > 8    in memory: member_distances[i], member_futures[i], for one vector of rows
##
## Types and names in capitals that are not defined here come from numeric.clh (vectors, sentinels), ccm.clh (columns),
## order.clh (order of neighbours, lists), reduce.clh (sums) and weights.clh (weights).
## ---- parameters (python -m pyedmcl.kernels.describe --write) ----
## Given by the problem:
##   E        embedding dimension: values in a state
##   k        number of neighbours
##   dtype    number type of data and distances: float32 or float64
## Tuned for speed, never changing what is computed (values; default of a processor, of a GPU):
##   lanes    query rows of a work-item; a SIMD register on CPUs (1 4 8 16; 16, 4)
##   vectors  vectors of rows of a work-item, side by side (1 2 3 4; 2, 1)
##   wg       work-items of a group (1 32 64 128 256; 1, 64)
## ---- end of parameters ----
<%
in_registers = k <= 8
# As many vectors of rows as registers hold the lists and states of.
rows = max(min(vectors, 24 // (2 * k + E)), 1) if in_registers else 1

def distance(r, i):
    """Distance of the i-th nearest member of a query row, squared while members are compared."""
    return f"distance{r}_{i}" if in_registers else f"member_distances[{i}]"

def future(r, i):
    """The future target of the i-th nearest member."""
    return f"future{r}_{i}" if in_registers else f"member_futures[{i}]"
%>
## From the nearest members of a vector of query rows to their predictions and the sums.
<%def name="predict(r)">
    {
      rowv enough = ${distance(r, 0)} < (realv)(FAR);
%if not in_registers:
      if (least > 1) enough = enough && member_distances[least - 1] < (realv)(FAR);
%else:
%for c in range(1, k):
      if (least == ${c + 1}) enough = enough && ${distance(r, c)} < (realv)(FAR);
%endfor
%endif
      const realv d_min = root(${distance(r, 0)});
      const rowv at_zero = d_min == (realv)(0);
      const realv inverse = INVERSE_DISTANCE(d_min, at_zero);
      realv weights = 1, p = ${future(r, 0)};
%if not in_registers:
      for (int c = 1; c < K; ++c) {
${add_member(r, "c")}
      }
%else:
%for c in range(1, k):
      {
${add_member(r, c)}
      }
%endfor
%endif
      // One row after the other, as a scan adds them.
      real predicted[LANES];
      whole is_predicted[LANES];
      STOREV(quotient(p, weights), predicted);
      STOREV(enough, is_predicted);
      const int begin = t0 + ${r} * LANES;
      for (int l = 0; l < min(LANES, last - begin); ++l) {
        const real o = future_target[begin + l];
        if (!is_predicted[l] || !(fabs(o) < PRESENT)) continue;
        sum_n += 1;
        sum_p += predicted[l];
        sum_o += o;
        sum_pp = FUSED(predicted[l], predicted[l], sum_pp);
        sum_oo = FUSED(o, o, sum_oo);
        sum_po = FUSED(predicted[l], o, sum_po);
      }
    }
</%def>
<%def name="add_member(r, c)">
        const rowv present = ${distance(r, c)} < (realv)(FAR);
        const realv d = root(${distance(r, c)});
        const realv w = CHOOSE((realv)(0), SIMPLEX_WEIGHT(d, inverse, at_zero), present);
        weights += w;
        p = FUSED(w, ${future(r, c)}, p);
</%def>
#define WG ${wg}
#define K ${k}
#include "ccm.clh"

// library: [table][library_stride], query: [table][query_stride], row 0 at column front, GAP around the data. lists: members of
// samples, from ccm_list. sample_of: [n_sampled], column * SAMPLES + number of the sample. All else as for ccm. This launch has
// items begin to end - 1, number chunk * n_sampled + sample.
kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void ccm_direct(global const real* restrict library, const int library_stride, global const real* restrict query,
                const int query_stride, const int front, global const real* restrict future_targets,
                const int future_stride, global const int* restrict columns, global const int* restrict lists,
                global const int* restrict sample_of, const int n_sampled, const int t_begin, const int t_end,
                const int tau, const int exclusion_radius, const int least, const int n_chunks, const ulong begin,
                const ulong end, global real* restrict sums) {
  // ---- The sample, its members, and its chunk of query rows ----
  const ulong item = begin + get_global_id(0);
  if (item >= end) return;
  const int sample = sample_of[item % n_sampled], chunk = (int)(item / n_sampled);
  const int at = sample / SAMPLES, lane = sample % SAMPLES;
  global const int* restrict column = columns + at * COLUMN_INTS;
  const int size = COLUMN_SIZE(column);
  global const int* restrict list = lists + (size_t)COLUMN_LISTS(column) + (size_t)lane * size;
  global const real* restrict future_target = future_targets + (size_t)COLUMN_FUTURE(column) * future_stride;
  global const real* restrict x = library + (size_t)COLUMN_TABLE(column) * library_stride + front;
  global const real* restrict queries = query + (size_t)COLUMN_TABLE(column) * query_stride + front;
  const int first = t_begin + chunk * CHUNK, last = min(first + CHUNK, t_end);
  real sum_n = 0, sum_p = 0, sum_o = 0, sum_pp = 0, sum_oo = 0, sum_po = 0;

  for (int t0 = first; t0 < last; t0 += LANES * ${rows}) {
%for r in range(rows):
%for e in range(E):
    const realv q${r}_${e} = LOADV(queries + t0 + ${r} * LANES - ${e} * tau);
%endfor
%if not in_registers:
    realv member_distances[K], member_futures[K];
    for (int i = 0; i < K; ++i) {
      member_distances[i] = FAR;
      member_futures[i] = 0;
    }
%else:
    realv ${", ".join(f"distance{r}_{i} = FAR, future{r}_{i} = 0" for i in range(k))};
%endif
%endfor

    // ---- All members against these query rows ----
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
      const realv y = future_target[j];
%for r in range(rows):
      // The first members are nearly all near enough for some lane, so there a branch would often be predicted wrongly.
      if (${"i < 128 || " if in_registers else ""}ANYV(IS_NEARER(a${r}, y, ${distance(r, k - 1)}, ${future(r, k - 1)}))) {
%if not in_registers:
        INSERT_SORTED(IS_NEARER, AS_IT_LIKES, 0, K, member_distances, member_futures, a${r}, y);
%else:
%for c in range(k - 1, 0, -1):
        { INSERT_ENTRY(IS_NEARER, ${distance(r, c)}, ${future(r, c)}, ${distance(r, c - 1)}, ${future(r, c - 1)}, a${r}, y); }
%endfor
        INSERT_FIRST(IS_NEARER, ${distance(r, 0)}, ${future(r, 0)}, a${r}, y);
%endif
      }
%endfor
    }

    // ---- Predictions, and the sums ----
%for r in range(rows):
    ${predict(r)}
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
