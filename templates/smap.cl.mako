## S-map (Sugihara, Phil. Trans. R. Soc. A 348, 477, 1994) fits a linear regression for each query row, in which library rows
## weigh more the nearer they are. This kernel computes the moments of these regressions: sums over all library rows that may
## be neighbours, for each query row and theta, of
##
##   W^2 v v'  and  W^2 v y  with v = (1, z)     from which smap_solve has the fit
##   W, W y, W y^2                               for the variance
##
##   W    SMAP_WEIGHT (weights.clh): exp(-theta (d - d_nearest) / d_mean), with d_nearest and d_mean from smap_scale
##   z    the regressors in a basis in which the library is white (engines/smap_device.py), minus those of the query. They are
##        centred because a neighbourhood is small compared with its distance from the origin: sums of products that are not
##        centred would lose the square of this ratio in precision
##   y    the target
##
## Weights are of type `real`. Products and sums are double, as normal equations need it.
##
## A moment of K = 3 regressors (constant, z1, z2) and the target y has these entries, column by column of the triangle:
##
##            1    z1   z2   y
##     1      0    1    3    6          entries 0 to 5: W^2 v v';  6 to 8: W^2 v y;  then W, W y, W y^2
##     z1          2    4    7
##     z2               5    8
##
##   tile = 0   Each theta has a sweep over the library of its own, with all sums in registers. This suits GPUs.
##   tile > 0   The distances of a tile of library rows serve all thetas, and `chunk` sums of a theta are taken at a time. This
##              suits processors.
##
## Types and names in capitals that are not defined here come from numeric.clh (vectors, sentinels), smap.clh (near rows),
## moment.clh (sums in double) and weights.clh (weights).
## ---- parameters (python -m pyedmcl.kernels.describe --write) ----
## Given by the problem:
##   coordinates  coordinates of a state
##   regressors   regressors of a fit, the intercept among them
##   limited      a fit takes the nearest rows only, a number of them
##   dtype        number type of data and distances: float32 or float64
## Tuned for speed, never changing what is computed (values; default of a processor, of a GPU):
##   lanes        query rows of a work-item; a SIMD register on CPUs (1 4 8 16; 16, 1)
##   wg           work-items of a group (1 32 64 128 256; 1, 64)
##   tile         library rows whose distances serve all thetas (0 32 64 128; 64, 0)
##   wide         lanes whose sums of doubles are taken together (1 4 8; 8, 1)
##   chunk        sums that are kept in registers at a time (8 12 16 20 24; 16, 24)
##   share_from   regressors from which sums are shared (4 6 8 9 10 12 48; 48, 9)
##   parts        parts of the library, swept side by side (1 2 4 8 16 32; 1, 16)
## ---- end of parameters ----
<%
K = regressors
gram = [(a, b) for b in range(K) for a in range(b + 1)]
entries = gram + [(a, K) for a in range(K)]
place = {pair: i for i, pair in enumerate(entries)}
total = len(entries) + 3
half = min(lanes, wide)

# Pairs in the order of the rows of the triangle: the sums of a row share the factor W^2 v_a.
ordered = [(a, b) for a in range(K) for b in range(a, K + 1)]
chunks = [ordered[i:i + chunk] for i in range(0, len(ordered), chunk)] if tile else [ordered]
# With several chunks, the centred values of a tile are written to memory, so that each difference is taken only once.
written = len(chunks) > 1
%>
#define COORDINATES ${coordinates}
#define WG ${wg}
#define TILE ${tile}
#define HALF ${half}
#define ENTRIES ${total}
#define ROWS (WG * LANES)
#include "smap.clh"
#include "moment.clh"

## Adds a library row, of weight w, to the sums of the given entries: s<number of the entry>.
<%def name="add(pairs, with_weights, values)">
        const momentv w2 = w * w;
%for b in sorted({c for pair in pairs for c in pair if 0 < c < K}):
%if written:
        const momentv v${b} = LOAD_MOMENTV(centred + (i * ${K - 1} + ${b - 1}) * HALF);
%else:
        const momentv v${b} = (momentv)(${values}[${b - 1}]) - z${b};
%endif
%endfor
        const momentv v${K} = (momentv)(${values}[${K - 1}]);
%for a in sorted({a for a, _ in pairs} - {0}):
        const momentv t${a} = w2 * v${a};
%endfor
%for a, b in pairs:
        s${place[a, b]} = ${f"FUSED({f't{a}' if a else 'w2'}, v{b}, s{place[a, b]})" if b else "s0 + w2"};
%endfor
%if with_weights:
        const momentv wy = w * v${K};
        s${total - 3} += w;
        s${total - 2} += wy;
        s${total - 1} = FUSED(wy, v${K}, s${total - 1});
%endif
</%def>

