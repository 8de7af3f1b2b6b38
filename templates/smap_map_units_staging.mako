## A part of smap_map_units.mako: targets in the order in which work-items give them to the matrix units, and how a step of
## library rows comes into local memory.
##
## A product takes eight targets of 16 library rows, of which each of the 32 work-items that are executed together gives four
## numbers. These are one uint4, as floats or, with halves, split into two halves: the 32 work-items read 512 bytes in a row.
##
##   arranged   [16 library rows: k][eight targets][work-item i of 32]
##              work-item i has column i / 4 of the eight, and library rows 16 k + i % 4 + 0, 4, 8, 12: y0 .. y3
##              in full      y0 | y1 | y2 | y3
##              in halves    high halves of y0, y1 | of y2, y3 | low halves of y0, y1 | of y2, y3
##
## Rows behind the last one are 0, and so are gaps: H of a row times 0 adds nothing.

## ---- The kernel that arranges targets ----
<%def name="arrange()">
// A group arranges the eight targets get_group_id(0), for all libraries, as the units take them.
%if halves:
// It finds the largest value of each, scales by the power of two that follows, and splits the values into halves. scales gets
// the inverse factors.
%endif
kernel __attribute__((reqd_work_group_size(256, 1, 1)))
void smap_arrange(global const real* restrict targets, const int target_stride, const int first, const int n_rows,
                  const int column_begin, const int column_end,
                  global uint* restrict arranged${", global real* restrict scales" if halves else ""}) {
  const int lid = get_local_id(0), eight = get_group_id(0), n_eights = get_num_groups(0);
  targets += (size_t)first * target_stride + column_begin + eight * 8;
  const int left = column_end - column_begin - eight * 8, column = lid % 32 / 4;
%if halves:
  ${scale()}
%endif
  const int n_sixteens = (n_rows + STEP - 1) / STEP * (STEP / 16);
  for (int k = lid / 32; k < n_sixteens; k += 8) {
    real y[4];
    for (int j = 0; j < 4; ++j) {
      const int s = k * 16 + lid % 4 + 4 * j;
      y[j] = s < n_rows && column < left ? targets[(size_t)s * target_stride + column] : 0;
      y[j] = fabs(y[j]) < PRESENT ? y[j]${" * factor" if halves else ""} : 0;
    }
%if halves:
    uint4 four;
    SPLIT_IN_HALVES(four.x, four.z, y[0], y[1]);
    SPLIT_IN_HALVES(four.y, four.w, y[2], y[3]);
%else:
    const uint4 four = as_uint4((float4)(y[0], y[1], y[2], y[3]));
%endif
    ((global uint4*)arranged)[((size_t)k * n_eights + eight) * 32 + lid % 32] = four;
  }
}
</%def>

## Finds the largest value of each of the eight targets, 32 work-items a target, and what a work-item multiplies its own by.
<%def name="scale()">
  local real shared[256];
  real largest = 0;
  if (lid % 8 < left)
#pragma unroll 4
    for (int s = lid / 8; s < n_rows; s += 32) {
      const real size = fabs(targets[(size_t)s * target_stride + lid % 8]);
      largest = size < PRESENT ? fmax(largest, size) : largest;
    }
  shared[lid] = largest;
  for (int apart = 128; apart >= 8; apart /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lid < apart) shared[lid] = fmax(shared[lid], shared[lid + apart]);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (lid < 8) scales[eight * 8 + lid] = 1 / to_halves(shared[lid]);
  const real factor = to_halves(shared[column]);
</%def>

## ---- A step in local memory ----
##
## Begins to copy the library rows from row `begin` on, and their targets, into one of the two places in local memory.
##
##   place   | STEP states of STATE numbers | 16 library rows of all eights of the group | the next 16 | ..
<%def name="copy_step(begin, place)">
    {
      const int begin = ${begin};
      local real* restrict to = memory + ${place} * (STEP * (STATE + TARGETS));
      global const real* restrict next = states + (size_t)begin * STATE;
      for (int i = lid; i < STEP * STATE / 4; i += WG) COPY_LATER(to + 4 * i, next + 4 * i, begin + 4 * i / STATE < n_padded);
      to += STEP * STATE;
%for k in range(step // 16):
      {
        global const uint4* restrict next_y = arranged_here + (size_t)(begin / 16 + ${k}) * n_eights * 32;
        for (int i = lid; i < 4 * TARGETS; i += WG) COPY_LATER(to + 4 * (${k} * 4 * TARGETS + i), next_y + i, 1);
      }
%endfor
    }
</%def>
