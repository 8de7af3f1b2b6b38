## Parts of smap_shared.cl.mako for matrix units (clkernels/matrix_units_double.clh), which multiply squared weights of 16 query
## rows by 8 products of regressors for four library rows at once.
##
##   32 work-items that are executed together: `sixteens` blocks of 16 rows, `eights` blocks of 8 sums; in each of them
##     work-item i: squared weights of rows i / 4 and i / 4 + 8 for library row i % 4
##                  product of regressors number i / 4 for library row i % 4
##                  sums i % 4 * 2 and i % 4 * 2 + 1 of rows i / 4 and i / 4 + 8
##
## Products of regressors are made by the work-items that multiply them: no other has use for them where the work-items of a group
## share the sums.

## Squared weights of the tile that begins at `start`, which lies in `tile_place`, go to `weight_place`, one of the places for them.
## No branch leaves a row out, so that a compiler has the weights of several library rows under way at once.
<%def name="weigh(start, tile_place, weight_place, at_once)">
    {
      real q[COORDINATES];
      _Pragma("unroll") for (int e = 0; e < COORDINATES; ++e) q[e] = of_rows[e * ROWS + lane];
      local const real* restrict near_here = near + ${tile_place} * NEAR_PLACE;
      local const int* restrict rows_here = near_rows + ${tile_place} * TILE;
      local const moment* restrict targets_here = values + ${tile_place} * VALUE_PLACE + VALUES - 1;
      local moment* restrict weights_here = weights + ${weight_place} * WEIGHT_PLACE + lane;
#pragma unroll ${at_once}
      for (int j = slice; j < TILE; j += SLICES) {
        SQUARED_DISTANCE(squared, local, near_here + j * NEAR_STRIDE);
        const int row = rows_here[j];
        real weight = SMAP_WEIGHT(EXACT_ROOT(squared), nearest, slope);
        COMPUTED(weight);
        const int excluded = TOO_NEAR(row) | (j >= j_end - ${start})${" | BEYOND(squared, row)" if limited else ""};
        const moment w = excluded ? 0 : weight, y = targets_here[j * VALUE_STRIDE], wy = w * y;
        sum_w += w;
        sum_wy += wy;
        sum_wyy = FUSED(wy, y, sum_wyy);
        weights_here[j * WEIGHT_STRIDE] = w * w;
      }
    }
</%def>

## Adds the products of the tile that lies in `tile_place`, with the squared weights in `weight_place`, to the sums. From one block
## of sixteen query rows to the next of the same work-item it is `stride` rows. A work-item reads the factors of the next four
## library rows while those of the last four are multiplied.
<%def name="multiply(tile_place, weight_place, sixteens, eights, stride)">
        local const moment* restrict v = values + ${tile_place} * VALUE_PLACE + lid % 4 * VALUE_STRIDE;
        local const moment* restrict w = weights + ${weight_place} * WEIGHT_PLACE + lid % 4 * WEIGHT_STRIDE + row0;
%for one in (0, 1):
        moment ${", ".join([f"w{one}_{i}" for i in range(2 * sixteens)] + [f"p{one}_{e}" for e in range(eights)])};
%endfor
        ${read(0, 0, sixteens, eights, stride)}
#pragma unroll 1
        for (int j = 0; j < TILE; j += 8, v += 8 * VALUE_STRIDE, w += 8 * WEIGHT_STRIDE) {
          ${read(1, 4, sixteens, eights, stride)}
          ${multiply_four(0, sixteens, eights)}
          if (j + 8 < TILE) {
            ${read(0, 8, sixteens, eights, stride)}
          }
          ${multiply_four(1, sixteens, eights)}
        }
</%def>

## Reads the factors of the four library rows that are `ahead` rows ahead.
<%def name="read(into, ahead, sixteens, eights, stride)">
%for e in range(eights):
          p${into}_${e} = v[${ahead} * VALUE_STRIDE + first${e}] * v[${ahead} * VALUE_STRIDE + second${e}];
%endfor
%for m in range(sixteens):
          w${into}_${2 * m} = w[${ahead} * WEIGHT_STRIDE + ${m * stride}];
          w${into}_${2 * m + 1} = w[${ahead} * WEIGHT_STRIDE + ${m * stride + 8}];
%endfor
</%def>

<%def name="multiply_four(which, sixteens, eights)">
%for m in range(sixteens):
%for e in range(eights):
          PRODUCT_OF_DOUBLES(${", ".join(f"s{2 * m + h}_{2 * e + i}" for h in (0, 1) for i in (0, 1))}, w${which}_${2 * m}, w${which}_${2 * m + 1}, p${which}_${e});
%endfor
%endfor
</%def>
