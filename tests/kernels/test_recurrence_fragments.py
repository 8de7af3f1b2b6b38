"""Fragments of the kernels of recurrence analysis by themselves, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from fragment_helpers import run_fragment

from pyedmcl.recurrence.arguments import METRICS
from pyedmcl.reference.recurrence import compared, points_of

PIXELS = """
<%namespace name="to_pixels" file="recurrence_image_pixels.mako"/>
#define WIDE 1
#include "numeric.clh"
${to_pixels.functions()}
"""


@pytest.mark.parametrize(("n", "pixels"), [(10, 3), (7, 7), (64, 1), (1000, 37)])
def test_each_pixel_holds_its_share_of_columns(device, n, pixels):
    body = f"  pixel[i] = pixel_of(i, {n}, {pixels});"
    found = run_fragment(device, PIXELS, body, {}, {"pixel": np.zeros(n, np.int32)}, items=n)["pixel"]
    begins = np.arange(pixels + 1) * n // pixels
    np.testing.assert_array_equal(found, np.repeat(np.arange(pixels), np.diff(begins)))


def test_sums_of_two_words_carry(device):
    """Of numbers whose low words overflow many times, by work-items that add at the same time."""
    values = np.random.default_rng(3).integers(0, 1 << 55, 200, dtype=np.uint64)
    body = "  add_global(sums, values[i]);"
    found = run_fragment(device, PIXELS, body, {"values": values}, {"sums": np.zeros(2, np.uint32)}, items=200)["sums"]
    assert int(found[0]) + (int(found[1]) << 32) == sum(map(int, values))


@pytest.mark.parametrize("metric", ["euclidean", "maximum", "manhattan"])
def test_a_cell_is_decided_as_its_definition_says(device, metric):
    """To the last bit of float64, and never where a value is missing."""
    x, m, tau = np.random.default_rng(4).standard_normal(60), 3, 2
    x[30] = np.nan
    points = points_of(x, m, tau)
    n = len(points)
    head = f"""
<%namespace name="decide" file="recurrence_bits_decide.mako"/>
#define UNFUSED
#define METRIC {metric}
#include "metric.clh"
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
${{decide.functions()}}
"""
    body = f"  sums[i] = exact_cell(x + i / {n}, x + i % {n}, 0, 0);"
    found = run_fragment(
        device, head, body, {"x": x}, {"sums": np.zeros((n, n))}, items=n * n, embedded=False, m=m, tau=tau
    )["sums"]
    np.testing.assert_array_equal(found, compared(points, points, metric))


# ---- metric.clh ----

METRICS_OF_SUMS = {
    "euclidean": (lambda d: (d**2).sum(axis=0), np.sqrt), "maximum": (lambda d: np.abs(d).max(axis=0), lambda s: s),
    "manhattan": (lambda d: np.abs(d).sum(axis=0), lambda s: s),
    "cosine": (lambda d: (d**2).sum(axis=0), lambda s: s / 2),
}  # fmt: skip


def test_every_metric_has_a_form_here():
    assert set(METRICS_OF_SUMS) == set(METRICS)


@pytest.mark.parametrize("metric", METRICS_OF_SUMS)
@pytest.mark.parametrize(("dtype", "lanes"), [("float32", 1), ("float32", 8), ("float64", 4)])
def test_coordinates_are_joined_as_the_metric_says(device, metric, dtype, lanes):
    """Of whole numbers, whose sums have no rounding."""
    d = np.random.default_rng(5).integers(-40, 41, (5, 64)).astype(dtype)
    d[:, 0] = 0
    body = """
  const int at = i * LANES;
  realv plain = 0, fused = 0;
  for (int e = 0; e < 5; ++e) {
    const realv x = LOADV(d + e * 64 + at), term = TERM(x);
    plain = JOIN(plain, term);
    fused = JOIN_FUSED(fused, x);
  }
  STOREV(plain, joined + at);
  STOREV(fused, joined_fused + at);
  STOREV(DISTANCE(plain), distance + at);
