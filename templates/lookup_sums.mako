## A part of lookup.cl.mako: sums over the query rows, and the one order in which they are added.
##
## The order depends on the number of rows alone and on no parameter, so that rho has the same bits on every device:
##
##   row  0  1  2 ..  7 | 8  9 .. 15 | ..      counted from t_begin
##   strand  0  1  2 ..  7 | 0  1 ..  7 | ..   the rows of a strand are added one after another, in chunks of CHUNK; the sums of
##                                             its chunks are added exactly, one after another; and the strands in halves:
##                                             0 and 4, 1 and 5, ..; then 0 and 2, 1 and 3; then 0 and 1
##
## Eight row lanes have a strand each, so that adjacent ones read adjacent rows. Fewer sum several strands one after another.
## More of them share a strand: each sums a chunk, and the first adds what all have found ("turns").
## What `among` work-items sum over the query rows, of which `place` is the work-item's number. The caller's body adds row t to
## part_<sum><vector>; the first work-item ends with the totals in sum_.. and their rounding errors in rest_.. (reduce.clh).
##
## Both are needed once in CHUNK rows and fill a good part of a work-item's registers, 48 where it has eight targets. With
## waiting = 1 rest_.. waits in local memory meanwhile, with waiting = 2 sum_.., too.
<%def name="sum_rows(sums, place, among, unrolled, waiting=0)">
<%
names = [f"{s}{v}" for s in sums for v in range(vectors)]
apart = min(among, 8)  # work-items with strands of their own
own = 8 // apart  # strands of a work-item
turns = among // apart  # work-items that share a strand
%>
%if waiting:
    barrier(CLK_LOCAL_MEM_FENCE);  // the library before was put together in this memory
%endif
    {
      const int first_strand = ${f"{place} % {apart}" if apart > 1 else 0}, turn = ${f"{place} / {apart}" if turns > 1 else 0};
%if own > 1:
      realv kept[${2 * own * len(names)}];
      for (int strand = first_strand, at_kept = 0; strand < STRANDS; strand += ${apart}, at_kept += ${2 * len(names)}) {
%else:
      const int strand = first_strand;
      {
%endif
%for i, name in enumerate(names):
%if waiting:
        LOCALV(WAITING(${i})) = 0;
%else:
        rest_${name} = 0;
%endif
%if waiting > 1:
        LOCALV(WAITING(${len(names) + i})) = 0;
%else:
        sum_${name} = 0;
%endif
%endfor
        for (int chunks = t_begin; chunks < t_end; chunks += ${turns} * CHUNK * STRANDS) {
%for name in names:
          realv part_${name} = 0;
%endfor
          const int chunk = chunks + turn * (CHUNK * STRANDS), stop = min(chunk + CHUNK * STRANDS, t_end);
%if unrolled > 1:
#pragma unroll ${unrolled}
%endif
          for (int t = chunk + strand; t < stop; t += STRANDS) {
            ${caller.body()}
          }
${add_turns(names, turns, apart) if turns > 1 else add_chunk(names, waiting)}
        }
%for i, name in enumerate(names if waiting else []):
        rest_${name} = LOCALV(WAITING(${i}));
%if waiting > 1:
        sum_${name} = LOCALV(WAITING(${len(names) + i}));
%endif
%endfor
%if own > 1:
%for i, name in enumerate(names):
        kept[at_kept + ${2 * i}] = sum_${name};
        kept[at_kept + ${2 * i + 1}] = rest_${name};
%endfor
%endif
      }
%if own > 1:
      for (int beyond = ${own // 2}; beyond > 0; beyond /= 2)
        for (int i = 0; i < beyond * ${2 * len(names)}; i += 2) {
          ADD_EXACT(kept[i], kept[i + 1], kept[i + beyond * ${2 * len(names)}]);
          kept[i + 1] += kept[i + beyond * ${2 * len(names)} + 1];
        }
%for i, name in enumerate(names):
      sum_${name} = kept[${2 * i}];
      rest_${name} = kept[${2 * i + 1}];
%endfor
%endif
    }
${add_across(names, place, apart)}
</%def>

## Adds the sums of a chunk of rows to the running ones.
<%def name="add_chunk(names, waiting)">
%if waiting:
          // Without the fence a compiler may keep in registers what is read here and written in the chunk before.
          mem_fence(CLK_LOCAL_MEM_FENCE);
%endif
%for i, name in enumerate(names):
%if waiting:
          {
            realv rest = LOCALV(WAITING(${i}));
%if waiting > 1:
            realv sum_${name} = LOCALV(WAITING(${len(names) + i}));
%endif
            ADD_EXACT(sum_${name}, rest, part_${name});
            LOCALV(WAITING(${i})) = rest;
%if waiting > 1:
            LOCALV(WAITING(${len(names) + i})) = sum_${name};
%endif
          }
%else:
          ADD_EXACT(sum_${name}, rest_${name}, part_${name});
%endif
%endfor
</%def>

## The same where `turns` work-items have a chunk each: the first of them adds all, in the order of chunks. Two sums at a time
## pass through local memory.
<%def name="add_turns(names, turns, apart)">
<%
columns = vectors * lanes  # of a work-item
group_columns = target_lanes * columns
pairs = [names[i : i + 2] for i in range(0, len(names), 2)]
%>
          {
            const int at = row_place * ${group_columns} + target_lane * ${columns};
%for pair in pairs:
            barrier(CLK_LOCAL_MEM_FENCE);
%for name, place in zip(pair, ("shared_sum", "shared_rest")):
            LOCALV(${place} + at) = part_${name};
%endfor
            barrier(CLK_LOCAL_MEM_FENCE);
            if (turn == 0)
              for (int i = 0; i < ${turns}; ++i) {
%for name, place in zip(pair, ("shared_sum", "shared_rest")):
                ADD_EXACT(sum_${name}, rest_${name}, LOCALV(${place} + at + i * ${apart * group_columns}));
%endfor
              }
%endfor
          }
</%def>

## Puts the strands of `among` work-items together, in local memory: again and again one half adds what the other half has. The
## first of them ends with the total.
<%def name="add_across(names, place, among)">
<%
columns = vectors * lanes  # of a work-item
group_columns = target_lanes * columns
%>
%if among > 1:
%for name in names:
    {
      const int at = row_place * ${group_columns} + target_lane * ${columns};
      barrier(CLK_LOCAL_MEM_FENCE);
      LOCALV(shared_sum + at) = sum_${name};
      LOCALV(shared_rest + at) = rest_${name};
      for (int beyond = ${among // 2}; beyond > 0; beyond /= 2) {
        barrier(CLK_LOCAL_MEM_FENCE);
        if (${place} < beyond) {
          ADD_EXACT(sum_${name}, rest_${name}, LOCALV(shared_sum + at + beyond * ${group_columns}));
          rest_${name} += LOCALV(shared_rest + at + beyond * ${group_columns});
          LOCALV(shared_sum + at) = sum_${name};
          LOCALV(shared_rest + at) = rest_${name};
        }
      }
    }
%endfor
%endif
</%def>
