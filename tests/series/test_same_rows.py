"""Series that are paired row by row are refused where their rows are not the same; a time among them is told of."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest

import pyedmcl
from pyedmcl.errors import InputError, ReadingWarning
from pyedmcl.series.regular import require_same_rows
from pyedmcl.series.series import as_series

DAYS = pd.date_range("2020-01-01", periods=60)
X = pd.Series(np.random.default_rng(0).random(60), DAYS)
LATER = X.set_axis(DAYS + pd.Timedelta(days=3))


@pytest.mark.parametrize("call", [
    lambda **given: pyedmcl.ccm(X, LATER, E=2, **given),
    lambda **given: pyedmcl.simplex(X, target=LATER, E=2, **given),
    lambda **given: pyedmcl.simplex(X, target=LATER, E=2, windows=(30, 10), **given),
    lambda **given: pyedmcl.smap(X, target=LATER, E=2, **given),
    lambda **given: pyedmcl.embed_dimension(X, target=LATER, E_max=2, **given),
    lambda **given: pyedmcl.partial_ccm(X, LATER, given=X, **given),
    lambda **given: pyedmcl.xmap(X.to_frame("a"), targets=LATER.to_frame("b"), E=2, **given),
    lambda **given: pyedmcl.ccm_significance(X, LATER, E=2, n=9, **given),
])  # fmt: skip
def test_other_times_are_refused(call, one_device):
    with pytest.raises(InputError, match=r"other times than \w+ \(row 0: 2020-01-04.* and 2020-01-01"):
        call(device=one_device)


def test_what_can_be_paired():
    x, numbers = as_series(X), as_series(X.to_numpy())
    require_same_rows(x=x, y=as_series(X.copy()), z=numbers)
    require_same_rows(x=numbers, y=as_series(X.set_axis(range(5, 65))))
    gap = as_series(X.set_axis([pd.NaT, *DAYS[1:]]))
    require_same_rows(x=gap, y=gap)
    with pytest.raises(InputError, match="y has 59 steps and x 60: they must be equally long"):
        require_same_rows(x=x, y=as_series(X.iloc[1:]))
    with pytest.raises(InputError, match=r"row 0"):
        require_same_rows(x=x, y=gap)


def test_a_time_among_the_series_is_the_time():
    frame = pd.DataFrame({"Year": np.arange(1900, 1960), "a": X.to_numpy()})
    assert as_series(frame).names == ("a",) and as_series(frame).time[0] == 1900
    with pytest.warns(ReadingWarning, match="'scan' grows by one from row to row"):
        as_series(frame.rename(columns={"Year": "scan"}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        as_series(frame, columns="-Year")
        as_series(frame.set_index("Year"))
        as_series({"t": X.to_numpy(), "a": np.arange(60.0) ** 2})
