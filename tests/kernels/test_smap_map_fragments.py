"""The sums of S-map's maps by themselves, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from fragment_helpers import run_fragment, run_kernel
from smap_helpers import GAP, predictions, sums_of

TILE_HEAD = """
<%namespace name="sums" file="smap_map_sums.mako"/>
#define E 1
#define PIECES 6
#define ROWS ${rows}
#define TARGETS ${columns}
#include "reduce.clh"
#include "moment.clh"
typedef PASTE(REAL_NAME, ${width}) targetv;
typedef PASTE(WHOLE_NAME, ${width}) targetm;
#define LOAD_TARGETS(p) PASTE(vload, ${width})(0, p)
#define STORE_TARGETS(v, p) PASTE(vstore, ${width})(v, 0, p)
"""
TILE = """
<% in_registers = row_tiles * target_tiles == 1 %>
  const int lid = get_local_id(0), target_lane = lid / ${row_lanes}, row_lane = lid % ${row_lanes};
  const int library = 0, tile = get_group_id(0), n_tiles = get_num_groups(0), row0 = tile * ROWS, n_rows = ${n_rows};
  const int n_padded = ${n_padded}, column_begin = ${column_begin}, column_end = ${column_end}, block = column_begin;
  const int target_stride = ${target_stride}, sums_stride = TARGETS;
%if row_lanes > 1:
  local real shared[${row_lanes} * TARGETS] __attribute__((aligned(64)));
%endif
%if in_registers:
%for r in range(rows_each):
%for v in range(vectors):
  targetv p${r}_${v} = LOAD_TARGETS(
      p + (row0 + row_lane * ${rows_each} + ${r}) * TARGETS + ${v * target_lanes * width} + target_lane * ${width});
%endfor
%endfor
%else:
  local real p_tile[ROWS * TARGETS] __attribute__((aligned(64)));
  for (int k = 0; k < ROWS * TARGETS; ++k) p_tile[k] = p[row0 * TARGETS + k];
%endif
  ${sums.of_tile()}
"""


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize(
    "layout",
    [
        {"row_lanes": 4, "target_lanes": 2, "rows_each": 3, "vectors": 2, "row_tiles": 1, "target_tiles": 1},
        {"row_lanes": 1, "target_lanes": 1, "rows_each": 4, "vectors": 1, "row_tiles": 4, "target_tiles": 4},
    ],
    ids=["registers", "local"],
)
def test_predictions_of_a_tile_become_sums(device, layout, gaps):
    """Of three tiles, the last of which is not full; columns behind the last target are left alone."""
    width, n_rows, column_begin = 4, 29, 3
    rows = layout["row_lanes"] * layout["row_tiles"] * layout["rows_each"]
    columns = layout["target_lanes"] * layout["target_tiles"] * layout["vectors"] * width
    n_tiles, group = -(-n_rows // rows), layout["row_lanes"] * layout["target_lanes"]
    column_end, target_stride = column_begin + columns - width, column_begin + columns
    p, o = predictions(n_tiles * rows, columns, gaps)
    targets = np.concatenate([np.full((len(o), column_begin), GAP, np.float32), o], axis=1)
    predicted = np.random.default_rng(1).random(len(p)) < 0.8 if gaps else np.ones(len(p), bool)
    inputs = {
        "p": p,
        "targets": targets,
        "columns": np.stack([0 * predicted, 0 * predicted, predicted]).astype(np.float32),
    }
    found = run_fragment(
        device, TILE_HEAD, TILE, inputs, {"sums": np.full((n_tiles, 6, columns), -1, np.float32)},
        items=n_tiles * group, group=group,
        gaps=gaps, width=width, rows=rows, columns=columns, n_rows=n_rows, n_padded=len(p), column_begin=column_begin,
        column_end=column_end, target_stride=target_stride, **layout,
    )["sums"]  # fmt: skip
    counted = (o < GAP) & predicted[:, None] & (np.arange(len(p)) < n_rows)[:, None]
    for tile in range(n_tiles):
        of_tile = slice(tile * rows, (tile + 1) * rows)
        expected = sums_of(p[of_tile], o[of_tile], counted[of_tile])[:, : columns - width]
        np.testing.assert_allclose(found[tile, :, : columns - width], expected, rtol=3e-6, atol=1e-5)
    assert (found[:, :, columns - width :] == -1).all()


def test_sums_of_tiles_become_rho(device):
    """By columns of two libraries, of which some have too few rows, or do not vary."""
    n_tiles, rows, n_columns, column_begin, stride = 4, 25, 6, 2, 8
    p, o = (
        np.stack(pair)
        for pair in zip(*(predictions(n_tiles * rows, n_columns, True, seed) for seed in (3, 4)), strict=True)
    )
    o[0, :, 1] = GAP  # no row at all
    o[0, :, 2] = np.where(np.arange(n_tiles * rows) < 2, p[0, :, 2], GAP)  # two rows
    o[1, :, 0] = 7.5  # constant
    o[1, :rows, 3] = o[1, 2 * rows : 3 * rows, 3] = GAP  # tiles without rows
    p[1, 2 * rows :, 4] += 1000  # the tiles' means are far apart
    sums = np.zeros((2, n_tiles, 6, stride), np.float32)
    for library in range(2):
        for tile in range(n_tiles):
            of_tile = library, slice(tile * rows, (tile + 1) * rows)
            sums[library, tile, :, :n_columns] = sums_of(p[of_tile], o[of_tile], o[of_tile] < GAP)
    target_of = np.random.default_rng(5).permutation(column_begin + n_columns).astype(np.int32)
    text = TILE_HEAD + "${sums.score()}"
    arguments = {
        "sums": sums, "sums_stride": np.int32(stride), "n_tiles": np.int32(n_tiles),
        "column_begin": np.int32(column_begin),
        "column_end": np.int32(column_begin + n_columns), "target_of": target_of, "first_library": np.int32(1),
        "rho_stride": np.int32(9), "rho": np.full((3, 9), -5, np.float32),
    }  # fmt: skip
    found = run_kernel(
        device, text, "smap_score", arguments, ("rho",), items=(n_columns + 3, 2), width=4, rows=rows, columns=8
    )["rho"]
    expected = np.full((3, 9), -5.0)
    for library in range(2):
        for column in range(n_columns):
            of = library, o[library, :, column] < GAP, column
            defined = of[1].sum() > 2 and o[of].std() > 0
            expected[1 + library, target_of[column_begin + column]] = (
                np.corrcoef(p[of], o[of])[0, 1] if defined else np.nan
            )
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-6)
    assert np.isnan(expected).sum() == 3
