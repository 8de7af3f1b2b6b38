## Cross mapping: predictions of many targets from one library's neighbour table, reduced to Pearson's rho on the fly.
##
## yhat[t][c] = sum_i w[t][i] * y[row[t][i] + Tp][c] for adjacent targets c: with the targets stored time-major a neighbour
## is one contiguous load for a whole vector of targets. Predictions are not written.
<%
columns = vectors * lanes            # targets of a work-item
group_columns = target_lanes * columns
wg = target_lanes * row_lanes * library_lanes
group_rows = row_lanes * library_lanes
staged = stage_rows > 0
# Sums of observations alone are the same for all libraries, unless gaps of a library leave some rows only.
once = [] if gaps else ["o", "oo"]
each = [s for s in ["p", "o", "pp", "oo", "po"] + (["n"] if gaps else []) if s not in once]
k_stride = -(-k // 4) * 4
# A staged target is read from local memory, where a block of columns is kept for all steps; else from the caches.
def target(row):
    at = f"y + ({'int' if staged else 'size_t'})({row}) * STRIDE + {{}}"
    return f"(*(local const realv*)({at}))" if staged else f"LOADV({at})"
def total(s, v):
    return f"LOADV(total_{s} + lane * {columns} + {v * lanes})" if s in once and group_rows > 1 else f"sum_{s}{v} + rest_{s}{v}"
%>
#define CHUNK 64
// Where the nearest neighbour of row t is; the others follow ${table_tile} numbers apart.
%if table_tile == 1:
#define ENTRY_OF(T) (table + (size_t)(T) * ${k_stride})
%else:
#define ENTRY_OF(T) (table + (size_t)((T) / ${table_tile}) * ${table_tile * k_stride} + (T) % ${table_tile})
%endif
#define STRIDE ${group_columns if staged else "target_stride"}
#include "reduce.clh"
<%def name="ended_chunk(sums)">
%for v in range(vectors):
%for s in sums:
    ADD_EXACT(sum_${s}${v}, rest_${s}${v}, part_${s}${v});
%endfor
%endfor
</%def>
## Work-items put their sums together in a fixed order, the same for any launch: one half adds what the other has.
<%def name="summed(sums, place, among)">
%if among > 1:
%for v in range(vectors):
%for s in sums:
  {
    const int at = slot * ${group_columns} + lane * ${columns};
    barrier(CLK_LOCAL_MEM_FENCE);
    STOREV(sum_${s}${v}, shared_sum + at);
    STOREV(rest_${s}${v}, shared_rest + at);
    for (int left = ${among}, apart = ${(among + 1) // 2}; left > 1; left = apart, apart = (left + 1) / 2) {
      barrier(CLK_LOCAL_MEM_FENCE);
      if (${place} + apart < left) {
        ADD_EXACT(sum_${s}${v}, rest_${s}${v}, LOADV(shared_sum + at + apart * ${group_columns}));
        rest_${s}${v} += LOADV(shared_rest + at + apart * ${group_columns});
        STOREV(sum_${s}${v}, shared_sum + at);
        STOREV(rest_${s}${v}, shared_rest + at);
      }
    }
  }
%endfor
%endfor
%endif
</%def>

// targets: [n_steps][target_stride], conditioned, GAP where a target has one; rows, weights: a dimension's table from
// table_begin on, [library][table_rows][${k_stride}] in tiles of ${table_tile} rows. A group owns ${group_columns} columns and every n_slices-th ${"library" if library_lanes == 1 else f"{library_lanes} libraries"};
// its work-items take every ${row_lanes}-th query row t in [t_begin, t_end), observed at t + Tp. rho:
// [library][rho_stride], written from row first_library on to column target_of[c].
kernel __attribute__((reqd_work_group_size(${wg}, 1, 1)))
void lookup(global const real* restrict targets, global const int* restrict rows, global const real* restrict weights,
            global const int* restrict target_of, global real* restrict rho, const int target_stride, const int column_begin,
            const int column_end, const int n_rows, const int t_begin, const int t_end, const int Tp, const int n_libraries,
            const int first_library, const int rho_stride, const ulong table_begin, const int table_rows, const int n_slices) {
  // Neighbouring groups differ in the library and share their block of targets, which then stays in cache.
  const int slice = get_group_id(0) % n_slices;
  const int lane = get_local_id(0) % ${target_lanes}, slot = get_local_id(0) / ${target_lanes};
  const int row_lane = slot % ${row_lanes}, library_lane = slot / ${row_lanes};
  const int block_begin = column_begin + (get_group_id(0) / n_slices) * ${group_columns}, c0 = block_begin + lane * ${columns};
%if row_lanes > 1 or once and group_rows > 1:
  local real shared_sum[${group_rows} * ${group_columns}], shared_rest[${group_rows} * ${group_columns}];
%for s in once:
  local real total_${s}[${group_columns}];
%endfor
%endif
%if staged:
  local real ys[${stage_rows} * ${group_columns}] __attribute__((aligned(64)));
  for (int i = get_local_id(0); i < n_rows * ${group_columns}; i += ${wg})
  {
    const int c = block_begin + i % ${group_columns};
    ys[i] = c < column_end ? targets[(size_t)(i / ${group_columns}) * target_stride + c] : 0;
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  local const real* restrict y = ys + Tp * ${group_columns} + lane * ${columns};
%else:
  global const real* restrict y = targets + (ptrdiff_t)Tp * target_stride + c0;
%endif
%if once:
%for v in range(vectors):
%for s in once:
  realv sum_${s}${v} = 0, rest_${s}${v} = 0;
%endfor
%endfor
  for (int chunk = t_begin; chunk < t_end; chunk += CHUNK * ${group_rows}) {
%for v in range(vectors):
    realv ${", ".join(f"part_{s}{v} = 0" for s in once)};
%endfor
    const int stop = min(chunk + CHUNK * ${group_rows}, t_end);
    for (int t = chunk + slot; t < stop; t += ${group_rows}) {
%for v in range(vectors):
      {
        const realv o = ${target("t").format(v * lanes)};
        part_o${v} += o;
        part_oo${v} = FUSED(o, o, part_oo${v});
      }
%endfor
    }
${ended_chunk(once)}
  }
${summed(once, "slot", group_rows)}
%if group_rows > 1:
  if (slot == 0) {
%for v in range(vectors):
%for s in once:
    STOREV(sum_${s}${v} + rest_${s}${v}, total_${s} + lane * ${columns} + ${v * lanes});
%endfor
%endfor
  }
  barrier(CLK_LOCAL_MEM_FENCE);
%endif
%endif
  for (int first = slice * ${library_lanes}; first < n_libraries; first += n_slices * ${library_lanes}) {
  // All work-items of a group walk alike: what lies past the last library repeats it and is not written.
  const int which = min(first + library_lane, n_libraries - 1);
  const size_t table = table_begin + (size_t)which * table_rows * ${k_stride};
%for v in range(vectors):
  realv ${", ".join(f"sum_{s}{v} = 0, rest_{s}{v} = 0" for s in each)};
%endfor
%if gaps:
  // Gaps of the library leave some rows only, whose mean may be far from the target's: sums are taken from the first of
  // these rows.
%for v in range(vectors):
  realv origin${v} = 0;
  {
    rowv seen = 0;
    for (int t = t_begin; t < t_end && !ALLV(seen); ++t) {
      if (!(weights[ENTRY_OF(t)] > 0)) continue;
      const realv o = ${target("t").format(v * lanes)};
      const rowv there = (fabs(o) < (realv)(PRESENT)) && !seen;
      origin${v} = CHOOSE(origin${v}, o, there);
      seen = seen || there;
    }
  }
%endfor
%endif
  for (int chunk = t_begin; chunk < t_end; chunk += CHUNK * ${row_lanes}) {
%for v in range(vectors):
    realv ${", ".join(f"part_{s}{v} = 0" for s in each)};
%endfor
    const int stop = min(chunk + CHUNK * ${row_lanes}, t_end);
%if unroll > 1:
#pragma unroll ${unroll}
%endif
    for (int t = chunk + row_lane; t < stop; t += ${row_lanes}) {
      const size_t at = ENTRY_OF(t);
%if quads and table_tile == 1:
%for q in range(k_stride // 4):
      const int4 row${q} = *(global const int4*)(rows + at + ${4 * q});
      const PASTE(REAL_NAME, 4) weight${q} = *(global const PASTE(REAL_NAME, 4)*)(weights + at + ${4 * q});
%endfor
%endif
%for v in range(vectors):
      realv p${v} = 0;
%endfor
%for i in range(k):
      {
        const realv w = ${f"weight{i // 4}.s{i % 4}" if quads and table_tile == 1 else f"weights[at + {i * table_tile}]"};
        const int row = ${f"row{i // 4}.s{i % 4}" if quads and table_tile == 1 else f"rows[at + {i * table_tile}]"};
%for v in range(vectors):
        p${v} = FUSED(w, ${target("row").format(v * lanes)}, p${v});
%endfor
      }
%endfor
%if gaps:
      const real any_neighbour = weights[at];
%endif
%for v in range(vectors):
      {
        realv o = ${target("t").format(v * lanes)};
%if gaps:
        const rowv there = (fabs(o) < (realv)(PRESENT)) && (rowv)(any_neighbour > 0);
        o = CHOOSE((realv)(0), o - origin${v}, there);
        p${v} = CHOOSE((realv)(0), p${v} - origin${v}, there);
        part_n${v} += CHOOSE((realv)(0), (realv)(1), there);
%endif
        part_p${v} += p${v};
        part_pp${v} = FUSED(p${v}, p${v}, part_pp${v});
%if not once:
        part_o${v} += o;
        part_oo${v} = FUSED(o, o, part_oo${v});
%endif
        part_po${v} = FUSED(p${v}, o, part_po${v});
      }
%endfor
    }
${ended_chunk(each)}
  }
${summed(each, "row_lane", row_lanes)}
  if (row_lane == 0 && first + library_lane < n_libraries) {
%for v in range(vectors):
  {
    const realv n = ${f"sum_n{v}" if gaps else "(realv)(max(t_end - t_begin, 0))"};
    const realv result = pearson(n, ${", ".join(total(s, v) for s in ("p", "o", "pp", "oo", "po"))});
    real out[LANES];
    STOREV(result, out);
    for (int l = 0; l < LANES; ++l) {
      const int c = c0 + ${v * lanes} + l;
      if (c < column_end) rho[(size_t)(first_library + which) * rho_stride + target_of[c]] = out[l];
    }
  }
%endfor
  }
  }
}
