"""Parts of the lookup by themselves, against NumPy: the order of sums, predictions, marks, and numbers of 16 bits."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest
from fragment_helpers import run_fragment

from pyedmcl.reference import fma32, fma64

# ---- lookup_sums.mako ----

# Query rows from 3 on: none at all, fewer than strands, whole chunks of all strands and one more, and many.
T_BEGIN, T_ENDS = 3, (3, 8, 3 + 2 * 64 * 8, 4 + 64 * 8, 5000)
SUMS = """
<%namespace name="sums" file="lookup_sums.mako"/>
#define CHUNK 64
#define STRANDS 8
#define LOCALV(p) (*(local realv*)(p))
#define WAITING(i) (waiting + ((i) * ${among * target_lanes} + (int)get_local_id(0)) * LANES)
#include "reduce.clh"
"""
SUMMED = """
<% columns, names = target_lanes * vectors * lanes, ["plain", "squares"] %>
  const int target_lane = i % ${target_lanes}, row_place = i / ${target_lanes}, t_begin = first_row[0];
  local real waiting[${max(2, waiting) * 2 * among * columns}] __attribute__((aligned(128)));
  local real *const shared_sum = waiting, *const shared_rest = waiting + ${among * columns};
  for (int c = 0; c < ${len(t_ends)}; ++c) {
    const int t_end = ends[c];
%for v in range(vectors):
    realv sum_plain${v} = 0, rest_plain${v} = 0, sum_squares${v} = 0, rest_squares${v} = 0;
%endfor
<%sums:sum_rows sums="${names}" place="row_place" among="${among}" unrolled="${unrolled}" waiting="${waiting}">
%for v in range(vectors):
            const realv x${v} = LOADV(x + (size_t)t * ${columns} + (target_lane * ${vectors} + ${v}) * LANES);
            part_plain${v} += x${v};
            part_squares${v} = FUSED(x${v}, x${v}, part_squares${v});
%endfor
</%sums:sum_rows>
%for v in range(vectors):
    if (row_place == 0) {
      const int to = c * ${columns} + (target_lane * ${vectors} + ${v}) * LANES;
%for name in ("plain", "squares"):
      STOREV(sum_${name}${v}, ${name} + to);
      STOREV(rest_${name}${v}, ${name} + to + ${len(t_ends) * columns});
%endfor
    }
%endfor
    barrier(CLK_LOCAL_MEM_FENCE);
  }
