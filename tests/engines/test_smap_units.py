"""Sums of smap on matrix units: the same bits as without them, and the kernel with its PTX written in C."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from smap_helpers import between_rows

from pyedmcl.device.opencl import OpenCLExecutor
from pyedmcl.device.quirks import quirks_for
from pyedmcl.device.select import open_device
from pyedmcl.engines import smap_device
from pyedmcl.engines.smap import LocalFits
from pyedmcl.errors import DeviceMemoryError
from pyedmcl.kernels import spec
from pyedmcl.kernels.build import source
from pyedmcl.kernels.specs.smap import largest_tile, local_bytes
from pyedmcl.tuning.parameters import using

THETAS = np.array([0.0, 1.5, 6.0])
UNITS = {"wg": 256, "lanes_p": 32, "sub_p": 8, "rq": 8, "rp": 8, "tile": 16, "steps": 2, "parts": 16}
# Work-items that are executed together exchange their factors through local memory.
EMULATED = """
inline void product(local double* all, const int lid, const double a0, const double a1, const double b, double* sums) {
  all[3 * lid] = a0, all[3 * lid + 1] = a1, all[3 * lid + 2] = b;
  barrier(CLK_LOCAL_MEM_FENCE);
  local const double* warp = all + lid / 32 * 96;
  const int row = lid % 32 / 4, two = lid % 4 * 2;
  for (int k = 0; k < 4; ++k)
    for (int h = 0; h < 2; ++h)
      for (int c = 0; c < 2; ++c)
        sums[2 * h + c] = fma(warp[3 * (4 * row + k) + h], warp[3 * (4 * (two + c) + k) + 2], sums[2 * h + c]);
  barrier(CLK_LOCAL_MEM_FENCE);
}
#define PRODUCT_OF_DOUBLES(c0, c1, d0, d1, a0, a1, b0)  \\
  {                                                     \\
    double sums_[4] = {c0, c1, d0, d1};                 \\
    product(exchanged, lid, a0, a1, b0, sums_);         \\
    c0 = sums_[0], c1 = sums_[1], d0 = sums_[2], d1 = sums_[3]; \\
  }
