## Cross mapping: predict many targets from one library's neighbour table, and reduce the predictions to Pearson's rho.
##
## Simplex projection (Sugihara and May, Nature 344, 734, 1990) predicts target c at row t from the k neighbours of row t:
##
##   p[t][c] = sum_i weight[t][i] * y[row[t][i] + Tp][c]          i = 0 .. k-1
##
## and rho (Sugihara et al., Science 338, 496, 2012) is the correlation of p with the observation o[t][c] = y[t + Tp][c].
## It needs five sums over t: of p, o, p p, o o and p o. Predictions are added to these sums at once and never written.
##
## A row costs k + 1 reads of a target, and the layout serves these reads. Targets lie time-major: adjacent targets are
## adjacent in memory, so that one vector load fetches the value of a neighbour for several of them.
##
##   targets                  column:  0   1   2  ...            weights and rows of a dimension (tables of the search)
##     step 0                         y00 y01 y02                  one library after another, each [table_rows][k_stride];
##     step 1                         y10 y11 y12                  within a tile of table_tile rows neighbour by
##     ...                                                         neighbour: [k_stride][table_tile]
##
## A group owns a column tile (adjacent targets) and every n_slices-th library (or library_lanes of them at once):
##
##   work-item = target_lane + target_lanes * (row_lane + row_lanes * library_lane)
##     target_lane    says which targets of the tile the work-item has: `vectors` vectors of `lanes` targets
##     row_lane       says which query rows it has
##     library_lane   says which library it has, of those that the group looks up at once
##
## A lane here is a work-item's place along one axis; `lanes` is the width of a vector. Work-items of a target lane have the same
## targets; row_place = row_lane + row_lanes * library_lane is the place of a work-item among them.
##
## lookup_prediction.mako makes the predictions of a row. lookup_sums.mako adds them over the rows, in an order that does not
## depend on the parameters.
##
## A group fetches the targets of its tile into local memory (if they are staged) and sums the observations once (if there are
## no gaps). Then, for each library, it sums over the rows, joins the sums of the row lanes, and writes rho.
##
## Targets of 16 bits (precision "compact"; compact.clh, compact.cl.mako) need half the bytes. Their values lie in [0.5, 2) and
## not around 0, so that all sums must be centred. The weights of a row add to 1: a prediction whose sum begins at -centre is
## centred without further work. Observations are centred once for the group, and the sum of products is centred at its end.
## Where predictions vary too little for so few bits, the kernel writes MARKED instead of rho, and a launch with precision
## "again" computes these pairs from targets of 32 bits (lookup_marks.mako).
##
## Types and names in capitals that are defined neither here nor in a fragment come from numeric.clh (vectors, sentinels),
## reduce.clh (sums whose rounding errors are kept) and compact.clh (16 bits).
## ---- parameters (python -m pyedmcl.kernels.describe --write) ----
## Given by the problem:
##   k              number of neighbours; 0: an argument, for maps of many dimensions with few targets each
##   dtype          number type of data and distances: float32 or float64
##   gaps           a library or target has gaps, so that not all rows count
##   stage_rows     rows of targets in local memory; 0: targets are read from the caches
##   table_tile     query rows of a tile of the neighbour tables
##   narrow_rows    the rows that tables name are numbers of 16 bits
##   precision      full; compact: targets of 16 bits; again: full, for the pairs that compact has marked
##   local_sums     between two chunks, local memory holds: 0 nothing; 1 the rounding errors of the sums; 2 the errors
##                  and the sums
## Tuned for speed, never changing what is computed (values; default of a processor, of a GPU):
##   lanes          adjacent targets in one vector (1 2 4 8 16; 16, 2)
##   vectors        vectors of targets that share rows and weights (1 2 4; 4, 1)
##   target_lanes   work-items of a group along the targets (1 2 3 4 8 16 32; 1, 16)
##   row_lanes      work-items of a group along the query rows (1 4 8 16 32 64 128; 1, 8)
##   library_lanes  libraries that a group looks up at once (1 2 4 8 16 32; 1, 1)
##   stage          keep a group's targets in local memory (no yes; no, no)
##   unroll         query rows per step (1 2 4; 1, 4)
##   quads          load rows and weights four at a time (no yes; no, yes)
## ---- end of parameters ----
<%namespace name="sums" file="lookup_sums.mako"/>
<%namespace name="marks" file="lookup_marks.mako"/>
<%namespace name="prediction" file="lookup_prediction.mako"/>
<%
columns = vectors * lanes  # targets of a work-item
group_columns = target_lanes * columns
wg = target_lanes * row_lanes * library_lanes
compact = precision == "compact"
again = precision == "again"
group_rows = row_lanes * library_lanes  # work-items that share a target: all can help to sum observations
staged = stage_rows > 0
# Sums of observations are the same for all libraries, unless the gaps of a library leave out some rows.
group_sums = [] if gaps else ["o", "oo"]
# These sums are taken for each library; "n" counts the rows that have both a prediction and an observation.
library_sums = [s for s in ["p", "o", "pp", "oo", "po"] + (["n"] if gaps else []) if s not in group_sums]
# Tables of weights are padded to four neighbours. Where k is 0 here, it is an argument, so that one program serves all k.
k_stride = -(-k // 4) * 4 if k else "ANY_STRIDE"
tile_stride = table_tile * k_stride if k else f"({table_tile} * ANY_STRIDE)"
row_type = "ushort" if narrow_rows else "int"
target_type = "ushort" if compact else "real"

def target(row, v):
    """Vector v of a work-item's targets at a row: from local memory where they are staged, else from the caches."""
    at = f"y + ({'int' if staged else 'size_t'})({row}) * STRIDE + {v * lanes}"
    if not compact:
        return f"(*(local const realv*)({at}))" if staged else f"LOADV({at})"
    codes = f"*(local const codesv*)({at})" if staged else f"LOADCODES({at})"
    return f"DECODED({codes}, top_byte)"

def centre(v):
    """About the means of vector v of a work-item's targets, in the unit of codes."""
    return f"LOADV(centre_of + target_lane * {columns} + {v * lanes})"

def total(s, v):
    """The final value of a sum: the group's, or the work-item's plus its kept rounding error."""
    if s in group_sums and group_rows > 1:
        return f"LOADV(total_{s} + target_lane * {columns} + {v * lanes})"
    return f"sum_{s}{v} + rest_{s}{v}"
%>
// Row t belongs to strand (t - t_begin) % STRANDS. The rows of a strand are added plainly, CHUNK at a time; each chunk's sum is
// then added with its rounding error kept (lookup_sums.mako). Short chunks have small rounding errors.
#define CHUNK 64
#define STRANDS 8
%if not k:
#define ANY_STRIDE ((any_k + 3) / 4 * 4)
%endif
// Where the nearest neighbour of row T is; the next ones follow ${table_tile} numbers apart.
%if table_tile == 1:
#define ENTRY_OF(T) (table + (size_t)(T) * ${k_stride})
%else:
#define ENTRY_OF(T) (table + (size_t)((T) / ${table_tile}) * ${tile_stride} + (T) % ${table_tile})
%endif
// A vector in local memory at a multiple of its length, which takes one access; vload would take one for each number.
#define LOCALV(p) (*(local realv*)(p))
%if local_sums:
// Where the i-th vector of a work-item's sums waits.
#define WAITING(i) (waiting + ((i) * ${wg} + (int)get_local_id(0)) * ${lanes})
%endif
#define STRIDE ${group_columns if staged else "target_stride"}
#include "reduce.clh"
%if precision != "full":
#include "compact.clh"
%endif
%if compact:
#define LEAST_VARIANCE 0.01f  // of predictions, in parts of the observations', that targets of 16 bits suffice for
%if lanes == 1:
#define LOADCODES(p) (*(p))
%else:
#define LOADCODES(p) PASTE(as_, CODES_NAME)(PASTE(vload, LANES)(0, p))
%endif
%endif

%if narrow_rows:
// Writes the rows of tables, [n], with half the bytes, because reading tables is what limits lookups with many neighbours.
kernel void lookup_narrow(global const int* restrict rows, global ushort* restrict narrow, const ulong n) {
  const size_t i = get_global_id(0);
  if (i < n) narrow[i] = (ushort)rows[i];
}

%endif
%if compact:
// targets: [n_steps][target_stride], in 16 bits; centres: [target_stride], about their means.
%else:
// targets: [n_steps][target_stride], conditioned, GAP where a target has one.
%endif
// rows, weights: the table of a dimension, from table_begin on; see the picture above. A row without neighbours has
//   weights of 0, and rows that can be read.
// rho: [library][rho_stride], written from row first_library on, to column target_of[c].
// Columns column_begin .. column_end - 1 belong to this launch; query rows are t_begin .. t_end - 1, observed at t + Tp.
// table_rows: query rows that a table has room for. n_slices: groups that share the libraries of a column tile. top_byte: that
// of compact.clh, which says why it is an argument. any_k: k, where it is one.
kernel __attribute__((reqd_work_group_size(${wg}, 1, 1)))
void lookup(global const ${target_type}* restrict targets, global const ${row_type}* restrict rows,
            global const real* restrict weights, global const int* restrict target_of, global real* restrict rho,
            const int target_stride, const int column_begin, const int column_end, const int n_rows, const int t_begin,
            const int t_end, const int Tp, const int n_libraries, const int first_library, const int rho_stride,
            const ulong table_begin, const int table_rows,
%if compact:
            const int n_slices, global const real* restrict centres, const uint top_byte) {
%elif not k:
            const int n_slices, const int any_k) {
%else:
            const int n_slices) {
%endif
  // `slice` is the group's number among the n_slices groups that share the libraries of a column tile. They are neighbours, so
  // that the tile stays in the cache.
  const int slice = get_group_id(0) % n_slices;
  const int target_lane = get_local_id(0) % ${target_lanes}, row_place = get_local_id(0) / ${target_lanes};
  const int row_lane = row_place % ${row_lanes}, library_lane = row_place / ${row_lanes};
  const int tile_begin = column_begin + (get_group_id(0) / n_slices) * ${group_columns};
  const int c0 = tile_begin + target_lane * ${columns};
%if again:

  // ---- Is there anything to do? ----
${marks.end_unless_marked()}
%endif
%if local_sums:
  // Layout: rounding errors [sum][work-item], then sums [sum][work-item]. When all rows of a library are added, the same memory
  // serves to join the work-items' sums.
  local real waiting[${max(local_sums * len(library_sums), 2) * wg * columns}] __attribute__((aligned(128)));
  local real *const shared_sum = waiting, *const shared_rest = waiting + ${group_rows * group_columns};
%elif row_lanes > 1 or group_sums and group_rows > 1:
  local real shared_sum[${group_rows} * ${group_columns}] __attribute__((aligned(128)));
  local real shared_rest[${group_rows} * ${group_columns}] __attribute__((aligned(128)));
%endif
%if row_lanes > 1 or group_sums and group_rows > 1:
%for s in group_sums:
  local real total_${s}[${group_columns}];
%endfor
%endif

  // ---- The targets of the column tile ----
%if compact:
  local real centre_of[${group_columns}];
  for (int i = get_local_id(0); i < ${group_columns}; i += ${wg}) centre_of[i] = centres[tile_begin + i];
%if not staged:
  barrier(CLK_LOCAL_MEM_FENCE);
%endif
%endif
%if staged:
  // All steps of the group's columns lie in local memory; `y` is shifted by Tp, so that y[row] is the value to predict.
  local ${target_type} ys[${stage_rows} * ${group_columns}] __attribute__((aligned(64)));
  for (int i = get_local_id(0); i < n_rows * ${group_columns}; i += ${wg})
  {
    const int c = tile_begin + i % ${group_columns};
    ys[i] = c < column_end ? targets[(size_t)(i / ${group_columns}) * target_stride + c] : 0;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  local const ${target_type}* restrict y = ys + Tp * ${group_columns} + target_lane * ${columns};
%else:
  global const ${target_type}* restrict y = targets + (ptrdiff_t)Tp * target_stride + c0;
%endif
%if group_sums:

  // ---- Sums of observations, once for the group ----
%for v in range(vectors):
%for s in group_sums:
  realv sum_${s}${v} = 0, rest_${s}${v} = 0;
%endfor
%endfor
<%sums:sum_rows sums="${group_sums}" place="row_place" among="${group_rows}" unrolled="${1}">
%for v in range(vectors):
            {
              const realv o = ${target("t", v)}${f" - {centre(v)}" if compact else ""};
              part_o${v} += o;
              part_oo${v} = FUSED(o, o, part_oo${v});
            }
%endfor
</%sums:sum_rows>
%if group_rows > 1:
  if (row_place == 0) {
%for v in range(vectors):
%for s in group_sums:
    STOREV(sum_${s}${v} + rest_${s}${v}, total_${s} + target_lane * ${columns} + ${v * lanes});
%endfor
%endfor
  }
  barrier(CLK_LOCAL_MEM_FENCE);
%endif
%endif

  // ---- One library after another ----
  for (int first = slice * ${library_lanes}; first < n_libraries; first += n_slices * ${library_lanes}) {
    // All work-items of a group must reach the same barriers. Those past the last library therefore repeat it, and write
    // nothing.
    const int library = min(first + library_lane, n_libraries - 1);
    const size_t table = table_begin + (size_t)library * table_rows * ${k_stride};
%if again:
${marks.continue_unless_marked()}
%endif
%for v in range(vectors):
    realv ${", ".join(f"sum_{s}{v} = 0, rest_{s}{v} = 0" for s in library_sums)};
%endfor
%if gaps:
    // Targets have mean 0 over all rows. Over the rows that remain after the library's gaps their mean may be far from 0, so sums
    // are taken relative to the first remaining observation.
%for v in range(vectors):
    realv origin${v} = 0;
    {
      rowv seen = 0;
      for (int t = t_begin; t < t_end && !ALLV(seen); ++t) {
        if (!(weights[ENTRY_OF(t)] > 0)) continue;
        const realv o = ${target("t", v)};
        const rowv is_first = (fabs(o) < (realv)(PRESENT)) && !seen;
        origin${v} = CHOOSE(origin${v}, o, is_first);
        seen = seen || is_first;
      }
    }
%endfor
%endif

%if compact:
%for v in range(vectors):
    const realv centre${v} = ${centre(v)};
%endfor
%endif
    // Sums over the rows. Gaps leave out rows without a neighbour or an observation.
<%sums:sum_rows sums="${library_sums}" place="row_lane" among="${row_lanes}" unrolled="${unroll}" waiting="${local_sums}">
        const size_t at = ENTRY_OF(t);
        ${prediction.of_row(target)}
%if gaps:
        const real any_neighbour = weights[at];  // the nearest neighbour's weight is 0 where there is none
%endif
%for v in range(vectors):
        {
          realv o = ${target("t", v)};
%if gaps:
          const rowv counted = (fabs(o) < (realv)(PRESENT)) && (rowv)(any_neighbour > 0);
          o = CHOOSE((realv)(0), o - origin${v}, counted);
          p${v} = CHOOSE((realv)(0), p${v} - origin${v}, counted);
          part_n${v} += CHOOSE((realv)(0), (realv)(1), counted);
%endif
          part_p${v} += p${v};
          part_pp${v} = FUSED(p${v}, p${v}, part_pp${v});
%if not group_sums:
          part_o${v} += o;
          part_oo${v} = FUSED(o, o, part_oo${v});
%endif
          part_po${v} = FUSED(p${v}, o, part_po${v});
        }
%endfor
</%sums:sum_rows>

    // rho of this library and the work-item's targets.
    if (row_lane == 0 && first + library_lane < n_libraries) {
%for v in range(vectors):
      {
        const realv n = ${f"sum_n{v}" if gaps else "(realv)(max(t_end - t_begin, 0))"};
%if compact:
        const realv p = ${total("p", v)}, o = ${total("o", v)}, pp = ${total("pp", v)}, oo = ${total("oo", v)};
        const realv po = FUSED(-centre${v}, p, ${total("po", v)});
        const realv var_p = FUSED(-quotient(p, n), p, pp), var_o = FUSED(-quotient(o, n), o, oo);
        const realv result = CHOOSE((realv)(MARKED), pearson(n, p, o, pp, oo, po), var_p >= LEAST_VARIANCE * var_o);
%else:
        const realv result = pearson(n, ${", ".join(total(s, v) for s in ("p", "o", "pp", "oo", "po"))});
%endif
        real out[LANES];
        STOREV(result, out);
        for (int l = 0; l < LANES; ++l) {
          const int c = c0 + ${v * lanes} + l;
          const size_t at = (size_t)(first_library + library) * rho_stride + target_of[c];
%if again:
          if (c < column_end && rho[at] == MARKED) rho[at] = out[l];
%elif compact:
          // Pairs whose rho is not defined here are computed again, too.
          if (c < column_end) rho[at] = isnan(out[l]) ? MARKED : out[l];
%else:
          if (c < column_end) rho[at] = out[l];
%endif
        }
      }
%endfor
    }
  }
}
