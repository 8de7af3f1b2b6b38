"""What a call was given, as its result tells it."""

from __future__ import annotations

import numpy as np

from pyedmcl.call import described_call, recorded
from pyedmcl.series.series import as_series


def test_a_digest_that_a_thread_finds_is_kept_apart_from_the_series():
    """Jobs pickle their series while the thread is at work: what it finds may not be added to them."""
    series = as_series(np.random.default_rng(0).standard_normal((2000, 20)))

    @recorded
    def function(data):
        return as_series(data), described_call()["data"]["data"]

    same, told = function(series)
    assert same is series and "_digest" not in vars(series)
    assert told == {"file": None, "rows": 2000, "series": 20, "digest": series.digest()}
