"""What the kernel for S-map's maps gives to matrix units, and what it makes of it: its fragments, against NumPy.

The instructions of matrix units are written in C here, as far as a fragment meets them;
tests/engines/test_smap_map_units_emulated.py runs the whole kernel like this.
"""

from __future__ import annotations

import numpy as np
import pytest
from fragment_helpers import run_fragment, run_kernel
from smap_helpers import GAP, FittedLibrary, predictions, sums_of

# As on matrix units, but without an exchange of numbers between work-items: a product is that of a work-item's own.
UNITS_HEAD = """
<%namespace name="staging" file="smap_map_units_staging.mako"/>
<%namespace name="of_h" file="smap_map_units_h.mako"/>
<%namespace name="products" file="smap_map_units_products.mako"/>
<%namespace name="of_tile" file="smap_map_units_sums.mako"/>
#define E ${E}
#define COORDINATES ${E}
#define GAPS ${int(gaps)}
#define STATE ${state}
#define WG ${target_lanes * row_lanes}
#define ROWS ${row_lanes * rows_each}
#define TARGETS ${8 * vectors}
#define STEP ${step}
#define PIECES 6
#include "smap_map.clh"
#define COPY_LATER(to, from, there) \\
  for (int i_ = 0; i_ < 4; ++i_) ((local uint*)(to))[i_] = (there) ? ((global const uint*)(from))[i_] : 0;
#define SPLIT_IN_HALVES(high, low, x, y) high = as_uint(x), low = as_uint(y)
#define PRODUCT_IN_DOUBLE(c0, c1, d0, d1, h0, h1, y) \\
  c0 += h0[0] * y.s0, c1 += h0[1] * y.s1 + h0[2], d0 += h1[2] * y.s2, d1 += h1[3] * y.s3 + h1[0]
#define PRODUCT_OF_HALVES(c0, c1, d0, d1, a0, a1, a2, a3, b0, b1) \\
  c0 += as_float(a0) * as_float(b0), c1 += as_float(a1) * as_float(b1), d0 += as_float(a2) * as_float(b0), \\
  d1 += as_float(a3) * as_float(b1)
#define to_halves(x) (x)
${of_h.of_row()}
"""
UNITS_ITEM = """
  const int lid = get_local_id(0), together = lid / 32, lane = lid % 32, near_row = together * 16 + lane / 4;
  const int n_rows = ${n_rows}, n_padded = ${n_padded}, radius = 2, row0 = get_group_id(0) * ROWS;
"""


