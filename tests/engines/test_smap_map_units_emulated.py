"""The kernel for matrix units with its PTX written in C, so that any device with half conversions can run it."""

from __future__ import annotations

import re
from dataclasses import replace
from unittest import mock

import numpy as np
import pytest
from smap_helpers import HARD, gaps, plain

import pyedmcl
from pyedmcl.device.opencl import OpenCLExecutor
from pyedmcl.device.select import open_device
from pyedmcl.engines import smap_map_kernels

# Halves are stored and read as bits. Work-items that are executed together exchange theirs through local memory.
EMULATED = """
inline uint bits_of_halves(const float2 v) {
  ushort h[2];
  vstore_half2_rte(v, 0, (half*)h);
  return h[0] | (uint)h[1] << 16;
}
inline float2 from_halves(const uint bits) {
  const ushort h[2] = {bits & 0xffff, bits >> 16};
  return vload_half2(0, (const half*)h);
}
#define SPLIT_IN_HALVES(high, low, x, y)                                         \\
  {                                                                              \\
    high = bits_of_halves((float2)(x, y));                                       \\
    low = bits_of_halves((float2)(x, y) - from_halves(high));                    \\
  }
inline void product_in_double(local uint* all, const int lid, const float* h0, const float* h1, const float4 y,
                              double* sums) {
  local float* mine = (local float*)all + lid * 12;
  for (int j = 0; j < 4; ++j) mine[j] = h0[j], mine[4 + j] = h1[j];
  vstore4(y, 0, mine + 8);
  barrier(CLK_LOCAL_MEM_FENCE);
  local const float* warp = (local const float*)all + lid / 32 * 32 * 12;
  const int row = lid % 32 / 4, two = lid % 4 * 2;
  for (int j = 0; j < 4; ++j)
    for (int k = 0; k < 4; ++k)
      for (int c = 0; c < 2; ++c)
        for (int r = 0; r < 2; ++r)
          sums[2 * r + c] = fma((double)warp[(row * 4 + k) * 12 + 4 * r + j],
                                (double)warp[((two + c) * 4 + k) * 12 + 8 + j], sums[2 * r + c]);
  barrier(CLK_LOCAL_MEM_FENCE);
}
inline void product(local uint* all, const int lid, const uint* own, float* sums) {
  for (int i = 0; i < 6; ++i) all[lid * 6 + i] = own[i];
  barrier(CLK_LOCAL_MEM_FENCE);
  local const uint* warp = all + lid / 32 * 32 * 6;
  const int row = lid % 32 / 4, two = lid % 4 * 2;
  for (int pair = 0; pair < 8; ++pair) {
    const int k = pair % 4, later = pair / 4;
    local const uint* of_rows = warp + (row * 4 + k) * 6 + 2 * later;
    const float2 a = from_halves(of_rows[0]), b = from_halves(of_rows[1]);
    for (int c = 0; c < 2; ++c) {
      const float2 y = from_halves(warp[((two + c) * 4 + k) * 6 + 4 + later]);
      sums[c] += a.x * y.x + a.y * y.y;
      sums[2 + c] += b.x * y.x + b.y * y.y;
    }
  }
  barrier(CLK_LOCAL_MEM_FENCE);
}
#define PRODUCT_OF_HALVES(c0, c1, d0, d1, a0, a1, a2, a3, b0, b1)                \\
  {                                                                              \\
    const uint own_[6] = {a0, a1, a2, a3, b0, b1};                               \\
    float sums_[4] = {c0, c1, d0, d1};                                           \\
    product(exchanged, lid, own_, sums_);                                        \\
    c0 = sums_[0], c1 = sums_[1], d0 = sums_[2], d1 = sums_[3];                  \\
  }
#define PRODUCT_IN_DOUBLE(c0, c1, d0, d1, h0, h1, y)                             \\
  {                                                                              \\
    double sums_[4] = {c0, c1, d0, d1};                                          \\
    product_in_double(exchanged, lid, h0, h1, y, sums_);                         \\
    c0 = sums_[0], c1 = sums_[1], d0 = sums_[2], d1 = sums_[3];                  \\
  }
#define NEAR_ROOT(x) sqrt(x)
#define NEAR_EXP2(x) exp2(x)
#define COPY_LATER(to, from, there)                                              \\
  for (int i_ = 0; i_ < 4; ++i_) ((local uint*)(to))[i_] = (there) ? ((global const uint*)(from))[i_] : 0;
#define COPIES_DONE()
"""


