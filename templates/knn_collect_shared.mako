## A part of knn.cl.mako: the second sweep for vectors of query rows (lanes > 1, processors) and three dimensions or more.
##
## Rows that are near in one dimension are mostly near in others, and so are the next query rows to the next library rows. A
## step therefore notes only which library rows any lane wants in any dimension, with one comparison for each pair and dimension,
## and no branch. noted[i] is the row of lane 0; lane l compares row noted[i] + l. The distances of noted rows are computed once
## more, dimension by dimension, and entries within the bound are merged into lists by networks that sort all lanes alike: no
## lane stores anything by itself.
##
## An entry is (squared distance, row) in one whole number of 64 bits, distance above: their order is that of neighbours
## (clkernels/order.clh), since distances are not negative. An empty place is EMPTY_KEY, which is larger than all.
##
##   buffer of a dimension: a sorted list, ascending     [entry][lane], 64 bits each
##
## Lists are merged in runs of RUN_LENGTH entries, and have room for a whole number of runs.
<%namespace name="distances" file="knn_distances.mako"/>
<%!
RUN_LENGTH = 16

def sorting(n):
    """Comparators that sort n entries (a power of two): Batcher's merge exchange, Knuth 5.2.2 M."""
    pairs, p = [], n // 2
    while p:
        q, r, d = n // 2, 0, p
        while True:
            pairs += [(i, i + d) for i in range(n - d) if i & p == r]
            if q == p:
                break
            d, q, r = q - p, q // 2, p
        p //= 2
    return pairs

def cleaning(n):
    """Comparators that sort n entries which rise and then fall, or fall and then rise."""
    return [(i, i + d) for d in (n >> level for level in range(1, n.bit_length())) for i in range(n) if not i & d]
%>
<%def name="exchange(names, pairs)">
%for a, b in pairs:
      EXCHANGE(${names}${a}, ${names}${b});
%endfor
</%def>

<%def name="functions()">
#define RUN_LENGTH ${RUN_LENGTH}
#define NOTED_ROOM 128  // library rows that are noted before they are settled
#define HALF ${min(lanes, 8)}  // lanes whose entries share a vector: half of 16, or all of fewer
typedef PASTE(long, HALF) keys;
#define LOADK(p) PASTE(vload, HALF)(0, p)
#define EMPTY_KEY (keys)((long)AS_WHOLE_NOWHERE << 32 | 0xffffffffL)
#define AS_WHOLE_NOWHERE as_int(NOWHERE)
#define LANE_NUMBERS (rowv)(${", ".join(map(str, range(lanes)))})
#define HALF_NUMBERS (PASTE(int, HALF))(${", ".join(map(str, range(min(lanes, 8))))})
#define EXCHANGE(a, b)           \
  do {                           \
    const keys low_ = min(a, b); \
    b = max(a, b);               \
    a = low_;                    \
  } while (0)

// Merges `filled` entries, a multiple of RUN_LENGTH, into a list of `runs` runs; the largest entries fall out. Lanes are
// merged HALF at a time, from first_lane on.
__attribute__((noinline))
void merge(const realv* queue, const int* queue_row, const int filled, global whole* list, const int runs) {
  for (int first = 0; first < filled; first += RUN_LENGTH)
    for (int first_lane = 0; first_lane < LANES; first_lane += HALF) {
      const whole* from = (const whole*)(queue + first) + first_lane;
      global long* at = (global long*)list + first_lane;
%for i in range(RUN_LENGTH):
      keys b${i} = PASTE(convert_long, HALF)(LOADK(from + ${i} * LANES)) << 32 |
                   PASTE(convert_long, HALF)(PASTE(as_uint, HALF)(HALF_NUMBERS + (queue_row[first + ${i}] + first_lane)));
%endfor
${exchange("b", sorting(RUN_LENGTH))}
      for (int run = 0; run < runs; ++run, at += RUN_LENGTH * LANES) {
%for i in range(RUN_LENGTH):
        keys a${i} = LOADK(at + ${i} * LANES);
%endfor
%for i in range(RUN_LENGTH):
        EXCHANGE(a${i}, b${RUN_LENGTH - 1 - i});
%endfor
${exchange("a", cleaning(RUN_LENGTH))}
%for i in range(RUN_LENGTH):
        PASTE(vstore, HALF)(a${i}, 0, at + ${i} * LANES);
%endfor
        if (run + 1 < runs) {
${exchange("b", cleaning(RUN_LENGTH))}
        }
      }
    }
}

// The rows of a list, and their squared distances; -1 and NOWHERE where there are fewer than k.
inline void read_list(global const whole* list, const int k, realv* nearest, rowv* rows) {
  for (int i = 0; i < k; ++i) {
    whole distance[LANES], row[LANES];
    for (int first_lane = 0; first_lane < LANES; first_lane += HALF) {
      const keys entry = LOADK((global const long*)list + i * LANES + first_lane);
      PASTE(vstore, HALF)(PASTE(convert_int, HALF)(entry >> 32), 0, distance + first_lane);
      PASTE(vstore, HALF)(PASTE(as_int, HALF)(PASTE(convert_uint, HALF)(entry & 0xffffffffL)), 0, row + first_lane);
    }
    nearest[i] = AS_REALV(LOADV(distance));
    rows[i] = CHOOSE(LOADV(row), (rowv)(-1), nearest[i] >= (realv)(FAR));
  }
}

