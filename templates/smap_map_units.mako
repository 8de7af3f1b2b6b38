## A part of smap_map.cl.mako: the kernel for matrix units (clkernels/matrix_units.clh), which multiply 16 rows of H by 8
## targets for 16 library rows at once.
##
## H is never stored: each work-item makes the very numbers of H that it gives to the units. A group waits once for `step`
## library rows, when their states and targets have come into local memory, so that some of its work-items make H while others
## multiply.
##
##   group = library x ROWS rows x TARGETS targets
##     32 work-items that are executed together: 16 rows, all targets of the group, by eights
##       work-item i: H of rows i / 4 and i / 4 + 8 for library rows i % 4 + 0, 4, 8, 12
##                    p of the same rows, targets i % 4 * 2 and i % 4 * 2 + 1 of each eight
##
## Two kernels, and what each fragment does
##
##   smap_arrange   smap_map_units_staging.mako    puts the targets into the order of the units, once for all libraries
##   smap_map       smap_map_units_h.mako          loads what H of a work-item's two rows is made of; makes H of a step
##                  smap_map_units_staging.mako    copies a step of states and targets to local memory, one step ahead
##                  smap_map_units_products.mako   multiplies H by the targets
##                  smap_map_units_sums.mako       reduces the tile of predictions to the sums that smap_score joins
##
## Local memory holds two steps, and when all are done the tile of predictions in their place:
##
##   memory    | states and targets of a step | of the next step | or: ROWS rows of predictions, `stride` numbers apart
##
## Flags
##   halves        In full precision the units multiply and add in double: predictions are rounded once, in the end. With less
##                 precision (`halves`) they multiply numbers of 11 bits, so each number is split into two halves (the type
##                 half), and three products are added. The exponents of halves reach from 2^-24 to 2^15. So each target is
##                 scaled by a power of two that takes its largest value to 2^13, and so is each row of H
##   rows_local    what H of the rows is made of lies in local memory, where E is too large for registers
##   gaps          a state or an observation may be missing, and does not count then
<%namespace name="staging" file="smap_map_units_staging.mako"/>
<%namespace name="of_h" file="smap_map_units_h.mako"/>
<%namespace name="products" file="smap_map_units_products.mako"/>
<%namespace name="of_tile" file="smap_map_units_sums.mako"/>
<%def name="kernels()">
<%
rows, columns, wg = row_lanes * rows_each, 8 * vectors, target_lanes * row_lanes
state = -(-(2 * E + gaps) // 4) * 4
staged = step * (state + columns)  # numbers of a step: the two halves of a target take as much as a float
stride = -(-(columns - 8) // 32) * 32 + 8  # of a row of predictions: work-items that store together meet in no bank
# When predictions are summed: columns at once, and parts of the rows. In full precision all rows are added up in their order, so
# that rho of a pair has the same bits whichever targets stand beside it.
at_once = -(-columns // -(-columns // wg))
parts = max(wg // at_once, 1) if halves else 1
%>
${of_h.of_row()}
%if halves:
// A power of two that takes numbers up to `largest` to 2^13 or above, but not to 2^14.
inline real to_halves(const real largest) { return ldexp((real)1, 13 - ilogb(fmin(fmax(largest, 1e-25f), 1e25f))); }

%endif
${staging.arrange()}
// As smap_map for any device. arranged, scales: from smap_arrange, for all blocks of columns.
kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void smap_map(global const real* restrict states, global const real* restrict columns, global const real* restrict fits,
              const int n_rows, const int n_padded, const int first_tile, const int n_tiles, const int radius,
              global const real* restrict targets, const int target_stride, const int first, const int column_begin,
              const int column_end, global const uint* restrict arranged,
              ${"global const real* restrict scales, " if halves else ""}global real* restrict sums, const int sums_stride) {
  // ---- Memory of this work-group and this work-item ----
  local real memory[${max(2 * staged, rows * stride)}] __attribute__((aligned(64)));
%if parts > 1:
  local real shared[3 * ${parts} * TARGETS];
%endif
%if rows_local:
  local real of_rows[(3 * E + 3) * ROWS];
%endif
  const int library = get_group_id(2), tile = first_tile + get_group_id(1), row0 = tile * ROWS;
  const int block = get_group_id(0) * TARGETS, n_eights = get_num_groups(0) * ${vectors};
  const int lid = get_local_id(0), together = lid / 32, lane = lid % 32;
  const int near_row = together * 16 + lane / 4;  // of the tile, and 8 rows further on
  states += (size_t)library * n_padded * STATE;
  columns += (size_t)library * n_padded * COLUMNS;
  fits += (size_t)library * n_padded * (E + 3);
  targets += (size_t)first * target_stride + column_begin + block;
  global const uint4* restrict arranged_here = (global const uint4*)arranged + (size_t)get_group_id(0) * 4 * TARGETS;
  ${products.begin()}

  // ---- What H of two rows is made of ----
  ${of_h.load_rows()}
  const int any_row = row0 + together * 16 < n_rows;  // of the 32 work-items

  // ---- A step of library rows after another: H, times the targets ----
  ${staging.copy_step("0", "0")}
  for (int from = 0; from < n_rows; from += STEP) {
    COPIES_DONE();
    barrier(CLK_LOCAL_MEM_FENCE);
    // What the next step needs is copied meanwhile, to where the last one was.
    const int turn = from / STEP % 2;
    if (from + STEP < n_rows) { ${staging.copy_step("from + STEP", "(turn ^ 1)")} }
    local const real* restrict states_here = memory + turn * ${staged} + lane % 4 * STATE;
    local const uint4* restrict y = (local const uint4*)(memory + turn * ${staged} + STEP * STATE) + lane;
    if (any_row) {
#pragma unroll 1
      for (int k = 0; k < STEP / 16; ++k, states_here += 16 * STATE, y += 4 * TARGETS) {
        real h0[4], h1[4];
        ${of_h.numbers()}
        ${products.add()}
      }
%if halves:
      ${products.add_to_total()}
%endif
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);

  // ---- To local memory, and from there to sums ----
  ${of_tile.store(stride)}
  barrier(CLK_LOCAL_MEM_FENCE);
  ${of_tile.sums(stride, at_once, parts)}
}
</%def>
