## Cross mapping: predictions of many targets from one library's neighbour table, reduced to Pearson's rho on the fly.
##
## yhat[t][c] = sum_i w[t][i] * y[row[t][i] + Tp][c] for adjacent targets c: with the targets stored time-major a neighbour
## is one contiguous load for a whole vector of targets. Predictions are not written.
<%
columns = vectors * lanes            # targets of a work-item
group_columns = target_lanes * columns
wg = target_lanes * row_lanes
sums = ["p", "o", "pp", "oo", "po"] + (["n"] if gaps else [])
k_stride = -(-k // 4) * 4
%>
#define LANES ${lanes}
#define REAL_BITS ${64 if dtype == 'float64' else 32}
#define FMA_CONTRACT ${int(fma == 'contract')}
#define MIN_SELECT ${int(minimum == 'select')}
#define CHUNK 64
#include "reduce.clh"

// targets: [n_steps][target_stride], conditioned, GAP where a target has one; rows, weights: a dimension's table from
// table_begin on, [library][n_rows][${k_stride}]. A group owns one library and ${group_columns} columns; its work-items take every ${row_lanes}-th query
// row t in [t_begin, t_end), observed at t + Tp. rho: [library][rho_stride], written from
// row first_library on to column target_of[c].
kernel __attribute__((reqd_work_group_size(${wg}, 1, 1)))
void lookup(global const real* restrict targets, global const int* restrict rows, global const real* restrict weights,
            global const int* restrict target_of, global real* restrict rho, const int target_stride, const int column_begin,
            const int column_end, const int n_rows, const int t_begin, const int t_end, const int Tp, const int n_libraries,
            const int first_library, const int rho_stride, const ulong table_begin) {
  // Neighbouring groups differ in the library and share their block of targets, which then stays in cache.
  const int which = get_group_id(0) % n_libraries;
  const int lane = get_local_id(0) % ${target_lanes}, row_lane = get_local_id(0) / ${target_lanes};
  const int c0 = column_begin + (get_group_id(0) / n_libraries) * ${group_columns} + lane * ${columns};
  global const real* restrict y = targets + (ptrdiff_t)Tp * target_stride + c0;
%for v in range(vectors):
  realv ${", ".join(f"sum_{s}{v} = 0, rest_{s}{v} = 0" for s in sums)};
%endfor
%if gaps:
  // Gaps of the library leave some rows only, whose mean may be far from the target's: sums are taken from the first of
  // these rows.
%for v in range(vectors):
  realv origin${v} = 0;
  {
    rowv seen = 0;
    for (int t = t_begin; t < t_end && !ALLV(seen); ++t) {
      if (!(weights[table_begin + ((size_t)which * n_rows + t) * ${k_stride}] > 0)) continue;
      const realv o = LOADV(y + (size_t)t * target_stride + ${v * lanes});
      const rowv there = (fabs(o) < (realv)(LITERAL(1e15))) && !seen;
      origin${v} = CHOOSE(origin${v}, o, there);
      seen = seen || there;
    }
  }
%endfor
%endif
  for (int chunk = t_begin; chunk < t_end; chunk += CHUNK * ${row_lanes}) {
%for v in range(vectors):
    realv ${", ".join(f"part_{s}{v} = 0" for s in sums)};
%endfor
    const int stop = min(chunk + CHUNK * ${row_lanes}, t_end);
    for (int t = chunk + row_lane; t < stop; t += ${row_lanes}) {
      const size_t at = table_begin + ((size_t)which * n_rows + t) * ${k_stride};
%if quads:
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
        const realv w = ${f"weight{i // 4}.s{i % 4}" if quads else f"weights[at + {i}]"};
        global const real* restrict neighbour = y + (size_t)${f"row{i // 4}.s{i % 4}" if quads else f"rows[at + {i}]"} * target_stride;
%for v in range(vectors):
        p${v} = FUSED(w, LOADV(neighbour + ${v * lanes}), p${v});
%endfor
      }
%endfor
%if gaps:
      const real any_neighbour = weights[at];
%endif
%for v in range(vectors):
      {
        realv o = LOADV(y + (size_t)t * target_stride + ${v * lanes});
%if gaps:
        const rowv there = (fabs(o) < (realv)(LITERAL(1e15))) && (rowv)(any_neighbour > 0);
        o = CHOOSE((realv)(0), o - origin${v}, there);
        p${v} = CHOOSE((realv)(0), p${v} - origin${v}, there);
        part_n${v} += CHOOSE((realv)(0), (realv)(1), there);
%endif
        part_p${v} += p${v};
        part_o${v} += o;
        part_pp${v} = FUSED(p${v}, p${v}, part_pp${v});
        part_oo${v} = FUSED(o, o, part_oo${v});
        part_po${v} = FUSED(p${v}, o, part_po${v});
      }
%endfor
    }
%for v in range(vectors):
%for s in sums:
    ADD_EXACT(sum_${s}${v}, rest_${s}${v}, part_${s}${v});
%endfor
%endfor
  }
%if row_lanes > 1:
  // Row lanes are summed in their order by the first of them: the same result for any launch.
  local real shared_sum[${2 * len(sums)} * ${row_lanes} * ${group_columns}];
%for v in range(vectors):
%for n, s in enumerate(sums):
  STOREV(sum_${s}${v}, shared_sum + (${2 * n} * ${row_lanes} + row_lane) * ${group_columns} + lane * ${columns} + ${v * lanes});
  STOREV(rest_${s}${v}, shared_sum + (${2 * n + 1} * ${row_lanes} + row_lane) * ${group_columns} + lane * ${columns} + ${v * lanes});
%endfor
%endfor
  barrier(CLK_LOCAL_MEM_FENCE);
  if (row_lane > 0) return;
  for (int r = 1; r < ${row_lanes}; ++r) {
%for v in range(vectors):
%for n, s in enumerate(sums):
    ADD_EXACT(sum_${s}${v}, rest_${s}${v}, LOADV(shared_sum + (${2 * n} * ${row_lanes} + r) * ${group_columns} + lane * ${columns} + ${v * lanes}));
    rest_${s}${v} += LOADV(shared_sum + (${2 * n + 1} * ${row_lanes} + r) * ${group_columns} + lane * ${columns} + ${v * lanes});
%endfor
%endfor
  }
%endif
%for v in range(vectors):
  {
    const realv n = ${f"sum_n{v}" if gaps else "(realv)(max(t_end - t_begin, 0))"};
    const realv result = pearson(n, ${", ".join(f"sum_{s}{v} + rest_{s}{v}" for s in sums[:5])});
    real out[LANES];
    STOREV(result, out);
    for (int l = 0; l < LANES; ++l) {
      const int c = c0 + ${v * lanes} + l;
      if (c < column_end) rho[(size_t)(first_library + which) * rho_stride + target_of[c]] = out[l];
    }
  }
%endfor
}
