## A part of knn.cl.mako: the second sweep, which collects candidates, for vectors of query rows (lanes > 1, processors).
##
## A processor predicts branches well, and most steps hold no candidate of any lane. Where one does, in some dimension, the
## comparisons of four or eight rows of a step become bits of words, four rows a word, and a short loop over these bits puts the
## candidates into the buffers of their lanes.
##
##   room          free places in the fullest buffer; below UNROLL, what a step may fill, the full ones are compacted
<%namespace name="least" file="least.mako"/>
<%namespace name="distances" file="knn_distances.mako"/>

## Rows of a step that are offered at once: most calls of offer() find one or two candidates. four_masks (topk.clh) makes the bits
## of four rows, which say where the candidates are, by or-ing all lanes together once for a word.
<%!
def rows_at_once(unroll):
    return 8 if unroll >= 8 else 4
%>

<%def name="functions()">
// Puts the candidates that the bits of four rows of a step name into the buffers of their lanes: bit u * LANES + l belongs to
// row u of the four and lane l, that is to library row j + u + l. Rows of a lane come in ascending order: once k candidates
// within the bound are held, a later row at the bound loses its tie, and must be below (order.clh). Without this rule, data with
// many equal distances would fill every buffer again and again. The bits come from the bound as it was before, and a candidate
// too many does no harm.
inline void keep(ulong bits, const whole* restrict squared, whole* restrict bound_bits, const int k, const int j,
                 whole* restrict held, global whole* restrict buffer, int* restrict most) {
  while (bits) {
    // The lowest bit; OpenCL 1.2 has no ctz.
    const int at = 63 - (int)clz(bits & -bits), lane = at % LANES;
    bits &= bits - 1;
    const int c = (int)held[lane];
    held[lane] = c + 1;
    buffer[ENTRY_AT(c) + lane] = squared[at];
    buffer[ENTRY_AT(c) + GROUP_ROWS + lane] = j + at / LANES + lane;
    if (c + 1 == k) bound_bits[lane] = BITS_BELOW(bound_bits[lane]);
    *most = max(*most, c + 1);
  }
}

// The bits of four rows of a step without those of rows that may not be neighbours: before j_begin, or too near the query. Both
// are rare.
#define ALL_LANES (0xfffffffffffffffful >> (64 - LANES))
inline ulong without_excluded(ulong bits, const int j, const int j_begin, const int t0, const int exclusion_radius) {
  if (j >= j_begin && (j + 3 < t0 - exclusion_radius || j > t0 + exclusion_radius)) return bits;
  for (int u = 0; u < 4; ++u) {
    const int before = clamp(j_begin - (j + u), 0, LANES);
    const ulong out = IS_EXCLUDED(t0, j + u) ? ALL_LANES : ((ulong)1 << before) - 1;
    bits &= ~(out << u * LANES);
  }
  return bits;
}

// Collects the candidates of one dimension among ${rows_at_once(unroll)} rows of a step, from j on (lane l has rows l further on), and lowers `room` to
// the places that are left. `bounds` points at the bounds of this dimension's lanes. All dimensions share one copy of this
// function: compile time counts.
__attribute__((noinline))
void offer(${", ".join(f"realv squared{u}" for u in range(rows_at_once(unroll)))},
           realv* restrict bounds, int k, int capacity, int j, int j_begin, int t0, int exclusion_radius,
           whole* restrict held, global whole* restrict buffer, int* restrict room) {
  const realv bound = *bounds;
  whole squared[4 * LANES];
  int most = 0;
%for first in range(0, rows_at_once(unroll), 4):
  {
    const ulong bits = four_masks(${", ".join(f"squared{u} <= bound" for u in range(first, first + 4))});
%for u in range(4):
    STOREV(AS_WHOLEV(squared${first + u}), squared + ${u} * LANES);
%endfor
    keep(without_excluded(bits, j + ${first}, j_begin, t0, exclusion_radius), squared, (whole*)bounds, k, j + ${first}, held,
         buffer, &most);
  }
%endfor
  *room = min(*room, capacity - most);
}
</%def>

## Continues with bound0, bound1, .. of knn_bound.mako, and leaves the candidates in the buffers, their numbers in held[].
<%def name="sweep()">
    int room = 1 << 30;  // nothing stored yet
    // Lane l has row j + l. The sweep begins LANES - 1 rows early, so that the last lane meets j_begin too; rows before it are
    // left out when a candidate is taken.
    for (int j = j_begin - (LANES - 1); j < j_end; j += UNROLL) {
      {
        ${distances.step(collect)}
      }
      if (room < UNROLL) {
        ${compact_full()}
      }
    }
</%def>

<%def name="collect(s)">
<% at_once = rows_at_once(unroll) %>
  if (ANYV(${least.of(f"squared{u}" for u in range(unroll))} <= bound${s})) {
%for first in range(0, unroll, at_once):
    offer(${", ".join(f"squared{u}" if u < unroll else "(realv)(NOWHERE)" for u in range(first, first + at_once))},
          &bound${s}, ${counts[s]}, ${capacities[s]}, j + ${first}, j_begin, t0, exclusion_radius, (whole*)&held[${s}],
          SLOT_BUFFER(${sum(capacities[:s])}), &room);
%endfor
  }
</%def>

## Compacts the buffers that a step might overfill.
<%def name="compact_full()">
%for s in range(len(dims)):
        bounds[${s}] = bound${s};
%endfor
        for (int s = 0; s < DIMS; ++s)
          if (largest_lane(held[s]) > CAPACITY_OF[s] - (UNROLL))
            compact(SLOT_BUFFER(CAPACITY_BEFORE[s]), K_OF[s], held + s, bounds + s);
%for s in range(len(dims)):
        bound${s} = bounds[${s}];
%endfor
        room = 1 << 30;  // nothing stored since
</%def>
