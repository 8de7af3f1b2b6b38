"""fma() of doubles that rounds twice: found out when a device is opened, and computed by other means there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from device_helpers import LLVMPIPE

from pyedmcl.device import quirks, select
from pyedmcl.device.quirks import Quirks, quirks_for
from pyedmcl.device.select import open_device
from pyedmcl.kernels import build, spec, texts
from pyedmcl.kernels.kernel_spec import declared

TEXT = """
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
kernel void fused(global const double* a, global const double* b, global const double* c, global double* out) {
  const int i = get_global_id(0);
  vstore4(fma(vload4(i, a), vload4(i, b), vload4(i, c)), i, out);
}
"""
SLOTS = declared("fused(const double* a, b, c; double* out)", False)["fused"]


@pytest.fixture
def mesa(monkeypatch, tmp_path):
    """Mesa's driver of which nothing is known."""
    monkeypatch.setenv("PYEDMCL_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(quirks, "_found", {})
    quirks_for.cache_clear()
    yield replace(LLVMPIPE, driver="25.0.7")
    quirks_for.cache_clear()


_TWICE = "#pragma OPENCL FP_CONTRACT OFF\n#define fma(a, b, c) ((a) * (b) + (c))\n"


class Opened:
    """An executor that says to be of another device, and may take two roundings for a fused operation."""

    asked = 0

    def __init__(self, inner, info, *, twice):
        self._inner, self.info, self._twice = inner, info, twice

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def build(self, source, options=()):
        Opened.asked += 1
        return self._inner.build((_TWICE if self._twice else "") + source, options)


@pytest.mark.parametrize("twice", [False, True])
def test_a_device_is_asked_once_for_all_processes(mesa, one_device, twice, monkeypatch):
    inner = open_device(one_device)
    monkeypatch.setattr(select, "_open", {})
    monkeypatch.setattr(select, "discover", lambda executor: [mesa])
    monkeypatch.setattr(select.registry, "open_executor", lambda info, context: Opened(inner, info, twice=twice))
    Opened.asked = 0
    assert quirks_for(mesa).fused_double
    select.executor_for(mesa)
    assert quirks_for(mesa).fused_double is not twice
    assert ("software_fma.clh" in build.text_for(spec("highest"), {"dtype": "float64"}, mesa)) is twice
    for forgotten in (select._open, quirks._found):
        forgotten.clear()
    quirks_for.cache_clear()
    assert quirks_for(mesa).fused_double is not twice, "what is kept counts before the device is opened"
    select.executor_for(mesa)
    assert Opened.asked == 1


def test_drivers_that_were_tested_and_devices_without_doubles_are_not_asked(mesa, one_device):
    class Never:
        def __getattr__(self, name):
            raise AssertionError(name)

    for info in (open_device(one_device).info, replace(mesa, fp64=False)):
        silent = Never()
        silent.info = info
        assert not quirks.ask(silent)
        assert quirks_for(info).fused_double


def cases():
    """Numbers of all sizes; products that meet the sum at a tie, cancel it, or are lost in it; the smallest ones."""
    rng = np.random.default_rng(3)
    n = 40_000

    def numbers(least, most):
        return np.ldexp(rng.uniform(1, 2, n) * rng.choice([-1, 1], n), rng.integers(least, most, n))

    a, b, c = (numbers(-60, 60) for _ in range(3))
    parts = [(a, b, c), (a, b, -(a * b)), (a, b, -(a * b) * (1 + 2.0**-52)), (a, b, a * b * 2.0**53)]
    short = np.ldexp(rng.integers(1, 1 << 27, (2, n)).astype(float), -20)  # products of few bits make ties
    parts += [(short[0], short[1], np.ldexp(rng.integers(-9, 9, n) + 0.5, 53)), (short[0], short[1], 2.0**54 + 0 * a)]
    parts += [(numbers(-500, -400), numbers(-500, -400), numbers(-1000, -900))]
    parts += [(numbers(300, 480), numbers(300, 480), c), (numbers(-500, -460), numbers(-460, -440), c)]
    parts += [(0 * a, b, c), (a, b, 0 * c), (0 * a, b, 0 * c)]
    return [np.concatenate([part[place] for part in parts]) for place in range(3)]


def test_the_software_rounds_once(one_device):
    executor = open_device(one_device)
    a, b, c = cases()
    answers = []
    for text in (TEXT, texts.prelude(Quirks(fused_double=False)) + TEXT):
        out = executor.allocate(a.nbytes)
        executor.launch(executor.build(text).kernel("fused", SLOTS), (a.size // 4,), None, a=executor.upload(a),
                        b=executor.upload(b), c=executor.upload(c), out=out)  # fmt: skip
        answers.append(executor.download(out, np.empty_like(a)))
    twice = a * b + c
    assert np.mean(answers[0] != twice) > 0.1, "else the device rounds twice itself"
    np.testing.assert_array_equal(answers[1], answers[0])
