"""Whether a driver keeps its word: ``fma()`` of doubles rounds once, as OpenCL demands and some drivers do not.

Mesa's rusticl computes it by a product and a sum on processors (25.0). Results would differ in the last bit from
those of other devices, so that such a device gets ``clkernels/software_fma.clh``. A device is asked when it is opened,
and the answer is kept with its driver's version; drivers that were tested are not asked.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from .info import DeviceInfo
from .program_cache import ProgramCache
from .slots import Slot

if TYPE_CHECKING:
    from .executor import Executor

#: Runtimes that round once: tested on these, or for AMD what each of its GPUs does.
_TRUSTED = ("intel-cpu", "nvidia", "amd", "pocl", "oclgrind")
_TEXT = """
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
kernel void fused(global const double* a, global const double* b, global const double* c, global double* out) {
  const int i = get_global_id(0);
  out[i] = fma(a[i], b[i], c[i]);
}
"""
_SLOTS = (*(Slot(name, np.dtype(np.float64), is_buffer=True, is_const=True) for name in "abc"),
          Slot("out", np.dtype(np.float64), is_buffer=True))  # fmt: skip
_COUNT = 64
_OPTIONS = ("probe",)
# What was found in this process, by device.
_found: dict[DeviceInfo, bool] = {}


def rounds_once(info: DeviceInfo) -> bool:
    """Whether ``fma()`` of doubles is one operation there, as far as that is known: if it is not, it counts as one."""
    if not info.fp64 or info.runtime in _TRUSTED:
        return True
    if info not in _found:
        kept = ProgramCache(info).load(_TEXT, _OPTIONS)
        if kept is None:
            return True
        _found[info] = kept == b"1"
    return _found[info]


def ask(executor: Executor) -> bool:
    """Find it out, where it is not known yet; whether something was found that was not expected.

    Raises what an executor raises.
    """
    info = executor.info
    if not info.fp64 or info.runtime in _TRUSTED or info in _found:
        return False
    kept = ProgramCache(info)
    answer = kept.load(_TEXT, _OPTIONS)
    if answer is None:
        answer = b"%d" % _computed(executor)
        kept.keep(_TEXT, _OPTIONS, answer)
    _found[info] = answer == b"1"
    return not _found[info]


def _computed(executor: Executor) -> bool:
    """What products leave over when they are rounded: exactly that, or 0 where the sum gets the rounded product."""
    random = np.random.default_rng(1)
    a, b = (1 + random.integers(0, 1 << 20, _COUNT) * 2.0**-30 for _ in range(2))
    expected = [float(Fraction(x) * Fraction(y) - Fraction(x * y)) for x, y in zip(a, b, strict=True)]
    inputs = {name: executor.upload(values) for name, values in (("a", a), ("b", b), ("c", -(a * b)))}
    out = executor.allocate(8 * _COUNT)
    kernel = executor.build(_TEXT).kernel("fused", _SLOTS)
    executor.launch(kernel, (_COUNT,), None, **inputs, out=out)
    return bool((executor.download(out, np.empty(_COUNT)) == expected).all())

