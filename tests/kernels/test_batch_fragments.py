"""Fragments of the kernel for many short matrices by themselves, on a matrix at a time: the same counts by both."""

from __future__ import annotations

import functools

import numpy as np
import pytest
from fragment_helpers import run_fragment

from pyedmcl.reference.recurrence import compared, line_counts, points_of

# Work-items of a group, and the lanes of each: of recurrence_batch_group.mako and of recurrence_batch_vectors.mako.
WAYS = {"item": (1, 1), "group": (16, 1), "vectors-8": (1, 8), "vectors-16": (1, 16)}
HEAD = """
<%namespace name="group" file="recurrence_batch_group.mako"/>
<%namespace name="vectors" file="recurrence_batch_vectors.mako"/>
<% part = vectors if lanes > 1 else group %>
#define WG ${wg}
#define TWO_WORDS(at, row, left) (*(at) | ((left) > 32 ? (ulong)(at)[row] << 32 : 0))
#define LOWEST(bits) ((int)popcount(((bits) & -(bits)) - 1))
#include "column_runs.clh"
#include "transpose.clh"
${part.make_blocks()}
${part.count_lines()}
"""
MATRIX = """
<%
spares = lanes if lanes > 1 else 0
behind = (lambda at: f", -{at} - {spares}") if lanes > 1 else (lambda at: "")
%>
  const int n_a = shape[0], n_b = shape[1], theiler = shape[2], words_a = (n_a + 31) / 32, words_b = (n_b + 31) / 32;
  const int stride = 32 * words_a, lengths = max(n_a, n_b) + 1;
  const int n_diagonals = ${"stride" if symmetric else "32 * (words_a + words_b)"};
  const int k_first = ${"0" if symmetric else "-stride"};
  global uint* lines = numbers + ${spares};
%if symmetric:
  mirror_bits(words_a, stride, bits);
  barrier(CLK_GLOBAL_MEM_FENCE);
%endif
  make_diagonals(words_a, words_b, stride, n_diagonals, bits, diagonals);
  barrier(CLK_GLOBAL_MEM_FENCE);
  ulong own[5] = {0, 0, 0, 0, 0};
  count_columns(n_a, n_b, stride, bits, lines + lengths, lines + 2 * lengths, lines + 3 * lengths, per_column, own
                ${behind("lengths")});
  count_diagonals(n_a, n_b, n_diagonals, k_first, theiler, diagonals, lines, per_diagonal${behind(0)});
  for (int k = 0; k < 5; ++k) sums[i * 5 + k] = own[k];
"""


def words_of(matrix):
    """Cells (row, column) as words: [row / 32][column], padded to whole blocks."""
    rows, columns = matrix.shape
    padded = np.pad(matrix, ((0, -rows % 32), (0, -columns % 32)))
    return (
        np.packbits(padded.reshape(-1, 32, padded.shape[1]), axis=1, bitorder="little")
        .swapaxes(1, 2)
        .copy()
        .view("<u4")[..., 0]
    )


