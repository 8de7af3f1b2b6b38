"""What the kernel smap_shared gives to matrix units: its fragment by itself, against NumPy.

The instructions of matrix units are written in C here, as far as the fragment meets them;
tests/engines/test_smap_units.py runs the whole kernel like this.
"""

from __future__ import annotations

import numpy as np
import pytest
from fragment_helpers import run_fragment
from smap_helpers import squared_distances

SHARED_HEAD = """
<%namespace name="units" file="smap_shared_units.mako"/>
#define COORDINATES ${coordinates}
#define TILE ${tile}
#define ROWS 8
#define SLICES 2
#define VALUES ${regressors + 1}
#define VALUE_STRIDE ${regressors + 2}
#define VALUE_PLACE (TILE * VALUE_STRIDE)
#define NEAR_PLACE (TILE * NEAR_STRIDE)
#define WEIGHT_STRIDE 36
#define WEIGHT_PLACE (TILE * WEIGHT_STRIDE)
#include "smap.clh"
#include "moment.clh"
#define EXACT_ROOT(x) sqrt(x)
#define COMPUTED(x)
#define PRODUCT_OF_DOUBLES(c0, c1, d0, d1, a0, a1, b0) \\
  c0 += a0 * b0, c1 += 2 * a0 * b0, d0 += a1 * b0, d1 += 2 * a1 * b0
"""


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_tile_of_library_rows_is_weighed(device, dtype, limited):
    """Of the second of two places; the last rows of the tile lie behind those of this part of the library."""
    E, K, tile, start, j_end, radius, slope = 5, 3, 16, 32, 45, 2, 0.7
    whole, rng = np.int32 if dtype == "float32" else np.int64, np.random.default_rng(1)
    queries, states = rng.standard_normal((8, E)).astype(dtype), rng.standard_normal((tile, E)).astype(dtype)
    values = rng.standard_normal((tile, K + 1))
    query_rows, library_rows = np.arange(38, 46), start + rng.permutation(tile)
    d = np.sqrt(squared_distances(queries, states).astype(float))
    limit = np.argsort(d, axis=1)[:, 8]
    body = f"""
  const int lid = get_local_id(0), lane = lid % ROWS, slice = lid / ROWS, j_end = {j_end}, radius = {radius};
  local real near[2 * NEAR_PLACE] __attribute__((aligned(32)));  // which is read by fours
  local real of_rows[COORDINATES * ROWS];
  local int near_rows[2 * TILE];
  local moment values[2 * VALUE_PLACE], weights[2 * WEIGHT_PLACE];
  for (int k = lid; k < NEAR_PLACE; k += 16) near[NEAR_PLACE + k] = states[k];
  for (int k = lid; k < TILE; k += 16) near_rows[TILE + k] = library_rows[k];
  for (int k = lid; k < TILE * VALUES; k += 16) values[VALUE_PLACE + k / VALUES * VALUE_STRIDE + k % VALUES] = given[k];
  for (int k = lid; k < COORDINATES * ROWS; k += 16) of_rows[k] = queries[k];
  barrier(CLK_LOCAL_MEM_FENCE);
  const rowv upper = query_rows[lane] + radius, limit_row = limit_rows[lane];
  const realv nearest = nearest_of[lane], slope = (realv)({slope}), limit_squared = limits[lane];
  moment sum_w = 1, sum_wy = 2, sum_wyy = 3;
  ${{units.weigh("{start}", 1, 0, 4)}}
  barrier(CLK_LOCAL_MEM_FENCE);
  const moment own[3] = {{sum_w, sum_wy, sum_wyy}};
  for (int k = 0; k < 3; ++k) sums[k * 16 + lid] = own[k];
  for (int k = slice; k < TILE; k += 2) squares[k * ROWS + lane] = weights[k * WEIGHT_STRIDE + lane];
"""
    inputs = {
        "states": np.pad(states, ((0, 0), (0, -E % 4))), "library_rows": library_rows.astype(np.int32), "given": values,
        "queries": queries.T, "query_rows": query_rows.astype(whole), "nearest_of": d.min(axis=1).astype(dtype),
        "limits": squared_distances(queries, states)[np.arange(8), limit],
        "limit_rows": library_rows[limit].astype(whole),
    }  # fmt: skip
    found = run_fragment(
        device, SHARED_HEAD, body, inputs, {"sums": np.zeros((3, 2, 8)), "squares": np.zeros((tile, 8))}, items=16,
        group=16, dtype=dtype, coordinates=E, regressors=K, tile=tile, limited=limited,
    )  # fmt: skip
    counted = (np.abs(query_rows[:, None] - library_rows) > radius) & (start + np.arange(tile) < j_end)
    if limited:
        counted &= d <= d[np.arange(8), limit][:, None]
    weights, y = np.where(counted, np.exp((d.min(axis=1)[:, None] - d) * slope), 0), values[:, -1]
    tolerance = {"rtol": 1e-5 if dtype == "float32" else 1e-12}
    np.testing.assert_allclose(found["squares"].T, weights**2, **tolerance)
    expected = [(weights * factor).sum(axis=1) + 2 * at for at, factor in enumerate((1, y, y * y), start=1)]
    np.testing.assert_allclose(found["sums"].sum(axis=1), expected, **tolerance)


def test_weights_are_multiplied_by_products_of_regressors(device):
    """Two blocks of sixteen query rows by three of eight sums, of which a work-item has its own rows and columns."""
    tile, K, stride = 24, 4, 16
    rng = np.random.default_rng(2)
    values, weights = (
        rng.integers(-5, 6, (2, tile, K + 2)).astype(float),
        rng.integers(-5, 6, (2, tile, 36)).astype(float),
    )
    first, second = rng.integers(0, K + 1, (2, 3))
    columns = "\n".join(f"  const int first{e} = {first[e]}, second{e} = {second[e]};" for e in range(3))
    body = f"""
  const int lid = get_local_id(0), row0 = lid / 4;
  local moment values[2 * VALUE_PLACE], weights[2 * WEIGHT_PLACE];
  for (int k = lid; k < 2 * VALUE_PLACE; k += 32) values[k] = given[k];
  for (int k = lid; k < 2 * WEIGHT_PLACE; k += 32) weights[k] = squares[k];
  barrier(CLK_LOCAL_MEM_FENCE);
{columns}
%for r in range(4):
  moment ${{", ".join(f"s{{r}}_{{k}} = 0" for k in range(6))}};
%endfor
  ${{units.multiply("1", "1", 2, 3, {stride})}}
%for r in range(4):
%for k in range(6):
  sums[(lid * 4 + ${{r}}) * 6 + ${{k}}] = s${{r}}_${{k}};
%endfor
%endfor
"""
    found = run_fragment(
        device, SHARED_HEAD, body, {"given": values, "squares": weights}, {"sums": np.zeros((32, 4, 6))}, items=32,
        group=32, dtype="float64", coordinates=1, regressors=K, tile=tile,
    )["sums"]  # fmt: skip
    item = np.arange(32)
    for r in range(4):
        for k in range(6):
            # Library row i % 4 of each four, and query row i / 4, 8 rows further on, and the same in the next block.
            products = values[1, :, first[k // 2]] * values[1, :, second[k // 2]]
            row = item // 4 + 8 * (r % 2) + stride * (r // 2)
            expected = [(weights[1, i % 4 :: 4, row[i]] * products[i % 4 :: 4]).sum() * (1 + k % 2) for i in item]
            np.testing.assert_array_equal(found[:, r, k], expected)
