## Ranks of distances: the k-th smallest distance of all cells, or of each column, is found exactly in O(N) memory.
##
##   recurrence_ranks    how many cells of each column lie at or below each of a few limits: narrows an interval
##   recurrence_gather   the distances in some intervals, which are sorted on the host, and how many lie below each
##   recurrence_next     the few smallest distances of each column above a limit
##
## A work-item owns a column j and goes through rows i of [row_begin, row_end) with |i - j| >= window. A cell is the compared
## distance of pyedmcl.recurrence.problem: terms joined in ascending order, no fused operations; NaN is in no interval.
##
## Specialisation
##   m, step, stride   coordinate e of point t lies at t * stride + e * step, e < m
##   metric, dtype     how points are compared, and in what precision
##   per_column        each column has limits of its own
## Tunables
##   wg                work-items of a group
##   candidates        limits that are counted at once: more of them mean fewer sweeps
##   next              distances of a column that recurrence_next keeps
##
## Types and names in capitals that are not defined here come from metric.clh (distances).
## ---- parameters (python -m pyedmcl.kernels.describe --write) ----
## Given by the problem:
##   m           coordinates of a point
##   step        numbers from one coordinate of a point to the next
##   stride      numbers from one point to the next
##   metric      distance of two points: a row of pyedmcl/recurrence/arguments.py
##   dtype       number type of data and distances: float32 or float64
##   per_column  each column has a radius of its own
## Tuned for speed, never changing what is computed (values; default of a processor, of a GPU):
##   wg          work-items of a group, a column each (16 32 64 128 256; 16, 64)
##   candidates  limits counted at once; more mean fewer sweeps (7 15 31; 15, 15)
##   next        distances of a column that the last sweep sorts (1 4 8 16; 8, 8)
## ---- end of parameters ----
<%
looped = m > 32  # more coordinates are not written out, but read in a loop, which compiles as fast for any number
rows = 1 if looped else 8
%>
#define UNFUSED  // a cell is a sum of products that are rounded one by one
#define METRIC ${metric}
#include "metric.clh"
%if looped:
#include "coordinates.clh"
%endif

## s: what is compared, of a row and the column.
<%def name="distance(row)">
      real s = 0;
%if looped:
      global const real* restrict row = x + (size_t)(${row}) * ${stride};
      EACH_COORDINATE(e, ${m}) {
        const real d = row[(size_t)e * ${step}] - column[(size_t)e * ${step}];
        const real q = TERM(d);
        s = JOIN_OR_NAN(s, q);
      }
%else:
%for e in range(m):
      {
        const real d = x[(size_t)(${row}) * ${stride} + ${e * step}] - y${e};
        const real q = TERM(d);
        s = JOIN_OR_NAN(s, q);
      }
%endfor
%endif
</%def>

## Whether a cell of a row counts: the upper part (side 0) ends where the lower one begins.
<%def name="counted(row)">(side ? ${row} - j >= window : j - ${row} >= max(window, 1))</%def>

## Opens two loops: over rows above the window (side 0, left out if lower) and below it, some at once. All columns of a
## group go through the same rows, so that these are read once for all, also where some cells do not count.
<%def name="each_row(column_begin, by=1)">
  const int group_begin = ${column_begin} + (int)get_group_id(0) * ${wg};
  for (int side = lower ? 1 : 0; side < 2; ++side) {
    const int begin = side ? max(row_begin, group_begin + window) : row_begin;
    const int end = side ? row_end : min(row_end, group_begin + ${wg} - window);
    for (int i = begin; i < end; i += ${by}) {
</%def>

## The same, row by row, and s is the distance of each cell that counts, else NaN.
<%def name="each_cell()">
${each_row("column_begin")}
${distance("i")}
      if (!${counted("i")}) s = NAN;
</%def>

## The coordinates of column j.
<%def name="column()">
%if looped:
  global const real* restrict column = y + (size_t)j * ${stride};
%else:
%for e in range(m):
  const real y${e} = y[(size_t)j * ${stride} + ${e * step}];
%endfor
%endif
</%def>

// counts[c * n_columns + column - column_begin] grows by the cells at or below limit c, which is
// ${f"limits[(column - column_begin) * {candidates} + c]" if per_column else "limits[c]"}. If lower, only cells below the main diagonal count.
kernel __attribute__((reqd_work_group_size(${wg}, 1, 1)))
void recurrence_ranks(global const real* restrict x, global const real* restrict y, global const real* restrict limits,
                      global uint* restrict counts, const int row_begin, const int row_end, const int column_begin,
                      const int n_columns, const int window, const int lower) {
  const int at = get_global_id(0);
  if (at >= n_columns) return;
  const int j = column_begin + at;
${column()}
  global const real* restrict limit = limits${f" + (size_t)at * {candidates}" if per_column else ""};
%for c in range(candidates):
  const real limit${c} = limit[${c}];
  uint n${c} = 0;
%endfor
${each_cell()}
%for c in range(candidates):
      n${c} += s <= limit${c};
%endfor
    }
  }
%for c in range(candidates):
  counts[(size_t)${c} * n_columns + at] += n${c};
%endfor
}

