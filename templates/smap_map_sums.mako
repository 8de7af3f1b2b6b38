## A part of smap_map.cl.mako: the sums of a tile of predictions, and how those of all tiles become Pearson's rho.
##
## Predictions are never written. For each tile of rows and each column `sums` gets six numbers: the rows counted, the means of
## predictions and of observations, and the sums of products of what differs from these means. Around the tile's own means
## little is lost where predictions hardly vary or a series drifts, even in float32. The kernel smap_score then joins the tiles
## in double.
##
##   sums   [library][tile][n, mean_p, mean_o, pp, oo, po][column]
##
## The tile of predictions lies in registers where a work-item has all rows of its part there, and else in local memory
## (`p_tile`).

<%!
def where_counted(value, gaps):
    """A value where there are a prediction and an observation, else 0."""
    return f"select((targetv)(0), {value}, counted)" if gaps else value
%>
## ---- The sums of a group's tile: its rows once for the means, and once more for what differs from them ----
<%def name="of_tile()">
<%
kept = row_tiles * target_tiles == 1  # p stays in registers
%>
  // ---- The sums of this tile ----
  const int stop = min(ROWS, n_rows - row0);
  sums += ((size_t)library * n_tiles + tile) * PIECES * sums_stride + block - column_begin;
%for v in range(1 if not kept else vectors):
%if kept:
  {
    const int column = ${v * target_lanes * width} + target_lane * ${width};
%else:
  for (int column = 0; column < TARGETS && block + column < column_end; column += ${width}) {
%endif
    global const real* restrict observed = targets + (size_t)row0 * target_stride + block + column;
    targetv ${", ".join(f"{name} = 0" for name in ("n", "mean_p", "mean_o", "pp", "oo", "po"))};
    ${rows_of_tile(v, add_values)}
    ${across("n")}
    ${across("mean_p")}
    ${across("mean_o")}
    const targetv n_or_one = fmax(n, (targetv)(1));
    mean_p /= n_or_one;
    mean_o /= n_or_one;
    ${rows_of_tile(v, add_products)}
    ${across("pp")}
    ${across("oo")}
    ${across("po")}
    if (row_lane == 0 && block + column < column_end) {
%for k, name in enumerate(("n", "mean_p", "mean_o", "pp", "oo", "po")):
      STORE_TARGETS(${name}, sums + ${k} * (size_t)sums_stride + column);
%endfor
    }
  }
%endfor
</%def>

## `body` for each row of a work-item's part of the tile, with its prediction p and observation o. With gaps, `counted` tells in
## which columns there are both.
<%def name="rows_of_tile(v, body)">
%if row_tiles * target_tiles == 1:
%for r in range(rows_each):
    ${one_row(f"row_lane * {rows_each} + {r}", f"p{r}_{v}", body)}
%endfor
%else:
    for (int r = 0; r < stop; ++r) {
      ${one_row("r", "LOAD_TARGETS(p_tile + r * TARGETS + column)", body)}
    }
%endif
</%def>
<%def name="one_row(row, prediction, body)">
    {
      const int at = ${row};
      if (at < stop) {
        const targetv p = ${prediction}, o = LOAD_TARGETS(observed + (size_t)(at) * target_stride);
%if gaps:
        const targetm counted = fabs(o) < (targetv)(PRESENT) && (targetm)(columns[(size_t)(2 * E) * n_padded + row0 + at] > 0);
%endif
        ${body()}
      }
    }
</%def>
<%def name="add_values()">
        n += ${where_counted("(targetv)(1)", gaps)};
        mean_p += ${where_counted("p", gaps)};
        mean_o += ${where_counted("o", gaps)};
</%def>
<%def name="add_products()">
        const targetv from_p = ${where_counted("p - mean_p", gaps)}, from_o = ${where_counted("o - mean_o", gaps)};
        pp = FUSED(from_p, from_p, pp);
        oo = FUSED(from_o, from_o, oo);
        po = FUSED(from_p, from_o, po);
</%def>
## The sum over the row lanes, known to all of them. In a fixed order: again and again one half adds what the other half has.
<%def name="across(name)">
%if row_lanes > 1:
    barrier(CLK_LOCAL_MEM_FENCE);
    STORE_TARGETS(${name}, shared + row_lane * TARGETS + column);
    for (int apart = ${row_lanes // 2}; apart > 0; apart /= 2) {
      barrier(CLK_LOCAL_MEM_FENCE);
      if (row_lane < apart) {
        ${name} += LOAD_TARGETS(shared + (row_lane + apart) * TARGETS + column);
        STORE_TARGETS(${name}, shared + row_lane * TARGETS + column);
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    ${name} = LOAD_TARGETS(shared + column);
%endif
</%def>

## ---- The kernel that joins tiles ----
<%def name="score()">
// A work-item writes rho of one column for library get_global_id(1); rho: [library][rho_stride], from row first_library on, to
// column target_of[column]. Tiles are joined as Chan, Golub and LeVeque do it (1979).
kernel void smap_score(global const real* restrict sums, const int sums_stride, const int n_tiles, const int column_begin,
                       const int column_end, global const int* restrict target_of, const int first_library,
                       const int rho_stride, global real* restrict rho) {
  const int c = get_global_id(0), library = get_global_id(1);
  if (column_begin + c >= column_end) return;
  sums += (size_t)library * n_tiles * PIECES * sums_stride + c;
  moment n = 0, p = 0, o = 0, pp = 0, oo = 0, po = 0;
  for (int tile = 0; tile < n_tiles; ++tile, sums += (size_t)PIECES * sums_stride) {
    const moment n_tile = sums[0];
    if (n_tile == 0) continue;
    const moment apart_p = sums[sums_stride] - p, apart_o = sums[2 * (size_t)sums_stride] - o;
    const moment share = n_tile / (n + n_tile), both = n * share;
    pp += sums[3 * (size_t)sums_stride] + both * apart_p * apart_p;
    oo += sums[4 * (size_t)sums_stride] + both * apart_o * apart_o;
    po += sums[5 * (size_t)sums_stride] + both * apart_p * apart_o;
    p += share * apart_p;
    o += share * apart_o;
    n += n_tile;
  }
  // As pearson() of reduce.clh: what differs by no more than the rounding of the numbers themselves does not vary.
  const int defined = n >= 3 && pp > ROUNDING * ROUNDING * n * p * p && oo > ROUNDING * ROUNDING * n * o * o;
  const moment r = fmax(fmin(po / (sqrt(pp) * sqrt(oo)), (moment)1), (moment)-1);
  rho[(size_t)(first_library + library) * rho_stride + target_of[column_begin + c]] = defined ? (real)r : (real)NAN;
}
</%def>
