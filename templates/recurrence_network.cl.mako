## The recurrence network (Donner et al., New Journal of Physics 12, 033025, 2010): points are nodes, recurrences are links.
##
##   recurrence_network     rows of the adjacency matrix, a bit for each pair of nodes: bits[row][word of 32 nodes]
##   recurrence_triangles   for each node, the ordered pairs of its neighbours that are linked: twice its triangles
##
## A cell is the compared distance of pyedmcl.recurrence.problem: terms joined in ascending order, no fused operations.
##
## Specialisation
##   m, step, stride   coordinate e of point t lies at t * stride + e * step, e < m
##   metric, dtype     how points are compared, and in what precision
##   strict            a distance equal to the limit is no link
## Tunable
##   wg                work-items of a group: each makes a word; or they share the words of a row
## ---- parameters (python -m pyedmcl.kernels.describe --write) ----
## Given by the problem:
##   m       coordinates of a point
##   step    numbers from one coordinate of a point to the next
##   stride  numbers from one point to the next
##   metric  distance of two points: a row of pyedmcl/recurrence/arguments.py
##   dtype   number type of data and distances: float32 or float64
##   strict  a cell is recurrent below the radius, not at it
## Tuned for speed, never changing what is computed (values; default of a processor, of a GPU):
##   wg      work-items of a group, a word each (8 16 32 64 128 256; 16, 64)
## ---- end of parameters ----
<%
looped = m > 32  # more coordinates are not written out, but read in a loop, which compiles as fast for any number
%>
#define UNFUSED  // a cell is a sum of products that are rounded one by one
#define METRIC ${metric}
#include "metric.clh"
%if looped:
#include "coordinates.clh"
%endif

// bits[row * words + w], bit b: nodes row and 32 w + b are linked, that is, at least window apart in time and closer
// than limit${"" if strict else ", or as close"}. A work-item makes a word.
kernel __attribute__((reqd_work_group_size(${wg}, 1, 1)))
void recurrence_network(global const real* restrict x, global uint* restrict bits, const int row_begin, const int n,
                        const int words, const int window, const real limit) {
  const int w = get_global_id(0), i = row_begin + get_global_id(1);
  if (w >= words) return;
%if looped:
  global const real* restrict mine = x + (size_t)i * ${stride};
%else:
%for e in range(m):
  const real x${e} = x[(size_t)i * ${stride} + ${e * step}];
%endfor
%endif
  uint word = 0;
  const int end = min(32, n - 32 * w);
  for (int b = 0; b < end; ++b) {
    const int j = 32 * w + b;
    real s = 0;
%if looped:
    global const real* restrict other = x + (size_t)j * ${stride};
    EACH_COORDINATE(e, ${m}) {
      const real d = mine[(size_t)e * ${step}] - other[(size_t)e * ${step}];
      const real q = TERM(d);
      s = JOIN_OR_NAN(s, q);
    }
%else:
%for e in range(m):
    {
      const real d = x${e} - x[(size_t)j * ${stride} + ${e * step}];
      const real q = TERM(d);
      s = JOIN_OR_NAN(s, q);
    }
%endfor
%endif
    const int apart = i > j ? i - j : j - i;
    word |= (uint)(s ${"<" if strict else "<="} limit && apart >= window) << b;
  }
  bits[(size_t)i * words + w] = word;
}

// closed[row - row_begin]: pairs (j, k) of linked nodes that are both linked to the row; each pair counts twice. The
// work-items of a group share a row: they go through its neighbours j together, and each compares its share of j's words
// with those of the row.
kernel __attribute__((reqd_work_group_size(${wg}, 1, 1)))
void recurrence_triangles(global const uint* restrict bits, global ulong* restrict closed, const int row_begin,
                          const int words) {
  local ulong part[${wg}];  // what each work-item found
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