def units(E=3, gaps=False, halves=False, rows_local=False, vectors=2, step=16, row_lanes=8, **others):
    """Values of a specialisation, for work-groups of 32 ``row_lanes / 8`` work-items."""
    return {
        "E": E, "gaps": gaps, "halves": halves, "rows_local": rows_local, "vectors": vectors, "step": step, "lanes": 1,
        "row_lanes": row_lanes, "rows_each": 2, "target_lanes": 4, "state": -(-(2 * E + gaps) // 4) * 4, **others,
    }  # fmt: skip


@pytest.mark.parametrize("halves", [False, True])
def test_targets_are_arranged_for_the_units(device, halves):
    n_rows, first, n_steps, step, column_begin, n_columns = 41, 2, 45, 32, 1, 19
    rng = np.random.default_rng(1)
    targets = (rng.standard_normal((n_steps, 24)) * 10.0 ** rng.integers(-3, 4, 24)).astype(np.float32)
    targets[rng.random(targets.shape) < 0.1] = GAP
    arranged = np.full((64 // 16, 3, 32, 4), 0xFFFFFFFF, np.uint32)
    arguments = {"targets": targets, "target_stride": np.int32(24), "first": np.int32(first),
                 "n_rows": np.int32(n_rows), "column_begin": np.int32(column_begin),
                 "column_end": np.int32(column_begin + n_columns), "arranged": arranged,
                 **({"scales": np.zeros(24, np.float32)} if halves else {})}  # fmt: skip
    found = run_kernel(
        device, UNITS_HEAD + "${staging.arrange()}", "smap_arrange", arguments, list(arguments)[6:], items=3 * 256,
        group=256,
        **units(halves=halves, step=step),
    )  # fmt: skip
    used = np.zeros((64, 24), np.float32)
    used[:n_rows, :n_columns] = targets[first : first + n_rows, column_begin : column_begin + n_columns]
    used[used >= GAP] = 0
    if halves:  # here a power of two that takes the largest value to 2^13 is that value
        largest = np.abs(used).max(axis=0)
        with np.errstate(divide="ignore"):
            np.testing.assert_array_equal(found["scales"], 1 / largest)
        used[:, :n_columns] *= largest[:n_columns]
    sixteen, eight, item, j = np.indices((4, 3, 32, 4))
    four = used[16 * sixteen + item % 4 + 4 * j, 8 * eight + item // 4]
    # In halves: of the first two library rows, and of the last two; here the "high half" of two is the first one.
    order = (0, 2, 1, 3) if halves else (0, 1, 2, 3)
    np.testing.assert_array_equal(found["arranged"].view(np.float32), four[..., order])


def test_a_step_is_copied_to_its_place(device):
    """States and targets of two steps, one after the other; behind the last row of a library lie zeros."""
    step, n_padded, vectors, n_eights, state = 32, 48, 2, 5, 8
    states, rng = np.arange(n_padded * state, dtype=np.float32).reshape(n_padded, state) + 1, np.random.default_rng(2)
    arranged = rng.integers(0, 1 << 32, (64 // 16, n_eights, 128), dtype=np.uint32)
    body = f"""{UNITS_ITEM}
  local real memory[2 * STEP * (STATE + TARGETS)] __attribute__((aligned(64)));
  const int n_eights = {n_eights};
  global const uint4* restrict arranged_here = (global const uint4*)arranged + 4 * TARGETS;
  ${{staging.copy_step("0", "0")}}
  ${{staging.copy_step("STEP", "1")}}
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int k = lid; k < 2 * STEP * (STATE + TARGETS); k += WG) copied[k] = as_uint(memory[k]);
"""
    outputs = {"copied": np.zeros((2, step * (state + 8 * vectors)), np.uint32)}
    found = run_fragment(
        device, UNITS_HEAD, body, {"states": states, "arranged": arranged}, outputs, items=32, group=32, n_rows=41,
        n_padded=n_padded, **units(E=4, step=step, vectors=vectors),
    )["copied"]  # fmt: skip
    padded = np.concatenate([states, np.zeros((16, state), np.float32)]).reshape(2, -1).view(np.uint32)
    of_group = arranged[:, vectors : 2 * vectors].reshape(2, -1)
    np.testing.assert_array_equal(found, np.concatenate([padded, of_group], axis=1))


H_OF_TILE = """
  local real memory[STEP * STATE] __attribute__((aligned(64)));
%if rows_local:
  local real of_rows[(3 * E + 3) * ROWS];
%endif
  ${of_h.load_rows()}
  for (int from = 0; from < n_rows; from += STEP) {
    for (int k = lid; k < STEP * STATE; k += WG) memory[k] = from + k / STATE < n_padded ? states[from * STATE + k] : 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    local const real* restrict states_here = memory + lane % 4 * STATE;
    for (int k = 0; k < STEP / 16; ++k, states_here += 16 * STATE) {
      real h0[4], h1[4];
      ${of_h.numbers()}
      for (int j = 0; j < 4; ++j) {
        const int s = from + 16 * k + 4 * j + lane % 4;
        H[(row0 + near_row) * n_padded + s] = h0[j] / factor0;
        H[(row0 + near_row + 8) * n_padded + s] = h1[j] / factor1;
      }
    }
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (lane % 4 == 0) {
    factors[row0 + near_row] = factor0;
    factors[row0 + near_row + 8] = factor1;
  }
"""


@pytest.mark.parametrize("halves", [False, True])
@pytest.mark.parametrize(("E", "gaps", "rows_local"), [(3, True, False), (2, False, True), (7, True, True)])
def test_what_library_rows_count_in_the_rows_of_a_tile(device, E, gaps, rows_local, halves):
    n, n_rows = 64, 55
    library = FittedLibrary(E, gaps, "float32", n, theta=1.0)
    inputs = {"states": library.states, "columns": library.columns, "fits": library.fits}
    outputs = {"H": np.full((n, n), -1, np.float32), "factors": np.zeros(n, np.float32)}
    found = run_fragment(
        device, UNITS_HEAD, UNITS_ITEM + H_OF_TILE, inputs, outputs, items=128, group=64, n_rows=n_rows, n_padded=n,
        **units(E=E, gaps=gaps, rows_local=rows_local, halves=halves, step=32, row_lanes=16),
    )  # fmt: skip
    expected = np.where(np.arange(n) < n_rows, library.h, 0)
    np.testing.assert_allclose(found["H"], expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
    assert (found["H"][expected == 0] == 0).all()
    # What an inner product of (1, z_t) and g_t may be, from which the power of two of a row follows in halves.
    regressors = np.concatenate([np.ones((n, 1)), library.z - library.centre], axis=1)
    bound = np.sqrt(np.abs(library.g * regressors).sum(axis=1))
    np.testing.assert_allclose(found["factors"], bound if halves else 1, rtol=1e-5)


@pytest.mark.parametrize("halves", [False, True])
def test_every_product_is_added_to_its_own_sums(device, halves):
    """Five products, of which the last has a scope to itself; halves go to the total after 512 library rows."""
    vectors, step, n_rows = 5, 64, 1024
    body = """
  const int n_rows = ${n_rows};
  ${products.begin()}
  for (int from = 0; from < n_rows; from += STEP) {
    for (int k = 0; k < STEP / 16; ++k) {
      real h0[4], h1[4];
      for (int j = 0; j < 4; ++j) h0[j] = h[(from / 16 + k) * 8 + j], h1[j] = h[(from / 16 + k) * 8 + 4 + j];
      global const uint4* restrict y = (global const uint4*)targets + (from / 16 + k) * ${32 * vectors};
      ${products.add()}
    }
%if halves:
    ${products.add_to_total()}
%endif
  }
%for v in range(vectors):
%for k in range(4):
  sums[${4 * v + k}] = p${v}_${k};
  totals[${4 * v + k}] = ${f"total[{4 * v + k}]" if halves else 0};
%endfor
%endfor
"""
    rng = np.random.default_rng(6)
    h = rng.integers(-8, 9, (n_rows // 16, 2, 4)).astype(np.float32)
    y = rng.integers(-8, 9, (n_rows // 16, vectors, 32, 4)).astype(np.float32)
    outputs = {name: np.zeros((vectors, 4), np.float32) for name in ("sums", "totals")}
    found = run_fragment(
        device, UNITS_HEAD, body, {"h": h, "targets": y.view(np.uint32)}, outputs, n_rows=n_rows,
        **units(vectors=vectors, step=step, halves=halves),
    )  # fmt: skip
    own, h = (
        y[:, :, 0].astype(float),
        h[:, None].astype(float),
    )  # (16 library rows, product, 4), (16 library rows, 1, row, 4)
    if halves:
        # The halves of h0[0], h0[1]; h1[0], h1[1]; h0[2], h0[3]; h1[2], h1[3]; here the second one is the "low" half.
        pairs = h.reshape(-1, 1, 2, 2, 2).swapaxes(2, 3).reshape(-1, 1, 4, 2)
        high, low = pairs[..., 0], pairs[..., 1]
        y_high, y_low = own[..., [0, 1, 0, 1]], own[..., [2, 3, 2, 3]]
        expected = (low * y_high + high * y_low + high * y_high).sum(axis=0)
        assert (found["sums"] == 0).all(), "the last 512 rows have gone to the total"
        np.testing.assert_array_equal(found["totals"], expected)
    else:
        extra = np.concatenate([0 * h[:, :, 0, :1], h[:, :, 0, 2:3], 0 * h[:, :, 0, :1], h[:, :, 1, :1]], axis=2)
        factors = np.concatenate([h[:, :, 0, :2], h[:, :, 1, 2:]], axis=2)
        np.testing.assert_array_equal(found["sums"], (factors * own + extra).sum(axis=0))


SUMS_OF_UNITS = """
<%
rows, columns, wg = row_lanes * rows_each, 8 * vectors, target_lanes * row_lanes
at_once = -(-columns // -(-columns // wg))
parts = max(wg // at_once, 1) if halves else 1
stride = columns + 8
%>
  local real memory[${rows * stride}] __attribute__((aligned(64))), shared[3 * ${parts} * TARGETS];
  const int library = get_group_id(0) / 2, tile = get_group_id(0) % 2, n_tiles = 2, block = ${block};
  const int column_begin = ${column_begin}, column_end = ${column_end};
  const int target_stride = ${target_stride}, sums_stride = ${sums_stride};
  columns += (size_t)library * n_padded * (2 * E + 1);
  targets += column_begin + block;
  global const real* restrict p = predicted + (size_t)get_group_id(0) * ROWS * TARGETS;
%if halves:
  const real factor0 = 2 + near_row, factor1 = 10 + near_row;
  real total[${4 * vectors}];
  for (int k = 0; k < ${4 * vectors}; ++k) total[k] = 1;
%endif
<% undone = " * factor{r} / scales[block + {c}] - 1" if halves else "" %>
%for v in range(vectors):
%for r in range(2):
%for k in range(2):
<% c = f"{8 * v + k} + lane % 4 * 2" %>
  const real p${v}_${2 * r + k} = p[(near_row + ${8 * r}) * TARGETS + ${c}]${undone.format(r=r, c=c)};
%endfor
%endfor
%endfor
  ${of_tile.store(stride)}
  barrier(CLK_LOCAL_MEM_FENCE);
  ${of_tile.sums(stride, at_once, parts)}
"""


@pytest.mark.parametrize("halves", [False, True])
@pytest.mark.parametrize(("vectors", "row_lanes", "gaps"), [(2, 8, True), (5, 8, False), (3, 16, False)])
def test_predictions_of_matrix_units_become_sums(device, vectors, row_lanes, gaps, halves):
    """Of two libraries with two tiles each, the last of which is not full.

    A group has a work-item for each column or fewer, or several of them and some that have none.
    """
    rows, columns, column_begin, block = 2 * row_lanes, 8 * vectors, 1, 8 * vectors
    n_rows = 2 * rows - 5
    column_end = column_begin + block + columns - 3
    p, _ = predictions(4 * rows, columns, False)
    observed = predictions(2 * rows, columns, gaps)[1]
    targets = np.full((2 * rows, column_begin + block + columns), GAP, np.float32)
    targets[:, column_begin + block :] = observed
    predicted = np.random.default_rng(7).random((2, 2 * rows)) < (0.7 if gaps else 2)
    flags = np.zeros((2, 2 + 1, 2 * rows), np.float32)
    flags[:, 2] = predicted
    scales = 2.0 ** np.random.default_rng(8).integers(-3, 4, 2 * columns)
    found = run_fragment(
        device, UNITS_HEAD, UNITS_ITEM.replace("get_group_id(0) * ROWS", "get_group_id(0) % 2 * ROWS") + SUMS_OF_UNITS,
        {"predicted": p, "targets": targets, "columns": flags, "scales": scales.astype(np.float32)},
        {"sums": np.full((2, 2, 6, 2 * columns), -1, np.float32)}, items=16 * row_lanes, group=4 * row_lanes,
        n_rows=n_rows, n_padded=2 * rows, column_begin=column_begin, column_end=column_end, block=block,
        target_stride=targets.shape[1], sums_stride=2 * columns,
        **units(E=1, gaps=gaps, halves=halves, vectors=vectors, row_lanes=row_lanes),
    )["sums"]  # fmt: skip
    assert (found[..., :block] == -1).all() and (found[..., block + columns - 3 :] == -1).all()
    for library in range(2):
        for tile in range(2):
            of_tile = slice(tile * rows, (tile + 1) * rows)
            counted = (observed < GAP) & predicted[library][:, None] & (np.arange(2 * rows) < n_rows)[:, None]
            of_group = p[(2 * library + tile) * rows :][:rows]
            expected = sums_of(of_group, observed[of_tile], counted[of_tile])[:, : columns - 3]
            np.testing.assert_allclose(
                found[library, tile, :, block : block + columns - 3], expected, rtol=1e-5, atol=1e-4
            )
