## All k nearest neighbours of delay-embedded rows, for several embedding dimensions E in one pass.
##
## The squared distance of dimension E is the partial sum of the one of E+1, so one sweep over the library serves all.
##   1. bound:   the library is cut into groups; the k-th smallest of the groups' minima bounds the k-th distance from above.
##   2. collect: candidates not above the bound go into a buffer (about 1.2 k of them); a full buffer is compacted.
##      Lanes of a vector do so dimension by dimension. A lone lane notes rows that any dimension wants, which costs one
##      comparison a dimension and no branch, and sorts these few out afterwards (the dimensions share most of them).
##   3. emit:    the buffer is sorted by (distance, row) and written as neighbours, or as simplex weights.
## Lane l of a vector compares query row t0 + l with library row j + l: neighbours of successive rows are often successive rows,
## so that lanes want theirs at the same time, and their vectors of the series serve several lags.
## No L x L matrix, no lists in the inner loops. Whatever the tuned values, the result is the same to the last bit.
<%
from itertools import accumulate
SLOT = {E: s for s, E in enumerate(dims)}
E_max = max(dims)
halo = -(-(E_max - 1) * tau // 4) * 4
group_lanes = wg * lanes
staged = tile > 0
# Lone lanes exclude rows near the query before they are compared; lanes do when a candidate is taken, which is rarer.
starts = masked or lanes == 1
# Tables of weights are padded to four columns so that the lookup may load them as vectors.
strides = [-(-k // 4) * 4 for k in counts] if emit == "weights" else list(counts)
before = [0, *accumulate(strides)]
capacity_before = [0, *accumulate(capacities)]

def smallest(names):
    if len(names) == 1:
        return names[0]
    half = (len(names) + 1) // 2
    return f"MINIMUM({smallest(names[:half])}, {smallest(names[half:])})"
def keep_group(s, behind=""):
    at = f"minima + (size_t)SLOT_STRIDE * (2 * {capacity_before[s]} + groups / {merged[s]}{behind})"
    value = f"again ? MINIMUM(m{s}, AS_REALV(LOADV({at}))) : m{s}" if staged else f"m{s}"
    return f"{{ STOREV(AS_WHOLEV({value}), {at}); m{s} = FAR; }}"

steps = 8 if unroll >= 8 else 4  # of a visit to offer()
nearest_u = smallest([f"a{u}" for u in range(unroll)])
%>
#define K_MAX ${max(counts)}
#define LIST_IN_REGISTERS ${int(max(counts) <= list_registers)}
#define SLOT_STRIDE ${group_lanes}
#define DIMS ${len(dims)}
#define HOT_ROW ${"ushort" if staged else "int"}
<% hot_bytes = hot * (2 if staged else 4) if lanes == 1 else 0 %>
#define GROUP_SCRATCH ((size_t)SLOT_STRIDE * ${2 * sum(capacities) + hot_bytes // (8 if dtype == 'float64' else 4)})
#define UNROLL ${unroll}
#define WG ${wg}
#define TILE ${tile}
#define HALO ${halo}
#define HOT ${hot}
#define SHARE ${bound_share}
#define LOW ${4 if bound_share == 1 else 8 * bound_share}
#define BOUND_STEP ${unroll if staged else unroll * bound_share}
#include "topk.clh"
#include "weights.clh"

constant int K_OF[DIMS] = {${", ".join(map(str, counts))}};
constant int K_STRIDE[DIMS] = {${", ".join(map(str, strides))}};
constant int CAPACITY_OF[DIMS] = {${", ".join(map(str, capacities))}};
constant int CAPACITY_BEFORE[DIMS] = {${", ".join(map(str, capacity_before[:-1]))}};
constant int MERGED[DIMS] = {${", ".join(map(str, merged))}};
constant int K_BEFORE[DIMS] = {${", ".join(map(str, before[:-1]))}};

## Squared distances of UNROLL library rows, all dimensions, with ``visit(slot)`` after each dimension asked for.
## For each e the rows are interleaved: their chains of dependent additions then overlap.
<%def name="distances(visit)">
%if starts:
  // What a row starts with: nothing, or GAP_SQUARED where it is no legal neighbour. Few steps come near the query.
  realv d, ${", ".join(f"a{u}, far{u} = {f'PENALTY(j + {u})' if masked else 0}" for u in range(unroll))};
%if lanes == 1:
  if (j > near_begin && j < near_end) {
%for u in range(unroll):
    far${u} = CHOOSE(far${u}, (realv)(GAP_SQUARED), IS_EXCLUDED(t0, j + ${u}));
%endfor
  }
%endif
%else:
  realv d, ${", ".join(f"a{u}" for u in range(unroll))};
%endif
<% seen = set() %>
%for e in range(E_max):
%if staged:
%for quad in sorted({(u - e * tau) // 4 for u in range(unroll)} - seen):
  const real4 x_${'m' if quad < 0 else 'p'}${abs(quad)} = *(local const real4*)(xp + ${4 * quad});
<% seen.add(quad) %>
%endfor
%elif lanes > 1:
%for off in sorted({u - e * tau for u in range(unroll)} - seen):
  const realv x_${'m' if off < 0 else 'p'}${abs(off)} = LOADV(x + j + ${off});
<% seen.add(off) %>
%endfor
%endif
%for u in range(unroll):
<%
off = u - e * tau
at = off // 4 if staged else off
x = f"x_{'m' if at < 0 else 'p'}{abs(at)}" + (f".s{off % 4}" if staged else "") if staged or lanes > 1 else f"x[j + {off}]"
%>
  d = q${e} - ${x}; a${u} = ${f"FUSED(d, d, {chr(97)}{u})" if e else (f"FUSED(d, d, far{u})" if starts else "d * d")};
%endfor
%if e + 1 in SLOT:
  ${visit(SLOT[e + 1])}
%endif
%endfor
</%def>

<%def name="keep_minimum(s)">
  m${s} = MINIMUM(m${s}, ${nearest_u});
</%def>

## Groups that were merged are not all there when a round ends.
<%def name="keep_rest()">
%for s in range(len(dims)):
%if merged[s] > 1:
      if (groups % ${merged[s]}) ${keep_group(s)}
%endif
%endfor
</%def>

<%def name="collect(s)">
%if lanes == 1 and len(dims) > 1:
%for u in range(unroll):
  wanted${u} ${"|" if s else ""}= a${u} <= bound${s};
%endfor
%elif lanes == 1:
  if (${nearest_u} <= bound0) {
%for first in range(0, unroll, 4):
<% some = range(first, min(first + 4, unroll)) %>
    if (${smallest([f"a{u}" for u in some])} <= bound0) {
%for u in some:
      if (a${u} <= bound0) hot[HOT_AT(n_hot++)] = j - jt + ${u};
%endfor
    }
%endfor
  }
%else:
  if (ANYV(${nearest_u} <= bound${s})) {
%for u in range(0, unroll, 8):
    OFFER(${s}, ${counts[s]}, ${capacity_before[s]}, ${capacities[s]}, (${", ".join(f"a{v}" if v < unroll else "(realv)(NOWHERE)" for v in range(u, u + steps))}), bound${s}, j + ${u});
%endfor
  }
%endif
</%def>

<%def name="compact_full(spare)">
%for s in range(len(dims)):
          bounds[${s}] = bound${s};
%if lanes == 1:
          held[${s}] = held${s};
%endif
%endfor
          for (int s = 0; s < DIMS; ++s)
            if (largest_lane(held[s]) > CAPACITY_OF[s] - (${spare}))
              compact(SLOT_BUFFER(CAPACITY_BEFORE[s]), K_OF[s], held + s, bounds + s);
%for s in range(len(dims)):
          bound${s} = bounds[${s}];
%if lanes == 1:
          held${s} = held[${s}];
%endif
%endfor
          room = 1 << 30;
</%def>

<%def name="stage_tile()">
%if staged:
      barrier(CLK_LOCAL_MEM_FENCE);
      for (int i = get_local_id(0); i < TILE + HALO; i += WG) {
        const int from = jt - HALO + i;
        xs[i] = from < j_end ? x[from] : GAP;
      }
      barrier(CLK_LOCAL_MEM_FENCE);
%endif
</%def>

%if lanes == 1:
typedef PASTE(REAL_NAME, 4) real4;
typedef PASTE(WHOLE_NAME, 4) rowv4;
%endif

%if masked:
#if LANES == 1
#define PENALTY(J) penalty[J]
#else
#define PENALTY(J) penalty_at(penalty, J)
// There is none of rows before the first.
inline realv penalty_at(global const real* restrict penalty, const int j) {
  if (j >= 0) return LOADV(penalty + j);
  real some[LANES];
  for (int l = 0; l < LANES; ++l) some[l] = penalty[max(j + l, 0)];
  return LOADV(some);
}
#endif
%endif
#define SLOT_BUFFER(S) (buffer + (size_t)(2 * SLOT_STRIDE) * (S))  // S: entries before
#define IS_EXCLUDED(T, J) ((int)abs_diff(T, J) <= exclusion_radius)

// Once k candidates not above the bound are held, a later row at the bound loses its tie: from then on it must be below,
// which is one step down in the bits (a NaN below zero: nothing more). Without this rule, data with many equal distances
// would fill every buffer again and again. Lone lanes keep their counts in registers.
// `room` is the least number of free places so far.
%if lanes == 1:
#define OFFER(S, K, BEFORE, CAPACITY, A, BOUND, J) \
  if ((A) <= (BOUND)) { \
    PUT_CANDIDATE(SLOT_BUFFER(BEFORE) + ENTRY_AT(held##S), A, J); \
    ++held##S; \
    if (held##S == K) BOUND = NEXT_BELOW(BOUND); \
    room = min(room, CAPACITY - held##S); \
  }
%else:
// Several steps at once: most visits find one or two candidates, and their places are found with one reduction and one
// short loop.
#define OFFER(S, K, BEFORE, CAPACITY, STEPS, BOUND, J) \
  offer(UNWRAP STEPS, &BOUND, K, CAPACITY, J, j_begin, t0, exclusion_radius, (whole*)&held[S], SLOT_BUFFER(BEFORE), &room)
#define UNWRAP(...) __VA_ARGS__
// Puts what the masks of four steps say into the buffers of their lanes. A bound that sinks meanwhile is none of its business: a
// candidate too many does no harm.
inline void keep(ulong bits, const whole* restrict value, whole* restrict lane_bound, const int k, const int j, whole* restrict held,
                 global whole* restrict buffer, int* restrict most) {
  while (bits) {
    const int at = 63 - (int)clz(bits & -bits), lane = at % LANES;
    bits &= bits - 1;
    const int c = (int)held[lane];
    held[lane] = c + 1;
    buffer[ENTRY_AT(c) + lane] = value[at];
    buffer[ENTRY_AT(c) + SLOT_STRIDE + lane] = j + at / LANES + lane;
    if (c + 1 == k) lane_bound[lane] -= 1;
    *most = max(*most, c + 1);
  }
}

#define ROW_BITS (0xfffffffffffffffful >> (64 - LANES))
// The masks of four steps without rows that are no neighbours: before the first one, or too near the query. Both are rare.
inline ulong legal(ulong bits, const int j, const int j_begin, const int t0, const int exclusion_radius) {
  if (j >= j_begin && (j + 3 < t0 - exclusion_radius || j > t0 + exclusion_radius)) return bits;
  for (int u = 0; u < 4; ++u) {
    const int before = clamp(j_begin - (j + u), 0, LANES);
    const ulong out = IS_EXCLUDED(t0, j + u) ? ROW_BITS : ((ulong)1 << before) - 1;
    bits &= ~(out << u * LANES);
  }
  return bits;
}

__attribute__((noinline)) void offer(${", ".join(f"realv a{u}" for u in range(steps))}, realv* restrict bounds, int k, int capacity, int j,
                                     int j_begin, int t0, int exclusion_radius, whole* restrict held,
                                     global whole* restrict buffer, int* restrict room) {
  const realv bound = *bounds;
  whole value[4 * LANES];
  int most = 0;
%for first in range(0, steps, 4):
  {
    const ulong bits = four_masks(${", ".join(f"a{u} <= bound" for u in range(first, first + 4))});
%for u in range(4):
    STOREV(AS_WHOLEV(a${first + u}), value + ${u} * LANES);
%endfor
    keep(legal(bits, j + ${first}, j_begin, t0, exclusion_radius), value, (whole*)bounds, k, j + ${first}, held, buffer, &most);
  }
%endfor
  *room = min(*room, capacity - most);
}
%endif

// library, query: [series][stride], row 0 at column `front`, gaps and all columns before row 0 hold GAP;
// library rows from j_end on hold GAP too. penalty: [n_steps], 0 for legal rows (only where a target has gaps).
// A task is (library from first_library on, tile of query rows); groups take tasks task_begin + group, + groups, ... below task_end.
// out_*: per dimension s [library][table_rows][K_STRIDE[s]], dimensions one behind another; squared distances and -1,
// FAR-like values where there is no neighbour, or weights, with weight 0 for a row that can be read where there is none.
// Weights are tiled by LANES rows: [LANES rows][neighbour][row].
kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void knn(global const real* restrict library, global const real* restrict query, global const real* restrict penalty_of,
         const int library_stride, const int query_stride, const int front, const int n_rows, const int j_begin, const int j_end,
         const int groups_per_tile, const int groups_per_round, const int exclusion_radius, const int n_tiles, const int first_library, const int task_begin,
         const int task_end, global int* restrict out_row, global real* restrict out_value, const int table_rows, const ulong rows_per_slot,
         global whole* restrict scratch) {
  const int lane0 = get_local_id(0) * LANES;
  global whole* restrict buffer = scratch + (size_t)get_group_id(0) * GROUP_SCRATCH + LANE_OFFSET;
    // Minima of groups lie densely, where candidates will.
    global whole* restrict minima = scratch + (size_t)get_group_id(0) * GROUP_SCRATCH + lane0;
%if staged:
  local real xs[TILE + HALO] __attribute__((aligned(32)));
%endif
%if lanes == 1:
  // Rows that some dimension wants, of the tile at hand where there is one.
  global HOT_ROW* restrict hot = (global HOT_ROW*)(scratch + ((size_t)get_group_id(0) + 1) * GROUP_SCRATCH) - HOT * WG + lane0;
#define HOT_AT(n) ((n) * WG)
%endif
  for (int task = task_begin + get_group_id(0); task < task_end; task += get_num_groups(0)) {
    const int which = task / n_tiles;
    const int t0 = (task - which * n_tiles) * SLOT_STRIDE + lane0;
    global const real* restrict x = library + (size_t)(first_library + which) * library_stride + front;
    global const real* restrict y = query + (size_t)(first_library + which) * query_stride + front;
%if masked:
    global const real* restrict penalty = penalty_of;
%endif
    const int tq = min(t0, n_rows - 1);
%for e in range(E_max):
    const realv q${e} = LOADV(y + tq - ${e * tau});
%endfor
    const int near_begin = t0 - exclusion_radius - UNROLL, near_end = t0 + 1 + exclusion_radius;
    realv bounds[DIMS];
    rowv held[DIMS];
    int groups = 0;
%if lanes == 1 and wg > 1:
    // Minima and candidates share memory in different layouts: nobody may begin with one while others are at the other.
    barrier(CLK_GLOBAL_MEM_FENCE);
%endif
    {
%for s in range(len(dims)):
      realv m${s} = FAR;
%endfor
      // A group takes every groups_per_tile-th step of a tile, so that neighbours in time fall into different groups.
%if staged:
      // Long libraries have more tiles than groups: after a round of groups the first one goes on.
      bool again = false;
      for (int jt = j_begin; jt < j_end; jt += SHARE * TILE) {
        if (groups == groups_per_round) {
          ${keep_rest()}
          groups = 0;
          again = true;
        }
        ${stage_tile()}
        const int tile_end = min(jt + TILE, j_end);
%else:
      {
        const int jt = j_begin, tile_end = j_end;
%endif
        for (int g = 0; g < groups_per_tile; ++g) {
          for (int j = jt + g * BOUND_STEP; j < tile_end; j += groups_per_tile * BOUND_STEP) {
%if lanes > 1:
            if (j > near_begin && j < near_end) continue;  // a bound over fewer rows still holds
%endif
%if staged:
            local const real* xp = xs + (j - jt + HALO);
%endif
            ${distances(keep_minimum)}
          }
          ++groups;
%for s in range(len(dims)):
          ${"" if merged[s] == 1 else f"if (groups % {merged[s]} == 0) "}${keep_group(s, " - 1")}
%endfor
        }
      }
      ${keep_rest()}
%if staged:
      if (again) groups = groups_per_round;
%endif
    }
    // The k-th smallest group minimum, by insertion of values alone.
    for (int s = 0; s < DIMS; ++s) {
      const int k = K_OF[s];
      realv least[K_MAX];
      UNROLL_K
      for (int i = 0; i < LIST_LENGTH(k); ++i) least[i] = FAR;
      const int own_groups = (groups + MERGED[s] - 1) / MERGED[s];
      for (int g = 0; g < own_groups; ++g) {
        realv v = AS_REALV(LOADV(minima + (size_t)SLOT_STRIDE * (2 * CAPACITY_BEFORE[s] + g)));
        UNROLL_K
        for (int i = 0; i < LIST_LENGTH(k); ++i) {
          const realv low = MINIMUM(least[i], v);
          v = MAXIMUM(least[i], v);
          least[i] = low;
        }
      }
      realv b = FAR;
      UNROLL_K
      for (int i = 0; i < LIST_LENGTH(k); ++i)
        if (i == k - 1) b = least[i];
      bounds[s] = b;
      held[s] = 0;
    }
%if lanes == 1 and wg > 1:
    barrier(CLK_GLOBAL_MEM_FENCE);
%endif
    // A query row that touches a gap has no neighbours: nothing is below -1.
    realv largest = fabs(q0);
%for e in range(E_max):
%if e > 0:
    largest = MAXIMUM(largest, fabs(q${e}));
%endif
%if e + 1 in SLOT:
    realv bound${SLOT[e + 1]} = CHOOSE(bounds[${SLOT[e + 1]}], (realv)(-1), largest > (realv)(PRESENT));
%endif
%endfor
    int room = 1 << 30;
%if lanes == 1:
    int n_hot = 0, ${", ".join(f"held{s} = 0" for s in range(len(dims)))};
%endif
%if staged:
    for (int jt = j_begin; jt < j_end; jt += TILE) {
      ${stage_tile()}
      const int tile_end = min(jt + TILE, j_end);
%else:
    {
      const int jt = j_begin, tile_end = j_end;
%endif
      for (int j = jt - (LANES - 1); j < tile_end; j += UNROLL) {
%if staged:
        local const real* xp = xs + (j - jt + HALO);
%endif
%if lanes == 1 and len(dims) > 1:
        int ${", ".join(f"wanted{u}" for u in range(unroll))};
%endif
        {
          ${distances(collect)}
        }
%if lanes == 1:
%if len(dims) > 1:
        if (${" | ".join(f"wanted{u}" for u in range(unroll))}) {
%for u in range(unroll):
          if (wanted${u}) hot[HOT_AT(n_hot++)] = j - jt + ${u};
%endfor
        }
%endif
        // At the end of a tile, while it is still at hand.
        if (n_hot > HOT - UNROLL || (n_hot && j + UNROLL >= tile_end)) {
          for (int n = 0; n < n_hot; ++n) {
            const int at = hot[HOT_AT(n)];
%if staged:
            local const real* past = xs + (at + HALO);
%else:
            global const real* past = x + jt + at;
%endif
            real d = q0 - past[0], a = d * d;
%for e in range(E_max):
%if e:
            d = q${e} - past[${-e * tau}]; a = FUSED(d, d, a);
%endif
%if e + 1 in SLOT:
            OFFER(${SLOT[e + 1]}, ${counts[SLOT[e + 1]]}, ${capacity_before[SLOT[e + 1]]}, ${capacities[SLOT[e + 1]]}, a, bound${SLOT[e + 1]}, jt + at);
%endif
%endfor
            if (room < 1) {
              ${compact_full(1)}
            }
          }
          n_hot = 0;
          // Neighbouring work-items run in step: what can be compacted together should not be one by one later.
          if (room < LOW) {
            ${compact_full("LOW")}
          }
        }
%else:
        if (room < UNROLL) {
          ${compact_full("UNROLL")}
        }
%endif
      }
    }
%if lanes == 1:
%for s in range(len(dims)):
    held[${s}] = held${s};
%endfor
%endif
    for (int s = 0; s < DIMS; ++s) {
      const int k = K_OF[s];
      const size_t base = (size_t)K_BEFORE[s] * rows_per_slot + ((size_t)which * table_rows + t0) * K_STRIDE[s];
%if lanes == 1:
      global whole* restrict sorted = SLOT_BUFFER(CAPACITY_BEFORE[s]);
      rowv count = held[s];
      realv last = FAR;
      compact(sorted, k, &count, &last);
#define NEAREST(I) CANDIDATE_DISTANCE(sorted + ENTRY_AT(I))
#define SET_NEAREST(I, W) STOREV(AS_WHOLEV(W), sorted + ENTRY_AT(I))
%else:
      realv nearest[K_MAX];
      rowv rows[K_MAX];
      sort_candidates(SLOT_BUFFER(CAPACITY_BEFORE[s]), k, held[s], nearest, rows);
#define NEAREST(I) nearest[I]
#define SET_NEAREST(I, W) nearest[I] = W
%endif
%if emit == 'weights':
      const realv d_min = sqrt(NEAREST(0)), divisor = SIMPLEX_DIVISOR(d_min);
      realv sum = 0;
      for (int i = 0; i < k; ++i) {
        const realv squared = NEAREST(i);
        realv w = SIMPLEX_WEIGHT(squared, d_min, divisor);
        w = CHOOSE(w, (realv)(0), squared >= (realv)(FAR));
        sum += w;
        SET_NEAREST(i, w);
      }
      sum = CHOOSE(sum, (realv)(1), sum == (realv)(0));
%endif
%if lanes == 1 and emit == 'weights':
      // Columns that pad a table to a multiple of four are never used, but their rows may be read.
      if (t0 < n_rows)
        for (int i = 0; i < k; i += 4) {
          const four_pairs_ four = *(global const four_pairs_*)(sorted + ENTRY_AT(i));
          const rowv4 row = four.odd;
          *(global int4*)(out_row + base + i) = convert_int4(select(row, (rowv4)(j_begin), row < 0 || (rowv4)(i, i + 1, i + 2, i + 3) >= k));
          *(global real4*)(out_value + base + i) = PASTE(PASTE(as_, REAL_NAME), 4)(four.even) / sum;
        }
%elif lanes == 1:
      if (t0 < n_rows)
        for (int i = 0; i < k; ++i) {
          out_row[base + i] = (int)sorted[ENTRY_AT(i) + 1];
          out_value[base + i] = CANDIDATE_DISTANCE(sorted + ENTRY_AT(i));
        }
%elif emit == 'weights':
      for (int i = 0; i < k; ++i) {
        STOREV(TO_INTV(CHOOSE(rows[i], (rowv)(j_begin), rows[i] < (rowv)(0))), out_row + base + i * LANES);
        STOREV(nearest[i] / sum, out_value + base + i * LANES);
      }
%else:
      for (int l = 0; l < LANES && t0 + l < n_rows; ++l)
        for (int i = 0; i < k; ++i) {
          out_row[base + (size_t)l * K_STRIDE[s] + i] = (int)((const whole*)(rows + i))[l];
          out_value[base + (size_t)l * K_STRIDE[s] + i] = ((const real*)(nearest + i))[l];
        }
%endif
    }
  }
}
