## A part of knn.cl.mako: the second sweep, which collects candidates, for scalar work-items (lanes == 1, GPUs).
##
## Neighbouring work-items run in lockstep: while one is in a branch, the others wait. So a step only notes which rows
## are within the bound of some dimension (they are "hot"), with one comparison a dimension and hardly a branch; dimensions
## share most of these rows. When the list of hot rows is full, or at the end of a library tile, its rows are compared
## again, dimension by dimension, and become candidates.
##
##   hot           places of the list of hot rows
##   room          free places in the fullest buffer; below 1 the full ones are compacted at once
##   LOW           where room is below this after a list, buffers are compacted before there is need: work-items that do it
##                 together take no longer than one of them alone. It is larger where the bound saw fewer rows, since more
##                 candidates pass it then
<%namespace name="least" file="least.mako"/>
<%namespace name="distances" file="knn_distances.mako"/>

<%def name="functions()">
#define HOT_AT(n) ((n) * WG)

// Puts row J at squared distance D into the buffer of dimension S. Rows come in ascending order: once K candidates within the
// bound are held, a later row at the bound loses its tie, and must be below (order.clh). Without this rule, data with many
// equal distances would fill every buffer again and again. Counts are kept in registers: held0, held1, ..
#define OFFER(S, K, BEFORE, CAPACITY, D, BOUND, J) \
  if ((D) <= (BOUND)) { \
    PUT_CANDIDATE(SLOT_BUFFER(BEFORE) + ENTRY_AT(held##S), D, J); \
    ++held##S; \
    if (held##S == K) BOUND = NEXT_BELOW(BOUND); \
    room = min(room, CAPACITY - held##S); \
  }
</%def>

## Continues with bound0, bound1, .. of knn_bound.mako, and leaves the candidates in the buffers, their numbers in held[].
<%def name="sweep()">
<%
slots = range(len(dims))
rows = range(unroll)
%>
    int room = 1 << 30;  // nothing stored yet
    int n_hot = 0, ${", ".join(f"held{s} = 0" for s in slots)};
%if tile:
    for (int jt = j_begin; jt < j_end; jt += TILE) {
      ${distances.load_tile()}
      const int tile_end = min(jt + TILE, j_end);
%else:
    {
      const int jt = j_begin, tile_end = j_end;
%endif
      for (int j = jt + part * UNROLL; j < tile_end; j += SHARERS * UNROLL) {
%if tile:
        local const real* xt = xs + (j - jt + HALO);
%endif
%if len(dims) > 1:
        int ${", ".join(f"is_hot{u}" for u in rows)};
%endif
        {
          ${distances.step(note if len(dims) > 1 else note_at_once)}
        }
%if len(dims) > 1:
        if (${" | ".join(f"is_hot{u}" for u in rows)}) {
%for u in rows:
          if (is_hot${u}) hot[HOT_AT(n_hot++)] = j - jt + ${u};
%endfor
        }
%endif
        // The list is full, or the tile ends and its rows are still at hand.
        if (n_hot > HOT - UNROLL || (n_hot && j + SHARERS * UNROLL >= tile_end)) {
          for (int n = 0; n < n_hot; ++n) {
            const int at = hot[HOT_AT(n)];
%if tile:
            local const real* state = xs + (at + HALO);
%else:
            global const real* state = x + jt + at;
%endif
            real difference = q0 - state[0], squared = difference * difference;
%for e in range(max(dims)):
%if e:
            difference = q${e} - state[${-e * tau}];
            squared = FUSED(difference, difference, squared);
%endif
%if e + 1 in dims:
<% s = dims.index(e + 1) %>
            OFFER(${s}, ${counts[s]}, ${sum(capacities[:s])}, ${capacities[s]}, squared, bound${s}, jt + at);
%endif
%endfor
            if (room < 1) {
              ${compact_full(1)}
            }
          }
          n_hot = 0;
          if (room < LOW) {
            ${compact_full("LOW")}
          }
        }
      }
    }
%for s in slots:
    held[${s}] = held${s};
%endfor
</%def>

## Several dimensions: which rows of the step any of them wants.
<%def name="note(s)">
%for u in range(unroll):
  is_hot${u} ${"|" if s else ""}= squared${u} <= bound${s};
%endfor
</%def>

## One dimension: the least distance of the step, and then of four rows, tells whether there is anything to note.
<%def name="note_at_once(s)">
  if (${least.of(f"squared{u}" for u in range(unroll))} <= bound0) {
%for first in range(0, unroll, 4):
<% four = range(first, min(first + 4, unroll)) %>
    if (${least.of(f"squared{u}" for u in four)} <= bound0) {
%for u in four:
      if (squared${u} <= bound0) hot[HOT_AT(n_hot++)] = j - jt + ${u};
%endfor
    }
%endfor
  }
</%def>

## Compacts the buffers that have fewer than `spare` free places.
<%def name="compact_full(spare)">
%for s in range(len(dims)):
          bounds[${s}] = bound${s};
          held[${s}] = held${s};
%endfor
          for (int s = 0; s < DIMS; ++s)
            if (held[s] > CAPACITY_OF[s] - (${spare}))
              compact(SLOT_BUFFER(CAPACITY_BEFORE[s]), K_OF[s], held + s, bounds + s);
%for s in range(len(dims)):
          bound${s} = bounds[${s}];
          held${s} = held[${s}];
%endfor
          room = 1 << 30;  // nothing stored since
</%def>