// query, query_rows, library, library_rows: as smap_scale has them; regressors: [n_library][${K}], z and then the target;
// query_z: [${K - 1}][query_stride].
// nearest_of, rate_of, squared_of, row_of: what smap_scale has found for each query row. A task is a theta, a part of the
// library and a tile of query rows; where all thetas share a sweep, it is a part and a tile. A launch computes n_tiles tiles
// from first_tile on, for each of n_parts parts of the library. moments: [slot][theta][ENTRIES][ROWS]. The first n_slots slots
// are those of all tiles, for the first part of the library; behind them each further part has n_tiles, those of the launch.
kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void smap(global const real* restrict query, global const whole* restrict query_rows, const int query_stride,
          global const real* restrict library, global const int* restrict library_rows,
          global const moment* restrict regressors, global const moment* restrict query_z, const int n_library,
          const int radius,
          global const real* restrict nearest_of, global const real* restrict rate_of,
          global const real* restrict squared_of, global const whole* restrict row_of, global const real* restrict thetas,
          const int n_thetas, const int n_parts, const int first_tile, const int n_tiles, const int n_slots, const int task_begin,
          global moment* restrict moments) {
  int task = task_begin + get_group_id(0);
%if not tile:
  const int theta = task / (n_parts * n_tiles);
  task -= theta * n_parts * n_tiles;
%endif
  const int part = task / n_tiles, tile = task - part * n_tiles;
  const int lane0 = get_local_id(0) * LANES, t0 = (first_tile + tile) * ROWS + lane0;
  const int j_begin = (int)((long)n_library * part / n_parts), j_end = (int)((long)n_library * (part + 1) / n_parts);
  const size_t slot = part == 0 ? first_tile + tile : n_slots + (size_t)(part - 1) * n_tiles + tile;
  global moment* restrict out = moments + slot * n_thetas * ENTRIES * ROWS + lane0;

  // ---- The query rows: coordinates, and the scales of their weights ----
  realv q[COORDINATES];
  _Pragma("unroll") for (int e = 0; e < COORDINATES; ++e) q[e] = LOADV(query + (size_t)e * query_stride + t0);
  const rowv upper = LOADV(query_rows + t0);
  const realv nearest = LOADV(nearest_of + t0), rate = LOADV(rate_of + t0);
%if limited:
  const realv limit_squared = LOADV(squared_of + t0);
  const rowv limit_row = LOADV(row_of + t0);
%endif
%if not tile:
  const realv slope = rate * thetas[theta];
%for b in range(1, K):
  const momentv z${b} = query_z[(size_t)${b - 1} * query_stride + t0];
%endfor

  // ---- One theta: all sums in registers ----
  momentv ${", ".join(f"s{i} = 0" for i in range(total))};
  for (int j = j_begin; j < j_end; ++j) {
    SQUARED_DISTANCE(squared, global, library + (size_t)j * NEAR_STRIDE);
    const int row = library_rows[j];
    const rowv excluded = TOO_NEAR(row)${" || BEYOND(squared, row)" if limited else ""};
    const momentv w = CONVERT_MOMENTV(CHOOSE(SMAP_WEIGHT(sqrt(squared), nearest, slope), (realv)(0), excluded));
    global const moment* restrict values = regressors + (size_t)j * ${K};
    {
      ${add(ordered, True, "values")}
    }
  }
  out += (size_t)theta * ENTRIES * ROWS;
%for i in range(total):
  STORE_MOMENTV(s${i}, out + (size_t)${i} * ROWS);
%endfor
%else:

  // ---- All thetas: the distances of a tile, -1 for an excluded row, then each theta's weights and sums ----
  real distance[TILE * LANES] __attribute__((aligned(64)));
  moment weight[TILE * LANES] __attribute__((aligned(64)));
  for (int jt = j_begin; jt < j_end; jt += TILE) {
    const int n = min(TILE, j_end - jt);
    for (int i = 0; i < n; ++i) {
      SQUARED_DISTANCE(squared, global, library + (size_t)(jt + i) * NEAR_STRIDE);
      const int row = library_rows[jt + i];
      const rowv excluded = TOO_NEAR(row)${" || BEYOND(squared, row)" if limited else ""};
      STOREV(CHOOSE(sqrt(squared), (realv)(-1), excluded), distance + i * LANES);
    }
    for (int theta = 0; theta < n_thetas; ++theta) {
      const realv slope = rate * thetas[theta];
      for (int i = 0; i < n; ++i) {
        const realv d = LOADV(distance + i * LANES);
        STORE_WEIGHTS(CHOOSE(SMAP_WEIGHT(d, nearest, slope), (realv)(0), d < (realv)(0)), weight + i * LANES);
      }
      for (int h = 0; h < LANES; h += HALF) {
        global moment* restrict sums = out + (size_t)theta * ENTRIES * ROWS + h;
%for b in range(1, K):
        const momentv z${b} = LOAD_MOMENTV(query_z + (size_t)${b - 1} * query_stride + t0 + h);
%endfor
%if written:
        moment centred[TILE * ${K - 1} * HALF] __attribute__((aligned(64)));
        for (int i = 0; i < n; ++i) {
          global const moment* restrict values = regressors + (size_t)(jt + i) * ${K};
%for b in range(1, K):
          STORE_MOMENTV((momentv)(values[${b - 1}]) - z${b}, centred + (i * ${K - 1} + ${b - 1}) * HALF);
%endfor
        }
%endif
%for number, pairs in enumerate(chunks):
<%
names = [place[pair] for pair in pairs] + ([total - 3, total - 2, total - 1] if number == 0 else [])
%>
        {
%for i in names:
          momentv s${i} = jt == j_begin ? (momentv)(0) : LOAD_MOMENTV(sums + (size_t)${i} * ROWS);
%endfor
          for (int i = 0; i < n; ++i) {
            const momentv w = LOAD_MOMENTV(weight + i * LANES + h);
            global const moment* restrict values = regressors + (size_t)(jt + i) * ${K};
            ${add(pairs, number == 0, "values")}
          }
%for i in names:
          STORE_MOMENTV(s${i}, sums + (size_t)${i} * ROWS);
%endfor
        }
%endfor
      }
    }
  }
%endif
}
