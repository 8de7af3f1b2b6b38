## A part of knn.cl.mako: a first sweep over the library that bounds the distance of the k-th neighbour.
##
## The library rows are cut into row groups, and of each group only the least squared distance is kept. The k-th smallest of
## these minima is a distance that k rows do not exceed, so the k-th neighbour is no further away. With some 2.5 k row
## groups it is so tight that about 1.25 k rows are collected afterwards.
##
##   A row group takes every groups_per_tile-th step of a library tile: rows that are neighbours in time, and so often
##   near the query together, fall into different groups. (Without tiles the whole library is one tile.)
##
##     steps of a tile    0 1 2 3 4 5 6 7 8 ..
##     their row group    0 1 2 0 1 2 0 1 2 ..       groups_per_tile = 3; the next tile has groups 3, 4, 5
##
##   bound_share   the sweep takes one in `bound_share` tiles (or steps, without tiles): fewer rows, and a looser bound
##   merged[s]     row groups that together give one minimum of dimension s: a dimension with few neighbours needs few minima.
##                 There are as many groups as the dimension with the most neighbours needs
##   round         a long library has more row groups than there is room for minima of. After groups_per_round of them the
##                 first group goes on, and its minimum is that of all its rounds
##   sharers       of a query row take turns with the row groups of a tile, and keep the minima of their own; the k-th smallest
##                 is that of all of them
<%namespace name="least" file="least.mako"/>
<%namespace name="distances" file="knn_distances.mako"/>

## Declares bounds[DIMS], held[DIMS] (candidates in each buffer: none yet) and bound0, bound1, ..: what a candidate's squared
## distance must not exceed, a variable for each dimension.
<%def name="find()">
    realv bounds[DIMS];
    rowv held[DIMS];
    int row_groups = 0;  // of this round and this work-item, so far
%if sharers > 1:
    const int own_of_tile = max((groups_per_tile - part + SHARERS - 1) / SHARERS, 0);
    const int own_of_round = groups_per_round / groups_per_tile * own_of_tile;
%else:
    const int own_of_round = groups_per_round;
%endif
%if lanes == 1 and wg > 1:
    // Minima and candidates share memory in different layouts: nobody may begin with one while others are at the other.
    barrier(CLK_GLOBAL_MEM_FENCE);
