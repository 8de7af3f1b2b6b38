"""Tests that have loopy write a text need it."""

from __future__ import annotations

import pytest

from pyedmcl.errors import MissingExtraError
from pyedmcl.kernels import loopy_source


def why_no_loopy():
    try:
        loopy_source._installed("this test")
    except MissingExtraError as error:
        return str(error)
    return ""


needs_loopy = pytest.mark.skipif(bool(why_no_loopy()), reason=why_no_loopy() or "loopy is there")
