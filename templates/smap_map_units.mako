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
## In full precision the units multiply and add in double: predictions are rounded once, in the end. With less precision
## (`halves`) they multiply numbers of 11 bits, so each number is split into two halves (the type half), and three products are
## added. The exponents of halves reach from 2^-24 to 2^15. So each target is scaled by a power of two that takes its largest
## value to 2^13, and each row of H by one that takes the root of (1, z_t) . g_t there, which no |H_ts| passes: H_ts is an inner
## product of the state's vector with weight, whose own share in the fit is 1 at most, and of (1, z_t), and weights are at most 1.
##
## smap_arrange puts the targets once for all libraries into the order in which work-items need them, and splits them.
<%def name="kernels()">
<%
products = vectors  # of eight targets each, side by side
state = -(-(2 * E + gaps) // 4) * 4
wg = target_lanes * row_lanes
rows, columns = wg // 2, 8 * products
stride = -(-(columns - 8) // 32) * 32 + 8  # of a row of predictions: work-items that store together meet in no bank
staged = step * (state + columns)  # numbers of a step: the two halves of a target take as much as a float
# When predictions are summed: columns at once, parts of the rows, and rows of a part. In full precision all rows are added up in
# their order, so that rho of a pair has the same bits whichever targets stand beside it.
at_once = -(-columns // -(-columns // wg))
parts = max(wg // at_once, 1) if halves else 1
summed = -(-rows // parts)
%>
// Number i of what H needs of row t: its E coordinates, the E of the centre, the E + 1 of g (scaled, so that H has room in the
// exponents of halves), the distance of the nearest row, and the rate of the weights.
#define OF_ROW(i, t, factor)                              \
  ((i) < 2 * E ? columns[(size_t)(i) * n_padded + (t)]    \
               : fits[(size_t)((i) - 2 * E) * n_padded + (t)] * ((i) <= 3 * E ? (factor) : (real)1))

%if halves:
// A power of two that takes numbers up to `largest` to 2^13 or above, but not to 2^14.
inline real to_halves(const real largest) { return ldexp((real)1, 13 - ilogb(fmin(fmax(largest, 1e-25f), 1e25f))); }

%endif
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

// As smap_map. arranged, scales: from smap_arrange, for all blocks of columns.
kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void smap_map(global const real* restrict states, global const real* restrict columns, global const real* restrict fits,
              const int n_rows, const int n_padded, const int first_tile, const int n_tiles, const int radius,
              global const real* restrict targets, const int target_stride, const int first, const int column_begin,
              const int column_end, global const uint* restrict arranged,
              ${"global const real* restrict scales, " if halves else ""}global real* restrict sums, const int sums_stride) {
  // What is staged, and in the end the tile of predictions.
  local real memory[${max(2 * staged, rows * stride)}] __attribute__((aligned(64)));
%if parts > 1:
  local real shared[3 * ${parts} * TARGETS];
%endif
%if rows_local:
  local real of_rows[(3 * E + 3) * ROWS];
%endif
  const int library = get_group_id(2), tile = first_tile + get_group_id(1), row0 = tile * ROWS;
  const int block = get_group_id(0) * TARGETS, n_eights = get_num_groups(0) * ${products};
  const int lid = get_local_id(0), together = lid / 32, lane = lid % 32;
  const int near_row = together * 16 + lane / 4;  // of the tile, and 8 rows further on
  states += (size_t)library * n_padded * STATE;
  columns += (size_t)library * n_padded * COLUMNS;
  fits += (size_t)library * n_padded * (E + 3);
  targets += (size_t)first * target_stride + column_begin + block;
  global const uint4* restrict arranged_here = (global const uint4*)arranged + (size_t)get_group_id(0) * 4 * TARGETS;
  ${"real" if halves else "double"} ${", ".join(f"p{v}_{i} = 0" for v in range(products) for i in range(4))};  // two targets of either row
%if halves:
  volatile real total[${4 * products}];  // not in registers, of which p takes many
  for (int i = 0; i < ${4 * products}; ++i) total[i] = 0;
%endif

  // ---- What H of two rows is made of ----
%for r in range(2):
  const int t${r} = min(row0 + near_row + ${8 * r}, n_padded - 1), upper${r} = row0 + near_row + ${8 * r} + radius;
%if halves:
  real bound${r} = fabs(fits[t${r}]);
  for (int e = 0; e < E; ++e)
    bound${r} += fabs(fits[(size_t)(e + 1) * n_padded + t${r}] *
                      (states[(size_t)t${r} * STATE + E + e] - columns[(size_t)(E + e) * n_padded + t${r}]));
  const real factor${r} = to_halves(sqrt(bound${r}));
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
  const int any_row = row0 + together * 16 < n_rows;  // of the 32 work-items

  ${stage("0", "0")}
  for (int from = 0; from < n_rows; from += STEP) {
    COPIES_DONE();
    barrier(CLK_LOCAL_MEM_FENCE);
    // What the next step needs is copied meanwhile, to where the last one was.
    const int turn = from / STEP % 2;
    if (from + STEP < n_rows) { ${stage("from + STEP", "(turn ^ 1)")} }
    local const real* restrict states_here = memory + turn * ${staged} + lane % 4 * STATE;
    local const uint4* restrict y = (local const uint4*)(memory + turn * ${staged} + STEP * STATE) + lane;
    if (any_row) {
#pragma unroll 1
      for (int k = 0; k < STEP / 16; ++k, states_here += 16 * STATE, y += 4 * TARGETS) {
        real h0[4], h1[4];
        ${numbers_of_h()}
%if halves:
        uint high0, high1, high2, high3, low0, low1, low2, low3;
        SPLIT_IN_HALVES(high0, low0, h0[0], h0[1]);
        SPLIT_IN_HALVES(high1, low1, h1[0], h1[1]);
        SPLIT_IN_HALVES(high2, low2, h0[2], h0[3]);
        SPLIT_IN_HALVES(high3, low3, h1[2], h1[3]);
%endif
%for v0 in range(0, products, 4):
        {
<% some = range(v0, min(v0 + 4, products)) %>
%for v in some:
          const uint4 y${v} = y[${32 * v}];
%endfor
%if not halves:
%for v in some:
          PRODUCT_IN_DOUBLE(p${v}_0, p${v}_1, p${v}_2, p${v}_3, h0, h1, as_float4(y${v}));
%endfor
%else:
%for of_h, of_y in (("low", "xy"), ("high", "zw"), ("high", "xy")):
%for v in some:
          PRODUCT_OF_HALVES(p${v}_0, p${v}_1, p${v}_2, p${v}_3, ${", ".join(f"{of_h}{i}" for i in range(4))}, y${v}.${of_y[0]}, y${v}.${of_y[1]});
%endfor
%endfor
%endif
        }
%endfor
      }
%if halves:
      // A matrix unit cuts off what a sum cannot hold, always towards zero, so that sums of thousands of rows would drift.
      if (from / STEP % ${512 // step} == ${512 // step - 1}) {
%for v in range(products):
        total[${4 * v}] += p${v}_0;
        total[${4 * v + 1}] += p${v}_1;
        total[${4 * v + 2}] += p${v}_2;
        total[${4 * v + 3}] += p${v}_3;
        p${v}_0 = p${v}_1 = p${v}_2 = p${v}_3 = 0;
%endfor
      }
%endif
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);

  // ---- To local memory, and from there to sums: a work-item takes a column, and a part of the rows ----
  {
    local real* restrict mine = memory + near_row * ${stride} + lane % 4 * 2;
%if halves:
    const real back0 = 1 / factor0, back1 = 1 / factor1;
%endif
%for v in range(products):
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
  barrier(CLK_LOCAL_MEM_FENCE);
  const int stop = min(ROWS, n_rows - row0);
  sums += ((size_t)library * n_tiles + tile) * PIECES * sums_stride + block;
  for (int begin = 0; begin < TARGETS; begin += ${at_once}) {
    const int column = begin + lid % ${at_once}, part = lid / ${at_once};
    const int mine = part < ${parts} && column < TARGETS && column_begin + block + column < column_end;
%if parts > 1:
    local real* restrict own = shared + part * TARGETS + column;
%endif
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
    real n = 0, mean_p = 0, mean_o = 0, pp = 0, oo = 0, po = 0;
%for names in (("n", "mean_p", "mean_o"), ("pp", "oo", "po")):
    if (mine) {
      _Pragma("unroll") for (int i = 0; i < ${summed}; ++i) {
        if (fabs(observed[i]) >= PRESENT) continue;
        const real p = memory[(part + i * ${parts}) * ${stride} + column], o = observed[i];
%if names[0] == "n":
        n += 1;
        mean_p += p;
        mean_o += o;
%else:
        const real from_p = p - mean_p, from_o = o - mean_o;
        pp = FUSED(from_p, from_p, pp);
        oo = FUSED(from_o, from_o, oo);
        po = FUSED(from_p, from_o, po);
%endif
      }
%if parts > 1:
%for i, name in enumerate(names):
      own[${i * parts * columns}] = ${name};
%endfor
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (mine) {
%for i, name in enumerate(names):
      ${name} = 0;
      for (int k = 0; k < ${parts}; ++k) ${name} += shared[(${i * parts} + k) * TARGETS + column];
%endfor
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
}
</%def>

## Begins to copy the library rows from row `begin` on, and their targets, into one of the two places in local memory.
<%def name="stage(begin, place)">
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

## H of rows t0 and t1 for four library rows: from registers, or from local memory where registers do not hold two rows.
<%def name="numbers_of_h()">
%if rows_local:
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
%else:
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
%endif
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