"""
    outputs = {name: np.zeros(64, dtype) for name in ("joined", "joined_fused", "distance")}
    found = run_fragment(
        device, f'#define METRIC {metric}\n#include "metric.clh"', body, {"d": d}, outputs, items=64 // lanes,
        dtype=dtype, lanes=lanes,
    )  # fmt: skip
    join, distance = METRICS_OF_SUMS[metric]
    np.testing.assert_array_equal(found["joined"], join(d))
    np.testing.assert_array_equal(found["joined_fused"], join(d))
    np.testing.assert_allclose(found["distance"], distance(join(d)), rtol=2 * np.finfo(dtype).eps)


@pytest.mark.parametrize("metric", METRICS_OF_SUMS)
def test_a_missing_coordinate_is_passed_on(device, metric):
    """Whichever coordinate it is, where numbers are joined that may be missing."""
    d = np.ones((3, 4))
    d[[0, 1, 2], [0, 1, 2]] = np.nan
    body = """
  double s = 0;
  for (int e = 0; e < 3; ++e) {
    const double x = d[4 * e + i], q = TERM(x);
    s = JOIN_OR_NAN(s, q);
  }
  joined[i] = s;
"""
    found = run_fragment(
        device, f'#define METRIC {metric}\n#include "metric.clh"', body, {"d": d}, {"joined": np.zeros(4)}, items=4,
        dtype="float64",
    )["joined"]  # fmt: skip
    assert np.isnan(found[:3]).all() and found[3] == METRICS_OF_SUMS[metric][0](d[:, 3])


# ---- coordinates.clh ----


@pytest.mark.parametrize("m", [1, 31, 32, 33, 64, 65, 200])
@pytest.mark.parametrize("items", [64, 70])
def test_coordinates_are_added_in_their_order(device, m, items):
    """Also by work-items behind the last whole vector, where a compiler may take another loop."""
    d = np.random.default_rng(m).standard_normal((items, m)).cumsum(axis=1)
    body = f"""
  double s = 0;
  EACH_COORDINATE(e, {m}) {{
    const double q = d[(size_t){m} * i + e] * d[(size_t){m} * i + e];
    s = s + q;
  }}
  joined[i] = s;
"""
    found = run_fragment(
        device, '#define UNFUSED\n#include "numeric.clh"\n#include "coordinates.clh"', body, {"d": d},
        {"joined": np.zeros(items)}, items=items, dtype="float64",
    )["joined"]  # fmt: skip
    np.testing.assert_array_equal(found, np.cumsum(d * d, axis=1)[:, -1])


# ---- recurrence_bits_decide.mako and recurrence_bits_store.mako ----

BITS = """
<%namespace name="decide" file="recurrence_bits_decide.mako"/>
<%namespace name="store" file="recurrence_bits_store.mako"/>
#define UNFUSED
#define METRIC maximum
#include "metric.clh"
#include "transpose.clh"
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
${decide.functions()}
"""
WORDV = {1: "uint", 4: "uint4"}


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize(
    ("corridor", "per_column", "strict"), [(False, False, True), (True, False, False), (False, True, False)]
)
def test_open_cells_are_decided(device, lanes, corridor, per_column, strict):
    """Cells that are in stay in, those that are not open stay out, and the others are what float64 says."""
    n, n_diagonals, y_front = 96, 16, 3
    rng = np.random.default_rng(6)
    x, y = rng.integers(0, 5, n), np.concatenate([np.full(y_front, 9), rng.integers(0, 5, n + n_diagonals)])
    limits = rng.integers(1, 4, len(y)) if per_column else np.array([3, 1])
    already, may_be = rng.integers(0, 1 << 32, (2, n // 32, n_diagonals), dtype=np.uint32)
    body = f"""
  const int k = i * LANES, x_stride = 0, y_stride = 0, y_front = {y_front}, i0 = 0;
  for (int w = 0; w < {n // 32}; ++w) {{
    {WORDV[lanes]} in = {"already[w * 16 + k]" if lanes == 1 else "vload4(0, already + w * 16 + k)"};
    {WORDV[lanes]} open = {"may_be[w * 16 + k]" if lanes == 1 else "vload4(0, may_be + w * 16 + k)"};
    ${{decide.open_cells()}}
    {"words[w * 16 + k] = in" if lanes == 1 else "vstore4(in, 0, words + w * 16 + k)"};
  }}
