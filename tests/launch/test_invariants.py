"""Answers of a device that cannot be: an error that names it, and no result."""

from __future__ import annotations

import numpy as np
import pytest

import pyedmcl
from pyedmcl.cli.output import COMPUTE, code_of
from pyedmcl.device.opencl import OpenCLExecutor
from pyedmcl.device.select import open_device
from pyedmcl.errors import WrongResultError
from pyedmcl.launch.staging import require_rho, require_rows


@pytest.fixture
def broken(one_device, monkeypatch):
    """``broken(like, change)``: what is downloaded into arrays that ``like`` takes is changed.

    Sequences that are gone through again are forgotten, since they download several arrays as one.
    """

    def make(like, change):
        open_device(one_device).sets.clear()
        plain = OpenCLExecutor.download

        def download(self, buffer, into, offset=0):
            found = plain(self, buffer, into, offset)
            if like(found):
                change(found)
            return found

        monkeypatch.setattr(OpenCLExecutor, "download", download)

    return make


X = np.random.default_rng(1).standard_normal((120, 3)).cumsum(axis=0)


def floats(shape):
    return lambda array: array.dtype.kind == "f" and array.shape == shape


@pytest.mark.parametrize("value", [1.5, -2.0, np.inf])
def test_a_correlation_beyond_1_is_no_result(one_device, broken, value):
    def change(rho):
        rho[1, 2] = value

    broken(floats((3, 3)), change)
    with pytest.raises(WrongResultError, match=r"gave correlations from .* \(kernel lookup\).*Please report"):
        pyedmcl.xmap(X, E=2, device=one_device)


def test_the_error_names_device_and_driver_and_is_no_input_error(one_device):
    executor = open_device(one_device)
    with pytest.raises(WrongResultError) as caught:
        require_rho(executor, np.array([0.5, np.nan, -7.0]), "ccm")
    assert executor.info.name in str(caught.value) and executor.info.driver in str(caught.value)
    assert code_of(caught.value) == COMPUTE
    for fine in ([], [np.nan], [np.nan, 1.0], [1.0000005, -1.0]):
        require_rho(executor, np.array(fine), "ccm")


@pytest.mark.parametrize("row", [120, -2, 1 << 30])
def test_neighbours_are_rows_of_the_library(one_device, broken, row):
    def change(rows):
        rows[7, 1] = row

    broken(lambda array: array.dtype == np.int32 and array.shape == (120, 3), change)
    with pytest.raises(WrongResultError, match="neighbours in rows"):
        pyedmcl.knn(X[:, 0], E=2, device=one_device)
    require_rows(open_device(one_device), np.array([-1, 0, 119], np.int32), 120, "knn")


@pytest.mark.parametrize("more", [{}, {"theiler": 3}])
def test_lines_sum_to_the_recurrent_cells(one_device, broken, more):
    def change(histogram):
        histogram[1] += 1

    broken(lambda array: array.dtype == np.int64 and array.ndim == 1 and len(array) > 1, change)
    with pytest.raises(WrongResultError, match=r"(vertical|diagonal) lines of .* cells are recurrent"):
        pyedmcl.rqa(X[:, 0], m=2, radius=1.0, device=one_device, **more)


def test_lines_of_windows_and_of_parts_do_too(one_device, broken, tmp_path):
    def change(histogram):
        histogram[..., 1, 2] += 1

    broken(lambda array: array.dtype == np.uint32 and array.ndim == 3, change)
    with pytest.raises(WrongResultError, match="vertical lines of"):
        pyedmcl.windowed_rqa(X[:, 0], m=2, radius=1.0, window=60, step=20, device=one_device)

    def change_codes(lines):
        lines[:, 1] += 1

    broken(lambda array: array.dtype == np.uint32 and array.ndim == 2, change_codes)
    with pytest.raises(WrongResultError, match=r"vertical lines of .* recurrence_batch"):
        pyedmcl.rqa_batch(X, m=2, radius=1.0, device=one_device)

    def miscount(histogram):
        histogram[-1] += 1

    broken(lambda array: array.dtype == np.int64 and array.ndim == 1, miscount)
    with pytest.raises(WrongResultError, match="lines of"):
        pyedmcl.rqa(X[:, 0], m=2, radius=1.0, device=one_device, checkpoint=tmp_path / "part.npz")
