"""Fragments of the kernels of recurrence analysis by themselves, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from fragment_helpers import run_fragment

from pyedmcl.reference.rqa import compared, points_of

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