// Of bands (limits[2 b], limits[2 b + 1]] of the same cells: counts[b * n_columns + j] grows by those at or below the
// band, counts[(bands + b) * n_columns + j] by those in it, and these are found[b * capacity ...], in any order, as far
// as they fit; filled[b] is their number. ${rows} rows at once are counted before any of them is put down.
kernel __attribute__((reqd_work_group_size(${wg}, 1, 1)))
void recurrence_gather(global const real* restrict x, global const real* restrict y, global const real* restrict limits,
                       global uint* restrict counts, global real* restrict found, global int* restrict filled,
                       const int bands, const int capacity, const int row_begin, const int row_end,
                       const int n_columns, const int window, const int lower) {
  const int j = get_global_id(0);
  if (j >= n_columns) return;
${column()}
${each_row("0", rows)}
%for r in range(rows):
      real s${r};
      {
        const int at = min(i + ${r}, end - 1);
${distance("at")}
        s${r} = i + ${r} < end && ${counted(f"(i + {r})")} ? s : NAN;
      }
%endfor
      for (int b = 0; b < bands; ++b) {
        const real low = limits[2 * b], high = limits[2 * b + 1];
        uint below = 0, reached = 0;
%for r in range(rows):
        below += s${r} <= low;
        reached += s${r} <= high;
%endfor
        counts[(size_t)b * n_columns + j] += below;
        if (reached > below) {
          counts[(size_t)(bands + b) * n_columns + j] += reached - below;
          // Compared once more, row by row, so that the atomic function stands in one place only.
          for (int at = i; at < min(i + ${rows}, end); ++at) {
${distance("at")}
            if (${counted("at")} && s > low && s <= high) {
              const int slot = atomic_inc(filled + b);
              if (slot < capacity) found[(size_t)b * capacity + slot] = s;
            }
          }
        }
      }
    }
  }
}

// The ${next} smallest distances above low[column - column_begin] of the same cells, ascending, inf where there are fewer:
// found[(column - column_begin) * ${next} + rank], which holds those of the rows before row_begin, or inf.
kernel __attribute__((reqd_work_group_size(${wg}, 1, 1)))
void recurrence_next(global const real* restrict x, global const real* restrict y, global const real* restrict lows,
                     global real* restrict found, const int row_begin, const int row_end, const int column_begin,
                     const int n_columns, const int window, const int lower) {
  const int at = get_global_id(0);
  if (at >= n_columns) return;
  const int j = column_begin + at;
${column()}
  const real low = lows[at];
%for r in range(next):
  real best${r} = found[(size_t)at * ${next} + ${r}];
%endfor
${each_cell()}
      if (s > low && s < best${next - 1}) {
        best${next - 1} = s;
%for r in reversed(range(next - 1)):
        {
          const real a = best${r}, b = best${r + 1};
          best${r} = a < b ? a : b;
          best${r + 1} = a < b ? b : a;
        }
%endfor
      }
    }
  }
%for r in range(next):
  found[(size_t)at * ${next} + ${r}] = best${r};
%endfor
}
