## A part of smap_map_units.mako: the predictions of a tile go to local memory, and from there to the sums that smap_map_sums.mako
## describes.
##
##   memory   [row of the tile][stride]   the predictions, a column for each target
##
## A work-item then has a column and a part of the rows: every `parts`-th one, from its own on. The sums of the parts are joined
## in their order. With one part only (in full precision) a column's rows are added one after another.

## The predictions of a work-item's two rows. With halves, what scaled targets and rows of H is undone.
<%def name="store(stride)">
  {
    local real* restrict mine = memory + near_row * ${stride} + lane % 4 * 2;
%if halves:
    const real back0 = 1 / factor0, back1 = 1 / factor1;
%endif
%for v in range(vectors):
%if halves:
    {
      const real scale0 = scales[block + ${8 * v} + lane % 4 * 2], scale1 = scales[block + ${8 * v} + lane % 4 * 2 + 1];
      mine[${8 * v}] = (p${v}_0 + total[${4 * v}]) * back0 * scale0;
      mine[${8 * v + 1}] = (p${v}_1 + total[${4 * v + 1}]) * back0 * scale1;
      mine[${8 * stride + 8 * v}] = (p${v}_2 + total[${4 * v + 2}]) * back1 * scale0;
      mine[${8 * stride + 8 * v + 1}] = (p${v}_3 + total[${4 * v + 3}]) * back1 * scale1;
    }
%else:
    mine[${8 * v}] = (real)p${v}_0, mine[${8 * v + 1}] = (real)p${v}_1;
    mine[${8 * stride + 8 * v}] = (real)p${v}_2, mine[${8 * stride + 8 * v + 1}] = (real)p${v}_3;
%endif
%endfor
  }
</%def>

## The sums of all columns, `at_once` of them at a time, each by `parts` work-items. Rows are gone through twice: first for their
## number and the means, and then for products of what differs from the means. What the parts have found waits in
## shared[number][part][column] until it is joined.
<%def name="sums(stride, at_once, parts)">
<%
rows = row_lanes * rows_each
summed = -(-rows // parts)  # rows of a part
%>
  const int stop = min(ROWS, n_rows - row0);
  sums += ((size_t)library * n_tiles + tile) * PIECES * sums_stride + block;
  for (int begin = 0; begin < TARGETS; begin += ${at_once}) {
    const int column = begin + lid % ${at_once}, part = lid / ${at_once};
    const int mine = part < ${parts} && column < TARGETS && column_begin + block + column < column_end;
%if parts > 1:
    local real* restrict own = shared + part * TARGETS + column;
%endif
    ${observe(parts, summed)}
    real n = 0, mean_p = 0, mean_o = 0, pp = 0, oo = 0, po = 0;
%for names, body in ((("n", "mean_p", "mean_o"), add_values), (("pp", "oo", "po"), add_products)):
    if (mine) {
      ${for_each_row(stride, parts, summed, body)}
%if parts > 1:
      ${publish(names, parts)}
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (mine) {
      ${join(names, parts)}
%endif
%if names[0] == "n":
      mean_p /= fmax(n, (real)1);
      mean_o /= fmax(n, (real)1);
%endif
    }
${"    barrier(CLK_LOCAL_MEM_FENCE);" if parts > 1 else ""}
%endfor
    if (mine && part == 0) {
%for k, name in enumerate(("n", "mean_p", "mean_o", "pp", "oo", "po")):
      sums[${k} * (size_t)sums_stride + column] = ${name};
%endfor
    }
  }
</%def>

<%def name="observe(parts, summed)">
    // All observations are asked for at once, since each is waited for long, and kept for the second pass. What does not count
    // is a gap.
    real observed[${summed}];
    if (mine) {
      _Pragma("unroll") for (int i = 0; i < ${summed}; ++i) {
        const int at = part + i * ${parts};
        observed[i] = at < stop ? targets[(size_t)(row0 + at) * target_stride + column] : GAP;
%if gaps:
        if (at < stop && columns[(size_t)(2 * E) * n_padded + row0 + at] <= 0) observed[i] = GAP;
%endif
      }
    }
</%def>

## `body` for each row of a part that counts, with its prediction p and observation o.
<%def name="for_each_row(stride, parts, summed, body)">
      _Pragma("unroll") for (int i = 0; i < ${summed}; ++i) {
        if (fabs(observed[i]) >= PRESENT) continue;
        const real p = memory[(part + i * ${parts}) * ${stride} + column], o = observed[i];
        ${body()}
      }
</%def>
<%def name="add_values()">
        n += 1;
        mean_p += p;
        mean_o += o;
</%def>
<%def name="add_products()">
        const real from_p = p - mean_p, from_o = o - mean_o;
        pp = FUSED(from_p, from_p, pp);
        oo = FUSED(from_o, from_o, oo);
        po = FUSED(from_p, from_o, po);
</%def>

## The sums over all parts, known to each work-item of a column afterwards: a work-item puts what it has into local memory, and
## then all of them add up the parts in their order.
<%def name="publish(names, parts)">
%for i, name in enumerate(names):
      own[${i * parts * 8 * vectors}] = ${name};
%endfor
</%def>
<%def name="join(names, parts)">
%for i, name in enumerate(names):
      ${name} = 0;
      for (int k = 0; k < ${parts}; ++k) ${name} += shared[(${i * parts} + k) * TARGETS + column];
%endfor
</%def>