@functools.cache
def matrices(symmetric):
    """Matrices of many densities and sizes, each with a Theiler window and its counts."""
    rng, cases = np.random.default_rng(symmetric), []
    sizes = ((1, 1), (31, 33), (33, 31), (64, 64), (70, 45), (45, 70), (130, 97))
    for (rows, columns), share in zip(sizes * 3, np.linspace(0, 1, 3 * len(sizes)), strict=True):
        matrix = rng.random((rows, rows if symmetric else columns)) < share
        if share > 0.5:  # longer runs
            matrix = np.repeat(matrix, 5, axis=0)[:rows]
        if symmetric:
            matrix = np.tril(matrix) | np.tril(matrix).T
        cases += [(matrix, theiler, line_counts(matrix, theiler=theiler)) for theiler in (0, 1, 4)]
    return cases


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_lines_of_a_matrix_are_counted(device, way, symmetric):
    wg, lanes = WAYS[way]
    for matrix, theiler, expected in matrices(symmetric):
        n_b, n_a = matrix.shape
        bits, lengths = words_of(matrix), max(n_a, n_b) + 1
        if symmetric:  # what is made of its mirror image, and what no one has written so far
            j, a = np.indices(bits.shape)
            bits[a // 32 > j] = 0xDEADBEEF
        diagonals = np.full(2 * bits.size + 64 * (len(bits) + bits.shape[1] // 32), 0xFFFFFFFF, np.uint32)
        outputs = {
            "bits": bits, "diagonals": diagonals,
            "numbers": np.zeros((lanes if lanes > 1 else 0) + 4 * lengths, np.uint32),
            "per_column": np.zeros(n_a, np.uint16), "per_diagonal": np.zeros(n_a + n_b, np.uint16),
            "sums": np.zeros((wg, 5), np.uint64),
        }  # fmt: skip
        found = run_fragment(
            device, HEAD, MATRIX, {"shape": np.array([n_a, n_b, theiler], np.int32)}, outputs, items=wg, group=wg,
            wg=wg, lanes=lanes, symmetric=symmetric,
        )  # fmt: skip
        np.testing.assert_array_equal(found["bits"], words_of(matrix))
        kinds = found["numbers"][len(found["numbers"]) - 4 * lengths :].reshape(4, lengths)
        for kind, counts in zip(("diagonals", "verticals", "whites", "white_borders"), kinds, strict=True):
            np.testing.assert_array_equal(np.trim_zeros(counts, "b"), np.trim_zeros(expected[kind], "b"), err_msg=kind)
        names = ("period_sum", "period_count", "gap_sum", "gap_count", "points")
        assert found["sums"].sum(axis=0).tolist() == [expected[name] for name in names]
        np.testing.assert_array_equal(found["per_column"], expected["columns"])
        # A diagonal is b - a here, and a - b there.
        along = expected["per_diagonal"][n_b - 1 :] if symmetric else expected["per_diagonal"][::-1]
        np.testing.assert_array_equal(found["per_diagonal"][: len(along)], along)


SCREEN_HEAD = """
<%namespace name="vectors" file="recurrence_batch_vectors.mako"/>
#define UNFUSED
#define METRIC ${metric}
#include "metric.clh"
static uint ones(const int n) { return n >= 32 ? 0xffffffffu : (1u << n) - 1; }
static uint${lanes} exact_words(global const real* x, global const real* y, const int step_x, const int step_y,
                                const int a, const int j, const real outer, const real inner) {
  uint words[${lanes}];
  for (int l = 0; l < ${lanes}; ++l) {
    words[l] = 0;
    for (int b = 0; b < 32; ++b) {
      double s = 0;
      for (int e = 0; e < ${m}; ++e) {
        const double d = x[a + l + e * step_x] - y[32 * j + b + e * step_y], q = TERM(d);
        s = JOIN_OR_NAN(s, q);
      }
      words[l] |= (uint)(s <= outer${" && s >= inner" if corridor else ""}) << b;
    }
  }
  return vload${lanes}(0, words);
}
${vectors.screen_bits()}
"""
SCREENED = """
  const int n_a = shape[0], n_b = shape[1], stride = (n_a + 31) / 32 * 32, step_x = shape[2], step_y = shape[3];
  copy_coarse(x, step_x, n_a, ${pitch}, x32);
  copy_coarse(y, step_y, n_b, ${pitch}, y32);
  screen_bits(x, y, step_x, step_y, x32, y32, n_a, n_b, stride, ${pitch}, limits, bits);
"""


@pytest.mark.parametrize("wrongly", ["in", "out"])
@pytest.mark.parametrize("metric", ["euclidean", "maximum"])
@pytest.mark.parametrize(
    ("embedded", "symmetric", "corridor"), [(False, True, False), (True, False, True), (False, False, True)]
)
def test_cells_that_float32_cannot_tell_are_found_again(device, metric, embedded, symmetric, corridor, wrongly):
    """Of series so far from 0 that float32 has some of them wrong, in few blocks of 16 columns; a value is missing."""
    m, n_a, n_b, pitch = 3, 75, 75 if symmetric else 50 if embedded else 64, 160
    rng = np.random.default_rng(n_b)
    series = [1000 + rng.standard_normal((m, 128) if embedded else 128 + m - 1) for _ in range(2)]
    for values in series:
        values[..., 20] = np.nan
    if symmetric:
        series[1] = series[0]
    points = [
        values.T[:n] if embedded else points_of(values, m, 1)[:n] for values, n in zip(series, (n_a, n_b), strict=True)
    ]
    sums = compared(points[1], points[0], metric)
    coarse = compared(*(p.astype(np.float32).astype(float) for p in reversed(points)), metric)
    # Each limit is at a sum that float32 has on the wrong side, and a band around it is no wider than float32 errs.
    off, share = coarse - sums, sums.ravel().argsort().argsort().reshape(sums.shape) / sums.size
    high, low = (sums.flat[np.where((share > 0.5) & (share < 0.7), sign * off, 0).argmax()] for sign in (1, -1))
    outer = high if wrongly == "out" else np.nextafter(low, 0)
    high, low = (sums.flat[np.where((share > 0.2) & (share < 0.4), sign * off, 0).argmax()] for sign in (1, -1))
    inner = low if wrongly == "out" else np.nextafter(high, np.inf)
    margin = 2 * np.abs(off[share < 0.7]).max()
    expected = (sums <= outer) & (sums >= inner) if corridor else sums <= outer
    assert (expected != ((coarse <= outer) & (coarse >= inner) if corridor else coarse <= outer)).any()
    limits = [outer, inner, outer - margin, outer + margin, inner - margin, inner + margin]
    stepped = 128 if embedded else 1
    inputs = {"shape": np.array([n_a, n_b, stepped, stepped], np.int32), "x": series[0], "y": series[1],
              "limits": np.array(limits)}  # fmt: skip
    blocks = words_of(expected)
    outputs = {"bits": np.full_like(blocks, 0xFFFFFFFF)} | {
        f"{side}32": np.zeros(m * pitch, np.float32) for side in "xy"
    }
    found = run_fragment(
        device, SCREEN_HEAD, SCREENED, inputs, outputs, dtype="float64", lanes=8, m=m, metric=metric, embedded=embedded,
        symmetric=symmetric, corridor=corridor, pitch=pitch,
    )["bits"]  # fmt: skip
    j, a = np.indices(blocks.shape)
    looked_at = (a // 32 <= j) if symmetric else np.ones(blocks.shape, bool)  # the others are mirrored
    np.testing.assert_array_equal(found[looked_at], blocks[looked_at])