#define SAME_FOR_ALL(x) 0  // all work-items take part in each product, since these have barriers here
#define EXACT_ROOT(x) sqrt(x)
#define COMPUTED(x)
"""


def in_c(text):
    """A text for matrix units without PTX."""
    begin, end = text.index("#define PRODUCT_OF"), text.index("#endif", text.index("#define EXACT_ROOT(x) exact"))
    text = text[:begin] + EMULATED + text[end + len("#endif") :]
    assert "asm" not in text
    return text.replace("moment sum_w = 0", "local double exchanged[WG * 3];\n  moment sum_w = 0", 1)


@contextmanager
def quirk(**changes):
    real = quirks_for
    with mock.patch.object(smap_device, "quirks_for", lambda info: replace(real(info), **changes)):
        yield


def sums(executor, case, layout, dtype, **options):
    """Moments (theta, query row, sum) and predictions."""
    library, y, rows, points, at = case
    with using(smap={"share_from": 2}, smap_shared=layout):
        engine = LocalFits(executor, library, y, rows, dtype=dtype, **{"exclusion_radius": 2, **options})
        try:
            engine.device.units = 13  # of these tiles some are cut into parts
            fits = engine.fit(points, at, THETAS)
            assert engine.device.layout == "shared"
            return engine.device.moments(len(at), len(THETAS), "shared"), fits.predicted
        finally:
            engine.release()


LAYOUTS = (
    ({}, 9), ({"wg": 64, "lanes_p": 8, "rq": 2, "rp": 6, "tile": 8, "parts": 1}, 9),
    ({"wg": 128, "lanes_p": 8, "rq": 4, "rp": 4, "parts": 2}, 3), ({"tile": 32}, 14),
)  # fmt: skip


@pytest.mark.parametrize(
    ("layout", "dims", "dtype", "options"),
    [
        *((*layout, "float32", {}) for layout in LAYOUTS), (*LAYOUTS[1], "float64", {}),
        (*LAYOUTS[2], "float32", {"knn": 40}),
    ],
    ids=str,
)
def test_sums_in_c_are_those_without_matrix_units(one_device, layout, dims, dtype, options):
    executor = open_device(one_device)
    if executor.info.kind != "cpu":
        pytest.skip("local memory of processors is as large as that of a GPU with matrix units")
    case, built = between_rows(45, dims), OpenCLExecutor.build
    with quirk(matrix_units=False):
        moments, predicted = sums(executor, case, {**UNITS, **layout}, dtype, **options)
    in_place = lambda self, text, flags=(): built(self, in_c(text) if "PRODUCT_OF_DOUBLES" in text else text, flags)  # noqa: E731
    with quirk(matrix_units=True, local_bytes=227 << 10), mock.patch.object(OpenCLExecutor, "build", in_place):
        on_units, predicted_on_units = sums(executor, case, {**UNITS, **layout}, dtype, **options)
    # A compiler may round the exponentials of several weights otherwise than those of one.
    largest = np.abs(moments).max(axis=2, keepdims=True)
    tolerance = {"float32": 2e-6, "float64": 1e-14}[dtype]
    assert np.abs((on_units - moments) / largest).max() < tolerance
    np.testing.assert_allclose(predicted_on_units, predicted, rtol=0, atol=100 * tolerance * np.abs(predicted).max())


@pytest.mark.parametrize(("layout", "dims"), LAYOUTS, ids=str)
@pytest.mark.parametrize(("dtype", "options"), [("float32", {}), ("float64", {}), ("float32", {"knn": 40})], ids=str)
def test_matrix_units_give_the_same_bits(one_device, layout, dims, dtype, options):
    executor = open_device(one_device)
    if not quirks_for(executor.info).matrix_units:
        pytest.skip("matrix units of this device are not used")
    case, layout = between_rows(700, dims), {**UNITS, **layout}
    on_units, predicted_on_units = sums(executor, case, layout, dtype, **options)
    with quirk(matrix_units=False):
        moments, predicted = sums(executor, case, layout, dtype, **options)
    np.testing.assert_array_equal(on_units, moments)
    np.testing.assert_array_equal(predicted_on_units, predicted)


def test_the_text_has_their_instructions_only_where_they_are_used():
    of_device = {"fma": "builtin", "minimum": "fmin"}
    given = {"coordinates": 8, "regressors": 9, "limited": True, "dtype": "float32"}
    with_units = source(spec("smap_shared"), {**given, **of_device, **UNITS, "matrix_units": True})
    without = source(spec("smap_shared"), {**given, **of_device, **UNITS, "matrix_units": False})
    assert "mma.sync.aligned.m16n8k4" in with_units and "asm" not in without


def declared_bytes(text):
    """Of the arrays in local memory that a text declares."""
    sizes = {"real": 4, "int": 4, "moment": 8}
    numbers = {name: int(value) for name, value in re.findall(r"#define (\w+) (\d+)\n", text)}
    arrays = re.findall(r"^  local (real|int|moment) \w+\[([^\]]*)\]", text, re.MULTILINE)
    return sum(sizes[kind] * eval(length, {}, numbers) for kind, length in arrays)


@pytest.mark.parametrize("matrix_units", [False, True])
@pytest.mark.parametrize(("layout", "dims"), LAYOUTS, ids=str)
def test_local_memory_is_no_more_than_said(layout, dims, matrix_units):
    given = {"coordinates": dims, "regressors": dims + 1, "limited": False, "dtype": "float32"}
    values = {**given, **UNITS, **layout, "matrix_units": matrix_units}
    declared = declared_bytes(source(spec("smap_shared"), {**values, "fma": "builtin", "minimum": "fmin"}))
    assert 0.5 * local_bytes(values) < declared <= local_bytes(values)


def test_a_tile_fits_into_local_memory_and_has_a_row_for_each_slice():
    values = {
        "coordinates": 20, "regressors": 21, "limited": False, "dtype": "float32", "matrix_units": False,
        **spec("smap_shared").defaults("gpu"),
    }  # fmt: skip
    needed = {tile: local_bytes({**values, "tile": tile}) for tile in (8, 16, 32)}
    assert [largest_tile({**values, "tile": 32}, n) for n in needed.values()] == list(needed)
    assert largest_tile(values, needed[8] - 1) == 0
    many_slices = {**values, "rq": 2}  # 16 of them
    assert largest_tile(many_slices, 1 << 20) == 16
    assert largest_tile(many_slices, local_bytes({**many_slices, "tile": 8})) == 0


def test_too_little_local_memory_is_told_with_its_numbers(one_device):
    with quirk(local_bytes=1000), pytest.raises(DeviceMemoryError, match=r"10 regressors .* bytes .* has 1,000"):
        sums(open_device(one_device), between_rows(45, 9), {}, "float32")
