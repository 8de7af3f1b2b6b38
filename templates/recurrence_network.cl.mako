## The recurrence network: rows of the adjacency matrix as bits, and the triangles that pass through each node.
##
## A cell is the compared distance of pyedmcl.recurrence.problem: sums in ascending order, no fused operations.
## ---- parameters (python -m pyedmcl.kernels.describe --write) ----
## Given by the problem:
##   m       coordinates of a point
##   step    numbers from one coordinate of a point to the next
##   stride  numbers from one point to the next
##   metric  distance of two points: a row of pyedmcl/recurrence/metrics.py
##   dtype   number type of data and distances: float32 or float64
##   strict  a cell is recurrent below the radius, not at it
## Tuned for speed, never changing what is computed (values; default of a processor, of a GPU):
##   wg      work-items of a group, a word each (8 16 32 64 128 256; 16, 64)
## ---- end of parameters ----
#define UNFUSED  // a cell is a sum of products that are rounded one by one
#define METRIC ${metric}
#include "metric.clh"

// bits[row * words + w], bit b: nodes row and 32 w + b are linked, that is, at least window apart in time and closer
// than limit (or as close, unless strict). Coordinate e of point t lies at t * ${stride} + e * ${step}. A work-item makes a
// word.
kernel __attribute__((reqd_work_group_size(${wg}, 1, 1)))
void recurrence_network(global const real* restrict x, global uint* restrict bits, const int row_begin, const int n,
                        const int words, const int window, const real limit) {
  const int w = get_global_id(0), i = row_begin + get_global_id(1);
  if (w >= words) return;
%for e in range(m):
  const real x${e} = x[(size_t)i * ${stride} + ${e * step}];
%endfor
  uint word = 0;
  const int end = min(32, n - 32 * w);
  for (int b = 0; b < end; ++b) {
    const int j = 32 * w + b;
    real s = 0;
%for e in range(m):
    {
      const real d = x${e} - x[(size_t)j * ${stride} + ${e * step}];
      const real q = TERM(d);
      s = JOIN_OR_NAN(s, q);
    }
%endfor
    const int apart = i > j ? i - j : j - i;
    word |= (uint)(s ${"<" if strict else "<="} limit && apart >= window) << b;
  }
  bits[(size_t)i * words + w] = word;
}

// closed[row - row_begin]: pairs (j, k) of linked nodes that are both linked to the row; each pair counts twice. The
// work-items of a group share a row: they run through its neighbours j together, and each has its words of j.
kernel __attribute__((reqd_work_group_size(${wg}, 1, 1)))
void recurrence_triangles(global const uint* restrict bits, global ulong* restrict closed, const int row_begin,
                          const int words) {
  local ulong part[${wg}];
  const int lane = get_local_id(0);
  global const uint* restrict mine = bits + (size_t)(row_begin + get_group_id(0)) * words;
  ulong count = 0;
  for (int v = 0; v < words; ++v) {
    for (uint left = mine[v]; left; left &= left - 1) {
      const int j = 32 * v + 31 - clz(left & -left);
      global const uint* restrict other = bits + (size_t)j * words;
      uint both = 0;
      for (int w = lane; w < words; w += ${wg}) both += popcount(mine[w] & other[w]);
      count += both;
    }
  }
  part[lane] = count;
  barrier(CLK_LOCAL_MEM_FENCE);
  if (lane == 0) {
    for (int k = 1; k < ${wg}; ++k) count += part[k];
    closed[get_group_id(0)] = count;
  }
}