def in_c(text):
    """A text for matrix units without PTX. All work-items take part in each product, since these have barriers here."""
    begin, end = text.index("#define SPLIT_IN_HALVES"), text.index("\n", text.index("#define COPIES_DONE"))
    text = text[:begin] + EMULATED + text[end:]
    assert "asm" not in text
    text, n = re.subn(r"const int any_row = [^;]*;", "const int any_row = 1;\n  local uint exchanged[WG * 12];", text)
    assert n == 1
    return text


@pytest.fixture
def emulated(one_device, monkeypatch):
    """A device that stands for one with matrix units."""
    if open_device(one_device).info.kind != "cpu":
        pytest.skip("local memory of processors is as large as that of a GPU with matrix units")
    built, real = OpenCLExecutor.build, smap_map_kernels.quirks_for
    monkeypatch.setattr(
        smap_map_kernels, "quirks_for", lambda info: replace(real(info), matrix_units=True, local_bytes=227 << 10)
    )
    with mock.patch.object(
        OpenCLExecutor, "build",
        lambda self, text, options=(): built(self, in_c(text) if "smap_arrange" in text else text, options),
    ):  # fmt: skip
        yield one_device


def errs(device, x, precision="compact", **options):
    """The largest error of rho against float64."""
    found = pyedmcl.xmap(x, method="smap", precision=precision, device=device, **options)
    assert precision == "full" or found.provenance["precision"][0]["full"] == 0
    full = pyedmcl.xmap(x, method="smap", dtype="float64", device=device, **options)
    np.testing.assert_array_equal(np.isnan(found.rho), np.isnan(full.rho))
    return np.nanmax(np.abs(found.rho - full.rho))


# Of numbers that are split into halves, and in double.
LARGEST = pytest.mark.parametrize(("precision", "largest"), [("compact", 2e-6), ("full", 5e-7)])


@pytest.mark.parametrize("kind", ["spikes", "spikes on lorenz", "far from zero"])
@pytest.mark.parametrize("precision", ["compact", "full"])
def test_hard_data_err_little(emulated, kind, precision):
    assert errs(emulated, HARD[kind](), precision, E=3, theta=8.0) < 5e-6


@pytest.mark.parametrize("options", [{"E": 1, "Tp": 2}, {"E": 8, "exclusion_radius": 40}], ids=str)
@pytest.mark.parametrize("data", [plain, gaps])
@LARGEST
def test_rows_in_registers_or_local_memory_and_gaps_err_little(emulated, data, options, precision, largest):
    assert errs(emulated, data(), precision, theta=2.0, **options) < largest


@pytest.mark.parametrize(("precision", "targets", "largest"), [("compact", 210, 2e-6), ("full", 290, 5e-7)])
def test_two_blocks_of_targets_err_little(emulated, precision, targets, largest):
    """In double a block of 290 has more columns than a group has work-items."""
    x = np.random.default_rng(targets).standard_normal((150, targets + 2)).cumsum(axis=1)
    assert errs(emulated, x[:, :2], precision, targets=x[:, 2:], E=3, theta=1.0) < largest


def test_in_double_a_pair_has_the_same_bits_whichever_targets_stand_beside_it(emulated):
    x = np.random.default_rng(3).standard_normal((200, 23)).cumsum(axis=1)
    asked = {"method": "smap", "E": 3, "theta": 1.0, "device": emulated}
    together, alone = pyedmcl.xmap(x, **asked), pyedmcl.xmap(x[:, :2], targets=x[:, [20]], **asked)
    np.testing.assert_array_equal(together.rho[:2, 20], alone.rho[:, 0])
