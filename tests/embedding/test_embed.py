"""Delay tables: names, values and rows."""

from __future__ import annotations

import numpy as np
import pytest

import pyedmcl
from pyedmcl.errors import InputError


def test_delay_tables():
    data = {"a": np.arange(6.0), "b": np.arange(6.0) * 10}
    table = pyedmcl.embed(data, E=3, tau=2)
    assert table.names == ("a(t-0)", "a(t-2)", "a(t-4)", "b(t-0)", "b(t-2)", "b(t-4)")
    np.testing.assert_array_equal(table.values[4:], [[4, 2, 0, 40, 20, 0], [5, 3, 1, 50, 30, 10]])
    assert np.isnan(table.values[:4]).any(axis=1).all() and np.isnan(table.values).sum() == 12
    assert pyedmcl.embed(data, E=1, columns="b").names == ("b(t-0)",)
    with pytest.raises(InputError, match="at least 7 rows"):
        pyedmcl.embed(data, E=4, tau=2)
