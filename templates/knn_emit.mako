## A part of knn.cl.mako: the candidates of a query row become its neighbours, in order, and go to the tables.
##
##   emit == "neighbours"   rows and squared distances; -1 and NOWHERE where there are fewer than k
##   emit == "weights"      rows and simplex weights, normalised; weight 0 and a row that can be read where there are fewer
##
## Where work-items share a query row, part 0 gathers the candidates of all parts.
##
## A scalar work-item sorts in its buffer, in global memory; lanes have the sorted lists in their own memory. Below,
## NEAREST(i) and SET_NEAREST(i, value) stand for entry i of either.
<%def name="tables(shared)">
    for (int s = 0; s < DIMS; ++s) {
      const int k = K_OF[s];
      const size_t base = (size_t)K_BEFORE[s] * rows_per_slot + ((size_t)library_of_launch * table_rows + t0) * K_STRIDE[s];
%if lanes == 1:
      global whole* restrict sorted = SLOT_BUFFER(CAPACITY_BEFORE[s]);
%if sharers > 1:
      ${gather()}
%else:
      rowv count = held[s];
      realv last = FAR;
      compact(sorted, k, &count, &last);
%endif
#define NEAREST(I) CANDIDATE_DISTANCE(sorted + ENTRY_AT(I))
#define SET_NEAREST(I, W) STOREV(AS_WHOLEV(W), sorted + ENTRY_AT(I))
%else:
      realv nearest[K_MAX];
      rowv rows[K_MAX];
%if shared:
      read_list(SLOT_BUFFER(CAPACITY_BEFORE[s]), k, nearest, rows);
%else:
      sort_candidates(SLOT_BUFFER(CAPACITY_BEFORE[s]), k, held[s], nearest, rows);
%endif
#define NEAREST(I) nearest[I]
#define SET_NEAREST(I, W) nearest[I] = W
%endif
%if emit == "weights":
      ${weigh()}
%endif
      ${store_scalar() if lanes == 1 else store_lanes()}
    }
</%def>

## Part 0 sorts the candidates of all parts of a query row into its own buffer. The other parts go on to the next dimension.
<%def name="gather()">
      published[get_local_id(0)] = held[s];
      barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
      if (part == 0) {
        realv nearest[K_MAX];
        rowv rows[K_MAX];
        clear_list(k, nearest, rows);
        int listed = 0;
        for (int at = row_of_tile; at < WG; at += QUERY_ROWS) {
          insert_candidates(sorted - LANE_OFFSET + 8 * at, k, published[at], listed, nearest, rows);
          listed += published[at];
        }
        keep_list(sorted, k, nearest, rows);
      }
      barrier(CLK_LOCAL_MEM_FENCE);  // nobody publishes again while part 0 reads
      if (part) continue;
</%def>

## Squared distances in the sorted list become weights, which are to be multiplied by `scale` (1 where there is no neighbour).
<%def name="weigh()">
      const realv d_min = root(NEAREST(0));
      const rowv at_zero = d_min == (realv)(0);
      const realv inverse = INVERSE_DISTANCE(d_min, at_zero);
      realv sum = 0;
      for (int i = 0; i < k; ++i) {
        const realv squared = NEAREST(i);
        realv w = SIMPLEX_WEIGHT(root(squared), inverse, at_zero);
        w = CHOOSE(w, (realv)(0), squared >= (realv)(FAR));
        sum += w;
        SET_NEAREST(i, w);
      }
      const realv scale = quotient((realv)(1), CHOOSE(sum, (realv)(1), sum == (realv)(0)));
</%def>

## One query row. Tables of weights are padded to four neighbours, so four entries are written at once; the padding is never
## used, but its rows may be read.
<%def name="store_scalar()">
      if (t0 < n_rows)
%if emit == "weights":
        for (int i = 0; i < k; i += 4) {
          const four_pairs_ four = *(global const four_pairs_*)(sorted + ENTRY_AT(i));
          const rowv4 row = four.odd;
          const rowv4 empty = row < 0 || (rowv4)(i, i + 1, i + 2, i + 3) >= k;
          *(global int4*)(out_row + base + i) = convert_int4(select(row, (rowv4)(j_begin), empty));
          *(global real4*)(out_value + base + i) = PASTE(PASTE(as_, REAL_NAME), 4)(four.even) * scale;
        }
%else:
        for (int i = 0; i < k; ++i) {
          out_row[base + i] = (int)sorted[ENTRY_AT(i) + 1];
          out_value[base + i] = CANDIDATE_DISTANCE(sorted + ENTRY_AT(i));
        }
%endif
</%def>

## LANES query rows. A tile of a table of weights has them side by side, so whole vectors are written; rows behind the last
## query row have their place in its tile as well, but a work-item all of whose rows lie behind it has no tile. Tables of
## neighbours are written row by row.
<%def name="store_lanes()">
%if emit == "weights":
      for (int i = 0; i < k && t0 < n_rows; ++i) {
        STOREV(TO_INTV(CHOOSE(rows[i], (rowv)(j_begin), rows[i] < (rowv)(0))), out_row + base + i * LANES);
        STOREV(nearest[i] * scale, out_value + base + i * LANES);
      }
%else:
      for (int l = 0; l < LANES && t0 + l < n_rows; ++l)
        for (int i = 0; i < k; ++i) {
          out_row[base + (size_t)l * K_STRIDE[s] + i] = (int)((const whole*)(rows + i))[l];
          out_value[base + (size_t)l * K_STRIDE[s] + i] = ((const real*)(nearest + i))[l];
        }
%endif
</%def>