"""
    inputs = {
        "x64": x.astype(float),
        "y64": y.astype(float),
        "limits64": limits.astype(float),
        "already": already,
        "may_be": may_be,
    }
    found = run_fragment(
        device, BITS, body, inputs, {"words": np.zeros_like(already)}, items=n_diagonals // lanes, lanes=lanes, m=1,
        tau=1, embedded=False, corridor=corridor, per_column=per_column, strict=strict, n_radii=1,
    )["words"]  # fmt: skip
    row, k = np.arange(n)[:, None], np.arange(n_diagonals)
    column = y_front + row + k
    s, limit = np.abs(x[row] - y[column]), limits[column] if per_column else 3
    recurrent = s < limit if strict else s <= limit
    if corridor:
        recurrent &= s >= 1
    words = (
        np.packbits(recurrent.reshape(-1, 32, n_diagonals), axis=1, bitorder="little").swapaxes(1, 2).copy().view("<u4")
    )
    np.testing.assert_array_equal(found, already | (may_be & words[..., 0]))


@pytest.mark.parametrize("lanes", [1, 4])
@pytest.mark.parametrize("second_partner", [False, True])
@pytest.mark.parametrize("n_radii", [1, 2])
def test_words_are_stored_along_diagonals(device, lanes, second_partner, n_radii):
    """Without rows behind the last and diagonals within the Theiler window; a second partner keeps common cells."""
    n_words, n_diagonals, i0, i_end, k0, theiler = 3, 24, 32, 32 + 70, -5, 4
    rng = np.random.default_rng(7)
    cells, before = rng.integers(0, 1 << 32, (2, n_radii, n_words, n_diagonals), dtype=np.uint32)
    body = f"""
  const int k_local = i * LANES, k = {k0} + k_local, i0 = {i0}, i_end = {i_end}, theiler = {theiler};
  const int n_words = {n_words}, n_diagonals = {n_diagonals};
  for (int r = 0; r < {n_radii}; ++r)
    for (int w = 0; w < n_words; ++w) {{
      global const uint* cell = cells + (r * n_words + w) * n_diagonals + k_local;
      {WORDV[lanes]} in = {"*cell" if lanes == 1 else "vload4(0, cell)"};
      ${{store.word()}}
    }}
"""
    found = run_fragment(
        device, BITS, body, {"cells": cells}, {"bits": before}, items=n_diagonals // lanes, lanes=lanes, m=1, tau=1,
        embedded=False, transposed=False, second_partner=second_partner, n_radii=n_radii,
    )["bits"]  # fmt: skip
    expected = np.where(np.abs(k0 + np.arange(n_diagonals)) < theiler, 0, cells)
    expected[:, 2] &= (1 << (i_end - i0 - 64)) - 1
    np.testing.assert_array_equal(found, expected & before if second_partner else expected)


@pytest.mark.parametrize("n_radii", [1, 3])
def test_words_are_stored_along_rows_too(device, n_radii):
    """Blocks of 32 x 32 cells, transposed; a group has two side by side, and the last diagonals may be missing."""
    wg, n_words, n_diagonals, held_words = 64, 3, 96, 4
    cells = np.random.default_rng(8).integers(0, 1 << 32, (n_radii, n_words, n_diagonals), dtype=np.uint32)
    stored = """
  for (int w = first; w < end; ++w) {
    uint in = k_local < n_diagonals ? cells[w * n_diagonals + k_local] : 0;
    ${store.word()}
  }
  ${store.rows()}
""" if n_radii == 1 else f"""
  int n_held = 0, r_stored = 0, w_stored = first;
  for (int w = first; w < end; ++w)
    for (int r = 0; r < n_radii; ++r) {{
      uint in = k_local < n_diagonals ? cells[(r * n_words + w) * n_diagonals + k_local] : 0;
      ${{store.word()}}
      if (++n_held == {held_words}) ${{store.rows_of_radii()}}
    }}
  if (n_held) ${{store.rows_of_radii()}}
"""  # fmt: skip
    body = f"""