"""


@functools.cache
def summands(dtype, columns):
    """Numbers whose sums differ from order to order: large ones that cancel among small ones."""
    rng = np.random.default_rng(columns)
    return (rng.standard_normal((max(T_ENDS), columns)) * 10 ** rng.uniform(-3, 3, (max(T_ENDS), columns))).astype(
        dtype
    )


def added_exactly(total, rest, x):
    """The sum of two numbers, and what rounding left over since the first one (Knuth's two-sum)."""
    new = total + x
    back = new - total
    return new, rest + ((total - (new - back)) + (x - back))


@functools.cache
def in_documented_order(dtype, columns, t_end, squared):
    """The sum of each column from T_BEGIN on, and what rounding left over.

    Strands of every eighth row are summed in chunks of 64 rows, and then the strands in halves.
    """
    x, fused = summands(dtype, columns)[T_BEGIN:t_end], fma32 if dtype == "float32" else fma64
    zero, strands = np.zeros(columns, dtype), []
    for strand in range(8):
        rows, total, rest = x[strand::8], zero, zero
        for chunk in range(0, len(rows), 64):
            part = zero
            for row in rows[chunk : chunk + 64]:
                part = fused(row, row, part) if squared else part + row
            total, rest = added_exactly(total, rest, part)
        strands.append((total, rest))
    for half in (4, 2, 1):
        for i in range(half):
            total, rest = added_exactly(*strands[i], strands[i + half][0])
            strands[i] = total, rest + strands[i + half][1]
    return strands[0]


@pytest.mark.parametrize(
    ("among", "waiting", "dtype", "lanes", "vectors"),
    [
        *((among, 0, "float32", 1, 2) for among in (1, 2, 8, 32)), (16, 0, "float32", 8, 1), (1, 1, "float32", 4, 2),
        (4, 2, "float32", 1, 1), (8, 2, "float32", 4, 1), (4, 0, "float64", 4, 1), (16, 0, "float64", 1, 2),
    ],
)  # fmt: skip
def test_the_order_of_a_sum_is_that_of_its_rows_alone(device, among, waiting, dtype, lanes, vectors):
    """However many work-items share it, and wherever its parts wait, a sum has the bits of the documented order."""
    target_lanes = 2
    columns = target_lanes * vectors * lanes
    names, shape = ("plain", "squares"), (2, len(T_ENDS), columns)
    inputs = {
        "x": summands(dtype, columns),
        "ends": np.array(T_ENDS, np.int32),
        "first_row": np.array([T_BEGIN], np.int32),
    }
    found = run_fragment(
        device, SUMS, SUMMED, inputs, {name: np.ones(shape, dtype) for name in names}, items=target_lanes * among,
        group=target_lanes * among, among=among, waiting=waiting, dtype=dtype, lanes=lanes, vectors=vectors,
        target_lanes=target_lanes, t_ends=T_ENDS, unrolled=4 if vectors > 1 else 1,
    )  # fmt: skip
    for name in names:
        expected = [in_documented_order(dtype, columns, t_end, name == "squares") for t_end in T_ENDS]
        np.testing.assert_array_equal(found[name], np.swapaxes(expected, 0, 1))


def test_the_documented_order_loses_less_than_a_plain_sum():
    x = summands("float32", 4)[T_BEGIN : T_ENDS[-1]]
    exact = np.array([math.fsum(column) for column in x.T.astype(float)])
    plain = np.add.accumulate(x, axis=0)[-1]
    total = sum(in_documented_order("float32", 4, T_ENDS[-1], False))
    assert np.abs(total - exact).max() < np.abs(plain - exact).max() / 4


# ---- lookup_prediction.mako ----

PREDICTION = """
<%namespace name="prediction" file="lookup_prediction.mako"/>
#include "numeric.clh"
"""
PREDICTED = """
<%
def target(row, v):
    return f"LOADV(y + ({row}) * {vectors * lanes} + {v * lanes})"
%>
  const int any_k = n_neighbors[0];
%for v in range(vectors):
  const realv centre${v} = LOADV(centre + ${v} * LANES);
%endfor
  const size_t at = (size_t)(i / ${table_tile}) * ${k_stride * table_tile} + i % ${table_tile};
  ${prediction.of_row(target)}
%for v in range(vectors):
  STOREV(p${v}, predicted + (i * ${vectors} + ${v}) * LANES);
%endfor
"""


TABLES = {
    "plain": {"quads": False, "table_tile": 1, "narrow_rows": False, "precision": "full"},
    "quads": {"quads": True, "table_tile": 1, "narrow_rows": False, "precision": "full"},
    "compact": {"quads": True, "table_tile": 1, "narrow_rows": True, "precision": "compact"},
    "tiles": {"quads": True, "table_tile": 8, "narrow_rows": True, "precision": "full"},
}


@pytest.mark.parametrize(
    ("layout", "fixed", "k"),
    [*((layout, True, 5) for layout in TABLES), ("quads", True, 1), ("quads", True, 8),
     *((layout, False, k) for layout in TABLES for k in (1, 5, 8))],
)  # fmt: skip
def test_a_prediction_adds_weighted_neighbours_in_the_order_of_the_table(one_device, layout, fixed, k):
    """Each with one rounding. What lies in a table behind the k-th neighbour is not used, if k is ``fixed`` or not."""
    n, n_steps, lanes, vectors, stride = 16, 90, 4, 2, 8
    table_tile, narrow_rows, precision = (TABLES[layout][name] for name in ("table_tile", "narrow_rows", "precision"))
    rng = np.random.default_rng(k)
    weights, y = (
        rng.random((n, stride)).astype(np.float32),
        rng.standard_normal((n_steps, vectors * lanes)).astype(np.float32),
    )
    rows = rng.integers(0, n_steps, (n, stride)).astype(np.uint16 if narrow_rows else np.int32)
    centre = rng.random(vectors * lanes).astype(np.float32)
    tables = {
        name: table.reshape(-1, table_tile, stride).swapaxes(1, 2)
        for name, table in (("weights", weights), ("rows", rows))
    }
    found = run_fragment(
        one_device, PREDICTION, PREDICTED, {**tables, "y": y, "centre": centre, "n_neighbors": np.array([k], np.int32)},
        {"predicted": np.zeros((n, vectors * lanes), np.float32)}, items=n, lanes=lanes, vectors=vectors,
        k=k if fixed else 0, k_stride=stride, **TABLES[layout],
    )["predicted"]  # fmt: skip
    expected = np.tile(-centre if precision == "compact" else 0 * centre, (n, 1))
    for neighbour in range(k):
        expected = fma32(weights[:, neighbour, None], y[rows[:, neighbour]], expected)
    np.testing.assert_array_equal(found, expected)


# ---- lookup_marks.mako ----

MARKS = """
<%namespace name="marks" file="lookup_marks.mako"/>
#include "compact.clh"
"""
MARKED_ONLY = """
<% columns = target_lanes * vectors * lanes %>
  const int slice = get_group_id(0) % ${n_slices}, n_slices = ${n_slices}, n_libraries = ${n_libraries};
  const int tile_begin = get_group_id(0) / ${n_slices} * ${columns}, column_end = ${n_columns};
  const int first_library = ${first_library}, rho_stride = ${n_columns + 1};
  ${marks.end_unless_marked()}
  begun[get_group_id(0)] = 1;
  for (int first = slice * ${library_lanes}; first < n_libraries; first += n_slices * ${library_lanes}) {
    ${marks.continue_unless_marked()}
    looked_up[get_group_id(0) * n_libraries + first] = 1;
  }
"""


@pytest.mark.parametrize("library_lanes", [1, 2])
def test_only_marked_pairs_are_looked_up_again(device, library_lanes):
    """A group without a mark ends, others pass over libraries without one."""
    n_libraries, n_columns, n_slices, first_library, columns = 7, 11, 2, 3, 4  # the last tile has three columns only
    n_tiles, rng = -(-n_columns // columns), np.random.default_rng(1)
    target_of = rng.permutation(n_columns + 1).astype(np.int32)
    outside = [(-1, 0), (-2, 7), (7, 1), (0, 11)]  # before the first or behind the last library or column
    for marked in ([], [(0, 0)], [(6, 10)], [(3, 4), (3, 5), (5, 8)], [(2, 3), (1, 10)], outside, [(4, 9), *outside]):
        rho = rng.uniform(-1, 1, (first_library + n_libraries + 1, n_columns + 1)).astype(np.float32)
        for library, column in marked:
            rho[first_library + library, target_of[column]] = 2
        outputs = {
            "begun": np.zeros(n_slices * n_tiles, np.int32),
            "looked_up": np.zeros((n_slices * n_tiles, n_libraries), np.int32),
        }
        found = run_fragment(
            device, MARKS, MARKED_ONLY, {"rho": rho, "target_of": target_of}, outputs,
            items=2 * library_lanes * n_slices * n_tiles, group=2 * library_lanes, lanes=2, vectors=1,
            target_lanes=2, row_lanes=1, library_lanes=library_lanes, n_slices=n_slices,
            n_libraries=n_libraries, n_columns=n_columns, first_library=first_library,
        )  # fmt: skip
        expected = np.zeros((n_slices * n_tiles, n_libraries), int)
        for library, column in marked:
            if 0 <= library < n_libraries and column < n_columns:
                first = library // library_lanes * library_lanes
                expected[column // columns * n_slices + first // library_lanes % n_slices, first] = 1
        np.testing.assert_array_equal(found["looked_up"], expected)
        np.testing.assert_array_equal(found["begun"], expected.any(axis=1))


# ---- compact.clh ----


@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16])
def test_a_number_in_16_bits_is_the_nearest_one(device, lanes):
    """Of all codes, and of numbers between them."""
    x = np.concatenate([np.float32(0.5) + np.arange(1 << 14, dtype=np.float32) / (1 << 14),
                        np.random.default_rng(2).uniform(0.5, 1.9999, 1 << 14).astype(np.float32)])  # fmt: skip
    body = """
  ushort codes[LANES] __attribute__((aligned(32)));
  for (int l = 0; l < LANES; ++l) code[i * LANES + l] = codes[l] = ENCODED(x[i * LANES + l]);
  STOREV(DECODED(*(const codesv*)codes, top[0]), decoded + i * LANES);
"""
    outputs = {"code": np.zeros(len(x), np.uint16), "decoded": np.zeros_like(x)}
    top = np.array([0x3F000000], np.uint32)
    found = run_fragment(
        device, '#include "compact.clh"', body, {"x": x, "top": top}, outputs, items=len(x) // lanes, lanes=lanes,
        byte_permute=False,
    )  # fmt: skip
    assert len(np.unique(found["code"])) > 1 << 14
    # The last 8 of 24 bits are left out; a tie is rounded up.
    units = np.ldexp(1.0, np.frexp(x)[1] - 16)
    np.testing.assert_array_equal(found["decoded"], np.floor(x / units + 0.5) * units)