%endif
    {
      // Least squared distances of the row group at hand.
%for s in range(len(dims)):
      realv least${s} = FAR;
%endfor
%if tile:
      bool later_round = false;
      for (int jt = j_begin; jt < j_end; jt += SHARE * TILE) {
        if (row_groups == own_of_round) {  // all places for minima are taken: the next round begins with the first one
          ${store_unfinished()}
          row_groups = 0;
          later_round = true;
        }
        ${distances.load_tile()}
        const int tile_end = min(jt + TILE, j_end);
%else:
      {
        const int jt = j_begin, tile_end = j_end;
%endif
        for (int g = part; g < groups_per_tile; g += SHARERS) {
          // Lane l has row j + l and misses the first l library rows: a bound over fewer rows still holds.
          for (int j = jt + g * BOUND_STEP; j < tile_end; j += groups_per_tile * BOUND_STEP) {
%if lanes > 1:
            if (j > near_begin && j < near_end) continue;  // a step near the query is missed as a whole
%endif
%if tile:
            local const real* xt = xs + (j - jt + HALO);
%endif
            ${distances.step(keep_least)}
          }
          ++row_groups;
%for s in range(len(dims)):
          if (row_groups % ${merged[s]} == 0) ${store_minimum(s, f"row_groups / {merged[s]} - 1")}
%endfor
        }
      }
      ${store_unfinished()}
%if tile:
      if (later_round) row_groups = own_of_round;  // places that the last round did not reach hold minima of earlier ones
%endif
    }

%if sharers > 1:
    published[get_local_id(0)] = row_groups;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
%endif

    // The k-th smallest minimum.
    for (int s = 0; s < DIMS; ++s) {
      const int k = K_OF[s];
%if sharers == 1:
      const int n_minima = (row_groups + MERGED[s] - 1) / MERGED[s];
      global const whole* restrict own = minima + (size_t)(2 * GROUP_ROWS) * CAPACITY_BEFORE[s];
%endif
%if lanes > 1:
#if LIST_IN_REGISTERS
      ${insert_minima()}
#else
      ${halve_minima()}
#endif
%else:
      ${insert_minima()}
%endif
      bounds[s] = kth;
      held[s] = 0;
    }
%if lanes == 1 and wg > 1:
    barrier(CLK_GLOBAL_MEM_FENCE);
%endif
    // A query row that touches a gap has no neighbours: nothing is below -1.
    realv largest = fabs(q0);
%for e in range(max(dims)):
%if e:
    largest = MAXIMUM(largest, fabs(q${e}));
%endif
%if e + 1 in dims:
<% s = dims.index(e + 1) %>
    realv bound${s} = CHOOSE(bounds[${s}], (realv)(-1), largest > (realv)(PRESENT));
%endif
%endfor
</%def>

## By an insertion of values alone: here it does not matter whose they are.
<%def name="insert_minima()">
      realv smallest[K_MAX];
      UNROLL_K
      for (int i = 0; i < LIST_LENGTH(k); ++i) smallest[i] = FAR;
%if sharers > 1:
      for (int at = row_of_tile; at < WG; at += QUERY_ROWS) {
        const int n_minima = (published[at] + MERGED[s] - 1) / MERGED[s];
        global const whole* restrict own = minima - lane0 + at + (size_t)(2 * GROUP_ROWS) * CAPACITY_BEFORE[s];
%else:
      {
%endif
        for (int g = 0; g < n_minima; ++g) {
          realv v = AS_REALV(LOADV(own + (size_t)GROUP_ROWS * g));
          UNROLL_K
          for (int i = 0; i < LIST_LENGTH(k); ++i) {
            const realv low = MINIMUM(smallest[i], v);
            v = MAXIMUM(smallest[i], v);
            smallest[i] = low;
          }
        }
      }
      realv kth = FAR;
      UNROLL_K
      for (int i = 0; i < LIST_LENGTH(k); ++i)
        if (i == k - 1) kth = smallest[i];
</%def>

## Of many neighbours by halving an interval of numbers, as bits, of which k minima do not exceed the upper one. Eight times
## suffice: a bound that is some percent too large lets as many more rows through.
<%def name="halve_minima()">
      realv low = FAR, high = 0;
      rowv present = 0;
      for (int g = 0; g < n_minima; ++g) {
        const realv v = AS_REALV(LOADV(own + (size_t)GROUP_ROWS * g));
        const rowv exists = v < (realv)(FAR);  // a true lane is -1, here and below
        low = MINIMUM(low, v);
        high = CHOOSE(high, MAXIMUM(high, v), exists);
        present -= exists;
      }
      rowv few = AS_WHOLEV(low) - (rowv)(1), enough = AS_WHOLEV(high);
      for (int i = 0; i < 8; ++i) {
        const rowv middle = few + ((enough - few) >> 1);
        rowv count = 0;
        for (int g = 0; g < n_minima; ++g)
          count -= AS_REALV(LOADV(own + (size_t)GROUP_ROWS * g)) <= AS_REALV(middle);
        const rowv reached = count >= (rowv)(k);
        enough = CHOOSE(enough, middle, reached);
        few = CHOOSE(middle, few, reached);
      }
      const realv kth = CHOOSE((realv)(FAR), AS_REALV(enough), present >= (rowv)(k));
</%def>

<%def name="keep_least(s)">
  least${s} = MINIMUM(least${s}, ${least.of(f"squared{u}" for u in range(unroll))});
</%def>

## The minimum of a row group (or of merged ones) goes to its place, where it meets those of the rounds before.
<%def name="store_minimum(s, number)">
<%
place = f"minima + (size_t)GROUP_ROWS * (2 * {sum(capacities[:s])} + {number})"
value = f"later_round ? MINIMUM(least{s}, AS_REALV(LOADV({place}))) : least{s}" if tile else f"least{s}"
%>
{ STOREV(AS_WHOLEV(${value}), ${place}); least${s} = FAR; }
</%def>

## Row groups that are to be merged are not all there when a round ends.
<%def name="store_unfinished()">
%for s in range(len(dims)):
%if merged[s] > 1:
      if (row_groups % ${merged[s]}) ${store_minimum(s, f"row_groups / {merged[s]}")}
%endif
%endfor
</%def>
