## Maps of S-map, second half: predictions of all targets from one library, reduced to Pearson's rho on the fly.
##
## smap_gram has found g for each row t of a library. The prediction of target c there is
##
##   p[t][c] = sum over s of H_ts y[s + Tp][c]          H_ts = W_ts^2 (1, z_s) . g_t
##
## a product of matrices of which the first is never stored: a group makes H for `step` library rows and its own rows t in local
## memory, and multiplies it with as many rows of targets. Each work-item keeps a tile of p, `rows_each` rows by `vectors`
## vectors of targets.
##
##   group = library x tile of rows x column tile
##     work-item = row_lane + row_lanes * target_lane
##     tiles of a work-item: row_tiles by target_tiles. Of a single one p stays in registers (GPUs, where the work-items of a
##     group share the work); of several it lies in local memory, and each is loaded once for `step` library rows
##     (processors, where a group is one work-item)
##
## Predictions are never written: smap_map_sums.mako reduces those of a tile to sums, and joins the tiles' sums to rho. With matrix
## units the kernel is another one, with the same sums: smap_map_units.mako.
##
## Types and names in capitals that are defined neither here nor in a fragment come from numeric.clh (vectors, sentinels),
## smap_map.clh (states, records), smap.clh (near rows), moment.clh (sums in double) and matrix_units.clh.
## ---- parameters (python -m pyedmcl.kernels.describe --write) ----
## Given by the problem:
##   E             embedding dimension: values in a state
##   gaps          a library or target has gaps, so that not all rows count
##   matrix_units  products are made on matrix units
##   halves        matrix units multiply numbers split into halves, with less precision; else they compute in double
##   dtype         number type of data and distances: float32 or float64
## Tuned for speed, never changing what is computed (values; default of a processor, of a GPU):
##   lanes         rows whose H a work-item makes at once (1 4 8 16; 16, 1)
##   width         adjacent targets in one vector (2 4 8 16; 16, 4)
##   vectors       vectors of targets of a work-item's tile (1 2 3 4; 4, 2)
##   rows_each     rows of a work-item's tile (4 6 8; 4, 8)
##   target_lanes  work-items of a group along the targets (1 8 16 32; 1, 32)
##   row_lanes     work-items of a group along the rows (1 8 16; 1, 8)
##   row_tiles     tiles of a work-item along the rows (1 8 16; 16, 1)
##   target_tiles  tiles of a work-item along the targets (1 2 4; 2, 1)
##   step          library rows at a time (8 16 32 64; 32, 64)
##   rows_local    work-items keep what H is made of in local memory; else in registers (no yes; no, yes)
## ---- end of parameters ----
<%namespace name="sums" file="smap_map_sums.mako"/>
<%namespace name="units" file="smap_map_units.mako"/>
<%
wg = target_lanes * row_lanes
rows = row_lanes * row_tiles * rows_each
columns = target_lanes * target_tiles * vectors * width
staged = wg > 1
kept = row_tiles * target_tiles == 1  # p stays in registers
hoisted = wg * lanes >= rows  # a work-item makes H for the same rows all the time
row_local = rows_local and staged  # what H is made of waits in local memory, not in registers
fours = staged and lanes in (1, 4) and rows_each % 4 == 0
together = max(32 // row_lanes, 1)  # target lanes of work-items that a GPU executes together

def place(row):
    """Where a row of H lies: adjacent row lanes read adjacent fours, so that each bank of local memory gives one number."""
    if not fours:
        return row
    return f"({row}) % {rows_each} / 4 * {4 * row_lanes} + ({row}) / {rows_each} * 4 + ({row}) % 4"

def place_in_tile(r):
    """The same for row `r` of a work-item's tile, from its first one on."""
    return r // 4 * 4 * row_lanes + r % 4 if fours else r

state = -(-(2 * E + gaps) // 4) * 4
%>
#define WG ${wg}
#define E ${E}
#define COORDINATES ${E}
#define GAPS ${int(gaps)}
#define STATE ${state}
#define COLUMNS ${2 * E + gaps}
#define ROWS ${rows}
#define TARGETS ${columns}
#define STEP ${step}
#define PIECES 6  // numbers of a tile of rows, by column
%if matrix_units:
#include "matrix_units.clh"
#define EXP2_OF_WEIGHT NEAR_EXP2
%endif
%if not matrix_units:
#define ROOT_OF_DISTANCE sqrt  // the other one takes registers that p needs
%elif halves:
#define ROOT_OF_DISTANCE NEAR_ROOT
%endif
#include "smap_map.clh"
#include "reduce.clh"
#include "moment.clh"

${units.kernels() if matrix_units else portable()}
${sums.score()}

## ---- The kernel for any device ----
<%def name="portable()">
typedef PASTE(REAL_NAME, ${width}) targetv;
typedef PASTE(WHOLE_NAME, ${width}) targetm;
typedef PASTE(REAL_NAME, 4) fourv;
#define LOAD_TARGETS(p) PASTE(vload, ${width})(0, p)
#define STORE_TARGETS(v, p) PASTE(vstore, ${width})(v, 0, p)

// states, columns: from smap_white; fits: from smap_gram. targets: [n_steps][target_stride], centred; row t of the map is
// observed at ${"row first + t"}, and what is behind the last row can be read. Groups: columns of column_begin to column_end
// in blocks, tiles of rows from
// first_tile of n_tiles on, libraries.
// sums: [library][tile][PIECES][sums_stride], by column less column_begin.
kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void smap_map(global const real* restrict states, global const real* restrict columns, global const real* restrict fits,
              const int n_rows, const int n_padded, const int first_tile, const int n_tiles, const int radius,
              global const real* restrict targets, const int target_stride, const int first, const int column_begin, const int column_end,
              global real* restrict sums, const int sums_stride) {
  local real h_tile[STEP * ROWS] __attribute__((aligned(64)));
%if staged:
  local real staged_states[STEP * STATE] __attribute__((aligned(64)));
  local real staged_targets[STEP * TARGETS] __attribute__((aligned(64)));
%endif
%if row_local:
  local real of_rows[(3 * E + 3) * ROWS];
%endif
%if not kept:
  local real p_tile[ROWS * TARGETS] __attribute__((aligned(64)));
%endif
%if row_lanes > 1:
  local real shared[${row_lanes} * TARGETS];
%endif
  const int library = get_group_id(2), tile = first_tile + get_group_id(1), row0 = tile * ROWS;
  const int block = column_begin + get_group_id(0) * TARGETS, lid = get_local_id(0);
  // Work-items that are executed together share target lanes: where there are no targets for these, they have no products.
  const int target_lane = lid / ${row_lanes}, row_lane = lid % ${row_lanes};
  states += (size_t)library * n_padded * STATE;
  columns += (size_t)library * n_padded * COLUMNS;
  fits += (size_t)library * n_padded * (E + 3);
  targets += (size_t)first * target_stride;
%if kept:
  targetv ${", ".join(f"p{r}_{v} = 0" for r in range(rows_each) for v in range(vectors))};
%else:
  for (int i = 0; i < ROWS * TARGETS; ++i) p_tile[i] = 0;
%endif

  const int slice = lid * LANES / ROWS;
%if row_local:
  for (int i = lid; i < (3 * E + 3) * ROWS; i += WG) {
    const int number = i / ROWS, row = row0 + i % ROWS;
    of_rows[i] = number < 2 * E ? columns[(size_t)number * n_padded + row] : fits[(size_t)(number - 2 * E) * n_padded + row];
  }
%endif
%if hoisted:
  const int lane = lid * LANES % ROWS;
%if not row_local:
  ${load_rows()}
%endif
%endif
  for (int from = 0; from < n_rows; from += STEP) {
%if staged:
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int i = lid; i < STEP * STATE; i += WG)
      staged_states[i] = from + i / STATE < n_padded ? states[(size_t)from * STATE + i] : 0;
    // Rows are counted from the first of all: counted from row `from`, which needs shorter products, 800 series of 500 steps took
    // 16.5 instead of 13.0 ms on an H200.
    if (column_begin % 4 == 0) {  // fours are aligned: target_stride is a multiple of 16
      for (int i = lid; i < STEP * TARGETS / 4; i += WG) {
        const int c = block + i % (TARGETS / 4) * 4, s = from + i / (TARGETS / 4);
        *(local fourv*)(staged_targets + 4 * i) =
            c < column_end && s < n_rows ? *(global const fourv*)(targets + (size_t)s * target_stride + c) : (fourv)(0);
      }
    } else {
      for (int i = lid; i < STEP * TARGETS; i += WG) {
        const int c = block + i % TARGETS, s = from + i / TARGETS;
        staged_targets[i] = c < column_end && s < n_rows ? targets[(size_t)s * target_stride + c] : 0;
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
%endif

    // ---- H of these library rows ----
%if hoisted:
    {
%if row_local:
      ${local_rows()}
%endif
%else:
    for (int lane = lid * LANES % ROWS; lane < ROWS; lane += WG * LANES) {
      ${local_rows() if row_local else load_rows()}
%endif
      for (int s = slice; s < STEP; s += ${max(wg * lanes // rows, 1)}) {
        realv value = 0;
        if (from + s < n_rows) {
          READ_STATE(${"local, staged_states + s * STATE" if staged else "global, states + (size_t)(from + s) * STATE"});
          STATE_DISTANCE(d);
          PREDICTS_WITH(h, STATE_WEIGHT(d), TOO_NEAR(from + s));
          value = h;
        }
        STOREV(value, h_tile + s * ROWS + ${place("lane")});
      }
    }
%if wg > 1:
    barrier(CLK_LOCAL_MEM_FENCE);
%endif

    // ---- Times the targets ----
%if kept:
    {
      local const real* restrict h_row = h_tile + row_lane * ${4 if fours else rows_each};
%if staged:
      local const real* restrict y = staged_targets + target_lane * ${width};
%else:
      global const real* restrict y = targets + (size_t)from * target_stride + block;
%endif
%if staged:
      const int left = column_end - block - target_lane / ${together} * ${together * width};
%for n_vectors in range(vectors, 0, -1):
      ${"if" if n_vectors == vectors else "else if"} (left > ${(n_vectors - 1) * target_lanes * width}) {
        ${multiply(4, n_vectors)}
      }
%endfor
%else:
      ${multiply(4, vectors)}
%endif
    }
%else:
    for (int column = 0; column < TARGETS && block + column < column_end; column += ${vectors * width}) {
      global const real* restrict y = targets + (size_t)from * target_stride + block + column;
      for (int row = 0; row < ROWS; row += ${rows_each}) {
        local const real* restrict h_row = h_tile + row;
        local real* restrict p = p_tile + row * TARGETS + column;
%for r in range(rows_each):
%for v in range(vectors):
        targetv p${r}_${v} = LOAD_TARGETS(p + ${r} * TARGETS + ${v * width});
%endfor
%endfor
        ${multiply(2, vectors)}
%for r in range(rows_each):
%for v in range(vectors):
        STORE_TARGETS(p${r}_${v}, p + ${r} * TARGETS + ${v * width});
%endfor
%endfor
      }
    }
%endif
  }

${sums.of_tile()}
}
</%def>

## What H of a row is made of, from local memory or from where it lies.
<%def name="local_rows()">
      realv q[E], centre[E], g[E + 1];
      _Pragma("unroll") for (int e = 0; e < E; ++e) {
        q[e] = LOADV(of_rows + e * ROWS + lane);
        centre[e] = LOADV(of_rows + (E + e) * ROWS + lane);
        g[e] = LOADV(of_rows + (2 * E + e) * ROWS + lane);
      }
      g[E] = LOADV(of_rows + 3 * E * ROWS + lane);
      const realv nearest = LOADV(of_rows + (3 * E + 1) * ROWS + lane), rate = LOADV(of_rows + (3 * E + 2) * ROWS + lane);
      const rowv upper = FIRST_ROWS + (rowv)(row0 + lane + radius);
</%def>
<%def name="load_rows()">
      const int t0 = row0 + lane;
      realv q[E], centre[E], g[E + 1];
      _Pragma("unroll") for (int e = 0; e < E; ++e) {
        q[e] = LOADV(columns + (size_t)e * n_padded + t0);
        centre[e] = LOADV(columns + (size_t)(E + e) * n_padded + t0);
        g[e] = LOADV(fits + (size_t)e * n_padded + t0);
      }
      g[E] = LOADV(fits + (size_t)E * n_padded + t0);
      const realv nearest = LOADV(fits + (size_t)(E + 1) * n_padded + t0), rate = LOADV(fits + (size_t)(E + 2) * n_padded + t0);
      const rowv upper = FIRST_ROWS + (rowv)(t0 + radius);
</%def>

## Adds the products of `step` library rows to the first `n_vectors` vectors of a work-item's tile p; h_row, y: where its rows
## of H and its targets are.
<%def name="multiply(unrolled, n_vectors)">
#pragma unroll ${unrolled}
      for (int s = 0; s < STEP; ++s) {
%for v in range(n_vectors):
        const targetv y${v} = LOAD_TARGETS(y + ${f"s * TARGETS + {v * target_lanes * width}" if staged else f"(size_t)s * target_stride + {v * width}"});
%endfor
%for r in range(rows_each):
        {
          const targetv h = (targetv)(h_row[s * ROWS + ${place_in_tile(r)}]);
%for v in range(n_vectors):
          p${r}_${v} = FUSED(h, y${v}, p${r}_${v});
%endfor
        }
%endfor
      }
</%def>
