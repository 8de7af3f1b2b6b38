## A part of smap_map.cl.mako: the products of a tile on matrix units (clkernels/matrix_units.clh).
##
## The 32 work-items that are executed together multiply all rows of the tile by 8 targets of each vector. Meanwhile the targets
## of the next step are copied into local memory.
<%def name="multiply(unrolled, n_vectors)">
#pragma unroll ${unrolled}
      for (int s = 0; s < STEP; s += 8) {
%for m in range(rows_each // 2):
%for k in range(4):
        SPLIT(h${m}_${k}, h_row[(s + ${k // 2 * 4}) * H_STRIDE + ${16 * m + 8 * (k % 2)}]);
%endfor
%endfor
%for v in range(n_vectors):
        {
          SPLIT(y0, y[s * Y_STRIDE + ${v * target_lanes * width}]);
          SPLIT(y1, y[(s + 4) * Y_STRIDE + ${v * target_lanes * width}]);
%for of_h, of_y in (("low", "high"), ("high", "low"), ("high", "high")):
%for m in range(rows_each // 2):
          MATRIX_PRODUCT(p${2 * m}_${v}, p${2 * m + 1}_${v}, ${", ".join(f"h{m}_{k}_{of_h}" for k in range(4))}, y0_${of_y}, y1_${of_y});
%endfor
%endfor
        }
%endfor
      }
</%def>

## Begins to copy the library rows from row `from` on, and their targets, into one of the two places in local memory.
<%def name="stage(begin, place)">
    {
      const int begin = ${begin};
      local real* restrict to_states = staged_states + ${place} * (STEP * STATE);
      local real* restrict to_targets = staged_targets + ${place} * (STEP * Y_STRIDE);
      global const real* restrict next_states = states + (size_t)begin * STATE;
      global const real* restrict next = targets + (size_t)begin * target_stride;
      for (int i = lid; i < STEP * STATE / 4; i += WG)
        COPY_LATER(to_states + 4 * i, next_states + 4 * i, 16, begin + 4 * i / STATE < n_padded);
      if (column_begin % 4 == 0) {  // fours are aligned: target_stride is a multiple of 16
        for (int i = lid; i < STEP * TARGETS / 4; i += WG) {
          const int c = i % (TARGETS / 4) * 4, s = i / (TARGETS / 4);
          COPY_LATER(to_targets + s * Y_STRIDE + c, next + (s * target_stride + block + c), 16,
                     block + c < column_end && begin + s < n_rows);
        }
      } else {
        for (int i = lid; i < STEP * TARGETS; i += WG) {
          const int c = i % TARGETS, s = i / TARGETS;
          COPY_LATER(to_targets + s * Y_STRIDE + c, next + (s * target_stride + block + c), 4,
                     block + c < column_end && begin + s < n_rows);
        }
      }
    }
</%def>

## Adds p to the total where `often` holds, and begins anew. A matrix unit cuts off what a sum cannot hold, always towards zero,
## so that sums of thousands of rows would drift: without this rho of 3,000 steps erred by 5e-6, with it by 8e-7.
<%def name="empty(often)">
    if (${often} || from + STEP >= n_rows) {
%for r in range(rows_each):
%for v in range(vectors):
      total[${2 * (r * vectors + v)}] += p${r}_${v}.x;
      total[${2 * (r * vectors + v) + 1}] += p${r}_${v}.y;
      p${r}_${v} = 0;
%endfor
%endfor
    }
</%def>
<%def name="take_total()">
%for r in range(rows_each):
%for v in range(vectors):
  p${r}_${v} = (targetv)(total[${2 * (r * vectors + v)}], total[${2 * (r * vectors + v) + 1}]);
%endfor
%endfor
</%def>