#define WG {wg}
#define WORDS {n_words}
#define HELD_WORDS {held_words}
#define HELD(AT, LANE) held[33 * ((AT) * (WG / 32) + (LANE) / 32) + (LANE) % 32]
  local uint held[33 * WG / 32 * HELD_WORDS];
  const int first = 0, end = {n_words}, n_words = {n_words}, n_diagonals = {n_diagonals}, n_radii = {n_radii};
  const int k_local = i, k = 100 + i, i0 = 0, i_end = {32 * n_words}, theiler = 0;
  {stored}
"""
    outputs = {"bits": np.zeros_like(cells), "rows": np.zeros((n_radii, n_diagonals // 32, n_words, 32), np.uint32)}
    found = run_fragment(
        device, BITS, body, {"cells": cells}, outputs, items=2 * wg, group=wg, m=1, tau=1, embedded=False,
        transposed=True, lanes=1, second_partner=False, n_radii=n_radii,
    )  # fmt: skip
    np.testing.assert_array_equal(found["bits"], cells)
    bits = cells[..., None] >> np.arange(32, dtype=np.uint32) & 1  # (radius, word, diagonal, row of the word)
    blocks = bits.reshape(n_radii, n_words, n_diagonals // 32, 32, 32).transpose(0, 2, 1, 4, 3)
    expected = (blocks.astype(np.uint64) << np.arange(32, dtype=np.uint64)).sum(axis=-1)
    np.testing.assert_array_equal(found["rows"], expected)


# ---- recurrence_image_pixels.mako ----


@pytest.mark.parametrize("mode", ["count", "mean"])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("symmetric", [False, True])
def test_columns_add_to_their_pixels(device, mode, wide, symmetric):
    """Of several groups to one image. Of means numbers pass 32 bits; what lies left of the diagonal is left out."""
    wg, columns, n_columns, pixels, n_groups, row_of_pixels = 8, 3, 130, 37, 6, 9
    width, wide = wg * columns, wide or mode == "mean"
    values = np.random.default_rng(9).integers(
        0, 1 << (40 if mode == "mean" else 20), n_groups * width, dtype=np.uint64
    )
    head = PIXELS.replace("#define WIDE 1", f"#define WIDE {int(wide)}\n#define WIDTH {width}")
    total = "ulong" if mode == "mean" else "uint"
    body = f"""
  const int lid = get_local_id(0), begin = get_group_id(0) * WIDTH, n_columns = {n_columns}, pixels = {pixels};
  const int symmetric = {int(symmetric)};
  const int left = pixel_of(min(begin, n_columns - 1), n_columns, pixels);
  const int places = pixel_of(min(begin + WIDTH, n_columns) - 1, n_columns, pixels) - left + 1;
  const int2 piece = (int2)({row_of_pixels}, 0);
  local int place[WIDTH];
  local uint sums[2 * WIDTH];
  ${{to_pixels.prepare({2 if mode == "mean" else 1})}}
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int twice = 0; twice < 2; ++twice) {{
    {total} total[{columns}];
    for (int c = 0; c < {columns}; ++c) {{
      const int column = begin + lid * {columns} + c;
      total[c] = column < n_columns ? ({total})values[column] : 0;
    }}
    {{
      ${{to_pixels.add(columns, "{total}")}}
    }}
    barrier(CLK_LOCAL_MEM_FENCE);
    ${{to_pixels.store()}}
    barrier(CLK_LOCAL_MEM_FENCE);
  }}
"""
    words = 2 if wide else 1
    found = run_fragment(
        device, head, body, {"values": values}, {"image": np.zeros((pixels, pixels, words), np.uint32)},
        items=n_groups * wg, group=wg, wg=wg, columns=columns, mode=mode, wide=wide,
    )["image"]  # fmt: skip
    expected = np.zeros((pixels, pixels), np.uint64)
    begins = np.arange(pixels) * n_columns // pixels
    expected[row_of_pixels] = 2 * np.add.reduceat(values[:n_columns], begins)
    if symmetric:
        expected[row_of_pixels, :row_of_pixels] = 0
    assert expected.max() > (1 << 32) or mode == "count"
    image = (found.astype(np.uint64) << (32 * np.arange(words, dtype=np.uint64))).sum(axis=-1)
    np.testing.assert_array_equal(image, expected)
