"""A pass over many bytes that threads share gives what one thread gives."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from pyedmcl.data import extent as extents
from pyedmcl.data import side_by_side as module
from pyedmcl.data.side_by_side import side_by_side


@pytest.fixture(autouse=True)
def several_threads(monkeypatch):
    monkeypatch.setattr(module, "n_threads", lambda: 4)
    monkeypatch.setattr(extents, "n_threads", lambda: 4)
    threads = module._Threads()
    monkeypatch.setattr(module, "_threads", threads)
    yield
    threads.pool().shutdown()


def test_pieces_are_done_once_and_their_results_keep_their_order():
    done = []
    assert side_by_side(lambda piece: (done.append(piece), piece**2)[1], range(50)) == [n**2 for n in range(50)]
    assert sorted(done) == list(range(50))
    assert side_by_side(str, []) == [] and side_by_side(str, [1]) == ["1"]


def test_several_pieces_are_done_at_once():
    """Each waits until all four have begun."""
    begun = threading.Barrier(4, timeout=60)
    assert side_by_side(lambda piece: begun.wait() is not None, range(4)) == [True] * 4


def test_a_caller_does_not_wait_for_threads_that_are_busy_elsewhere():
    all_busy, go_on = threading.Barrier(5, timeout=60), threading.Event()

    def hold(_):
        all_busy.wait()
        assert go_on.wait(60)

    other = threading.Thread(target=side_by_side, args=(hold, range(3)))  # two of three threads, and one of its own
    other.start()
    third = module._threads.pool().submit(hold, None)
    all_busy.wait()
    try:
        here = threading.get_ident()
        assert side_by_side(lambda piece: threading.get_ident(), range(9)) == [here] * 9
    finally:
        go_on.set()
        other.join()
        third.result()


def test_where_no_thread_is_to_be_had_the_caller_does_it_all(monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    here = threading.get_ident()
    assert side_by_side(lambda piece: threading.get_ident(), range(9)) == [here] * 9


@pytest.mark.parametrize("wrong", [0, 7, 19])
def test_what_a_piece_raises_reaches_the_caller(wrong):
    def work(piece):
        if piece == wrong:
            raise ValueError(f"piece {piece}")

    with pytest.raises(ValueError, match=f"piece {wrong}"):
        side_by_side(work, range(20))


@pytest.mark.parametrize("shape", [(1, 5), (7, 3), (400, 60), (61, 4000), (100_000, 1)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_extents_are_those_of_all_values(monkeypatch, shape, dtype):
    monkeypatch.setattr(extents, "_LEAST_BYTES", 1 << 10)
    x = np.random.default_rng(3).standard_normal(shape).astype(dtype)
    for _ in range(2):
        for found, expected in zip(extents.extent(x), (x.min(axis=0), x.max(axis=0)), strict=True):
            np.testing.assert_array_equal(found, expected)
        assert extents.present_extent(x) == (np.nanmin(x), np.nanmax(x))
        if x.size > 20:
            x[len(x) // 2, 0] = x[-1, -1] = np.nan
    assert np.isnan(extents.present_extent(np.full((300, 300), np.nan))).all()
