"""What a call was given, as its result tells it."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from pyedmcl.data import call
from pyedmcl.data.call import described_call, recorded
from pyedmcl.data.series import as_series


def test_a_digest_that_a_thread_finds_is_kept_apart_from_the_series():
    """Jobs pickle their series while the thread is at work: what it finds may not be added to them."""
    series = as_series(np.random.default_rng(0).standard_normal((2000, 20)))

    @recorded
    def function(data):
        return as_series(data), described_call()["data"]["data"]

    same, told = function(series)
    assert same is series and "_digest" not in vars(series)
    assert told == {"file": None, "rows": 2000, "series": 20, "digest": series.digest()}


def test_what_takes_long_is_described_by_one_waiting_thread():
    helper, names, told = call._Helper(), [], threading.Event()

    def describe():
        names.append(threading.current_thread().name)
        told.set()
        return {"rows": 3}

    first = helper.begin(describe)
    assert told.wait(60) and first() == {"rows": 3} == first()
    told.clear()
    helper.begin(describe)
    assert told.wait(60) and len(set(names)) == 1 and names[0] != threading.current_thread().name


def test_what_is_asked_for_before_its_turn_is_described_at_once():
    helper, go = call._Helper(), threading.Event()
    waiting = helper.begin(lambda: {"went": go.wait(60)})
    assert helper.begin(lambda: {"thread": threading.current_thread() is threading.main_thread()})() == {"thread": True}
    go.set()
    assert waiting() == {"went": True}


def test_an_error_of_a_description_is_told_where_it_is_asked_for():
    helper, tried = call._Helper(), threading.Event()

    def fails():
        tried.set()
        raise ValueError("no digest")

    described = helper.begin(fails)
    assert tried.wait(60)
    with pytest.raises(ValueError, match="no digest"):
        described()
