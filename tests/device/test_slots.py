"""Arguments of kernels: what suits which slot, and what is said of what does not."""

from __future__ import annotations

import struct
from types import SimpleNamespace

import numpy as np
import pytest

from pyedmcl.device.info import Slot, check, packer
from pyedmcl.errors import LaunchError

X, N, F = Slot("x", np.dtype("f4"), True, True), Slot("n", np.dtype("i4")), Slot("f", np.dtype("f8"))
BUFFER = SimpleNamespace(release=lambda: None, nbytes=4)


@pytest.mark.parametrize(
    ("dtype", "value"),
    [("i4", -5), ("u4", 1 << 31), ("i8", -(1 << 40)), ("u8", (1 << 64) - 1), ("u2", 65535), ("f4", 0.1), ("f8", 0.1),
     ("f4", np.float64(0.3)), ("f4", np.inf), ("i4", np.int64(7)), ("i4", True), ("f4", 3)],
)  # fmt: skip
def test_numbers_are_packed_as_numpy_would(dtype, value):
    packed = packer(Slot("n", np.dtype(dtype)))(value)
    assert packed == np.array(value).astype(dtype).tobytes()


@pytest.mark.parametrize(
    ("dtype", "value"), [("i4", 1 << 31), ("u4", -1), ("u8", -1), ("i4", 1.0), ("i8", np.float32(1)), ("i4", None)]
)
def test_numbers_that_would_change_are_refused(dtype, value):
    with pytest.raises((struct.error, TypeError)):
        packer(Slot("n", np.dtype(dtype)))(value)


def test_arguments_are_checked_without_a_device():
    check("k", (X, N, F), {"f": 1, "n": 2, "x": BUFFER})
    for wrong, said in (
        ({"n": 2, "x": BUFFER}, "kernel k: no value was given for f"),
        ({"n": 2, "x": BUFFER, "f": 1, "g": 1}, "kernel k: it has no argument g"),
        ({"n": BUFFER, "x": BUFFER, "f": 1}, "argument 'n' of kernel k is a number of type int32, and a buffer was"),
        ({"n": 2, "x": 3, "f": 1}, "argument 'x' of kernel k is a buffer of float32, and 3 was given"),
        ({"n": 2.0, "x": BUFFER, "f": 1}, "argument 'n' of kernel k is a number of type int32, and 2.0 was given"),
    ):
        with pytest.raises(LaunchError, match=said):
            check("k", (X, N, F), wrong)