// Settles the library rows that were noted; noted[i] is the row of lane 0, and lane l compares row noted[i] + l. Rows enter the
// lists of all dimensions whose bounds they are within, and the bounds sink to what a later row must not exceed to be a
// neighbour.
__attribute__((noinline))
void settle_noted(global const real* restrict x, global const real* restrict y,
%if masked:
                  global const real* restrict penalty,
%endif
                  const int* noted, const int n_noted, realv* bounds, global whole* buffer, const int j_begin, const int t0,
                  const int exclusion_radius) {
  realv squared[NOTED_ROOM], queue[NOTED_ROOM + RUN_LENGTH];
  int row[NOTED_ROOM], queue_row[NOTED_ROOM + RUN_LENGTH], n = 0, e = 0;
  for (int i = 0; i < n_noted; ++i) {
    const int j = noted[i];
    if (IS_EXCLUDED(t0, j)) continue;
    squared[n] = CHOOSE(${"PENALTY(j)" if masked else "(realv)(0)"}, (realv)(GAP_SQUARED), (rowv)(j) + LANE_NUMBERS < (rowv)(j_begin));
    row[n++] = j;
  }
  for (int s = 0; s < DIMS; ++s) {
    for (; e < DIM_OF[s] - 1; ++e) {
      const realv q = LOADV(y - e * ${tau});
      for (int i = 0; i < n; ++i) {
        const realv difference = q - LOADV(x + row[i] - e * ${tau});
        squared[i] = FUSED(difference, difference, squared[i]);
      }
    }
    const realv q = LOADV(y - e * ${tau}), bound = bounds[s];
    int filled = 0;
    for (int i = 0; i < n; ++i) {
      const realv difference = q - LOADV(x + row[i] - e * ${tau});
      const realv sum = FUSED(difference, difference, squared[i]);
      const rowv near = sum <= bound;
      squared[i] = sum;
      queue[filled] = CHOOSE((realv)(NOWHERE), sum, near);
      queue_row[filled] = row[i];
      filled += ANYV(near) ? 1 : 0;  // else the next row takes its place
    }
    ++e;
    for (; filled % RUN_LENGTH; ++filled) {
      queue[filled] = NOWHERE;
      queue_row[filled] = 0;
    }
    const int k = K_OF[s];
    global whole* list = SLOT_BUFFER(CAPACITY_BEFORE[s]);
    merge(queue, queue_row, filled, list, (k + RUN_LENGTH - 1) / RUN_LENGTH);
    realv kth;
    rowv unused;
    read_list(list + (k - 1) * 2 * LANES, 1, &kth, &unused);
    const realv tighter = BOUND_OF_FULL(kth);
    bounds[s] = MINIMUM(bound, tighter);
  }
}
</%def>

## Continues with bound0, bound1, .. of knn_bound.mako, and leaves sorted lists in the buffers.
<%def name="sweep()">
    for (int s = 0; s < DIMS; ++s) {
      global long* list = (global long*)(SLOT_BUFFER(CAPACITY_BEFORE[s]));
      const int n_entries = (K_OF[s] + RUN_LENGTH - 1) / RUN_LENGTH * RUN_LENGTH;
      for (int i = 0; i < n_entries * LANES; i += HALF) PASTE(vstore, HALF)(EMPTY_KEY, 0, list + i);
    }
    int noted[NOTED_ROOM], n_noted = 0;
    // Lane l has row j + l. The sweep begins LANES - 1 rows early, so that the last lane meets j_begin too; rows before it are
    // left out when noted rows are settled.
    for (int j = j_begin - (LANES - 1); j < j_end; j += UNROLL) {
%for u in range(unroll):
      rowv is_far${u} = -1;  // a true lane is -1
%endfor
      {
        ${distances.step(compare)}
      }
      if (!ALLV(${" & ".join(f"is_far{u}" for u in range(unroll))})) {
%for u in range(unroll):
        noted[n_noted] = j + ${u};
        n_noted += ALLV(is_far${u}) ? 0 : 1;
%endfor
        if (n_noted > NOTED_ROOM - UNROLL) {
          ${settle()}
        }
      }
    }
    ${settle()}
</%def>

<%def name="compare(s)">
%for u in range(unroll):
  is_far${u} &= squared${u} > bound${s};
%endfor
</%def>

<%def name="settle()">
%for s in range(len(dims)):
          bounds[${s}] = bound${s};
%endfor
          settle_noted(x, y + tq, ${"penalty, " if masked else ""}noted, n_noted, bounds, buffer, j_begin, t0, exclusion_radius);
          n_noted = 0;
%for s in range(len(dims)):
          bound${s} = bounds[${s}];
%endfor
</%def>
