## A part of smap_map_units.mako: the numbers of H that a work-item gives to the matrix units.
##
##   H_ts = weight of library row s around row t, times (1, z_s - centre_t) . g_t
##
## A work-item makes H of two rows of the tile, t0 = near_row and t1 eight rows further on, for four library rows of each 16:
## h0[j], h1[j] are those of library row 4 j + lane % 4. The distance, the weight and the inner product are those of
## clkernels/smap_map.clh.
##
## What H of a row is made of are 3 E + 3 numbers, in this order:
##
##   number   0 .. E - 1      its coordinates
##            E .. 2 E - 1    the coordinates of the centre
##            2 E .. 3 E      g, the constant first
##            3 E + 1         the distance of the nearest row
##            3 E + 2         the rate of the weights
##
## They wait in registers or, with rows_local, in of_rows[number][row of the tile]: registers that hold p do not hold them for
## two rows, too, where E is large.
##
## With halves each row of H is scaled by a power of two (factor0, factor1) that takes the root of (1, z_t) . g_t to 2^13. No
## |H_ts| passes this root: H_ts is an inner product of the state's vector with weight, whose own share in the fit is 1 at most,
## and of (1, z_t), and weights are at most 1.
<%def name="of_row()">
// Number i of what H needs of row t; `factor` multiplies g, so that H has room in the exponents of halves.
#define OF_ROW(i, t, factor)                              \
  ((i) < 2 * E ? columns[(size_t)(i) * n_padded + (t)]    \
               : fits[(size_t)((i) - 2 * E) * n_padded + (t)] * ((i) <= 3 * E ? (factor) : (real)1))
</%def>

## Loads them for both rows of a work-item. upper0 and upper1 are the last rows that are too near to count.
<%def name="load_rows()">
%for r in range(2):
  const int t${r} = min(row0 + near_row + ${8 * r}, n_padded - 1), upper${r} = row0 + near_row + ${8 * r} + radius;
%if halves:
  ${scale(r)}
%else:
  const real factor${r} = 1;
%endif
%if rows_local:
  for (int i = lane % 4; i < 3 * E + 3; i += 4)
    of_rows[i * ROWS + near_row + ${8 * r}] = OF_ROW(i, t${r}, factor${r});
%else:
  real q${r}[E], centre${r}[E], g${r}[E + 1];
  _Pragma("unroll") for (int e = 0; e < E; ++e)
    q${r}[e] = OF_ROW(e, t${r}, factor${r}), centre${r}[e] = OF_ROW(E + e, t${r}, factor${r});
  _Pragma("unroll") for (int e = 0; e <= E; ++e) g${r}[e] = OF_ROW(2 * E + e, t${r}, factor${r});
  const real nearest${r} = OF_ROW(3 * E + 1, t${r}, factor${r}), rate${r} = OF_ROW(3 * E + 2, t${r}, factor${r});
%endif
%endfor
</%def>
<%def name="scale(r)">
  real bound${r} = fabs(fits[t${r}]);
  for (int e = 0; e < E; ++e)
    bound${r} += fabs(fits[(size_t)(e + 1) * n_padded + t${r}] *
                      (states[(size_t)t${r} * STATE + E + e] - columns[(size_t)(E + e) * n_padded + t${r}]));
  const real factor${r} = to_halves(sqrt(bound${r}));
</%def>

## Makes H of both rows for the library rows from + 16 k + lane % 4 + 0, 4, 8, 12, whose states lie at states_here.
<%def name="numbers()">
${numbers_from_local() if rows_local else numbers_from_registers()}
        // Too near, or behind the last row: looked at only where some of 16 times 16 are.
        const int here = from + 16 * k, middle = row0 + together * 16;
        if ((here + 15 >= middle - radius && here <= middle + 15 + radius) || here + 16 > n_rows) {
          _Pragma("unroll") for (int j = 0; j < 4; ++j) {
            const int s = here + lane % 4 + 4 * j;
%for r in range(2):
            if (s >= n_rows || (uint)(upper${r} - s) <= 2u * radius) h${r}[j] = 0;
%endfor
          }
        }
</%def>

## From registers: one library row after another, by the macros of clkernels/smap_map.clh.
<%def name="numbers_from_registers()">
        _Pragma("unroll") for (int j = 0; j < 4; ++j) {
          READ_STATE(local, states_here + 4 * j * STATE);
%for r in range(2):
          {
            const real *q = q${r}, *centre = centre${r}, *g = g${r}, nearest = nearest${r}, rate = rate${r};
            STATE_DISTANCE(d);
            PREDICTS_WITH(h, STATE_WEIGHT(d), 0);  // rows that are too near are left out below
            h${r}[j] = h;
          }
%endfor
        }
</%def>

## From local memory: one coordinate after another, so that what is read of the two rows serves all four library rows. The
## operations are those of the macros, in the same order.
<%def name="numbers_from_local()">
        local const real* restrict own = of_rows + near_row;
        real squared[8];
        _Pragma("unroll") for (int j = 0; j < 4; ++j) {
          h0[j] = own[2 * E * ROWS], h1[j] = own[2 * E * ROWS + 8];
          squared[j] = squared[4 + j] = 0;
        }
        _Pragma("unroll 2") for (int e = 0; e < E; ++e) {
%for r in range(2):
          const real q${r} = own[e * ROWS + ${8 * r}], centre${r} = own[(E + e) * ROWS + ${8 * r}], g${r} = own[(2 * E + 1 + e) * ROWS + ${8 * r}];
%endfor
          _Pragma("unroll") for (int j = 0; j < 4; ++j) {
            const real x = states_here[4 * j * STATE + e], z = states_here[4 * j * STATE + E + e];
%for r in range(2):
            squared[${4 * r} + j] = FUSED(q${r} - x, q${r} - x, squared[${4 * r} + j]);
            h${r}[j] = FUSED(g${r}, z - centre${r}, h${r}[j]);
%endfor
          }
        }
        _Pragma("unroll") for (int j = 0; j < 4; ++j) {
%for r in range(2):
          {
            const real nearest = own[(3 * E + 1) * ROWS + ${8 * r}], rate = own[(3 * E + 2) * ROWS + ${8 * r}];
            h${r}[j] *= STATE_WEIGHT(ROOT_OF_DISTANCE(squared[${4 * r} + j]));
          }
%if gaps:
          h${r}[j] = states_here[4 * j * STATE + 2 * E] > 0 ? h${r}[j] : 0;
%endif
%endfor
        }
</%def>
