"""A pass over many bytes that threads share gives what one thread gives."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from pyedmcl import parallel as extents
from pyedmcl import parallel as module
from pyedmcl.parallel import KeptThreads


@pytest.fixture
def four():
    threads = KeptThreads(4)
    yield threads
    threads.end()


@pytest.fixture
def single():
    threads = KeptThreads(1)
    yield threads
    threads.end()


def test_pieces_are_done_once_and_their_results_keep_their_order(four):
    done = []
    assert four.share(lambda piece: (done.append(piece), piece**2)[1], range(50)) == [n**2 for n in range(50)]
    assert sorted(done) == list(range(50))
    assert four.share(str, []) == [] and four.share(str, [1]) == ["1"]


def test_several_pieces_are_done_at_once(four):
    """Each waits until all four have begun."""
    begun = threading.Barrier(4, timeout=60)
    assert four.share(lambda piece: begun.wait() is not None, range(4)) == [True] * 4


def test_a_caller_does_not_wait_for_threads_that_are_busy_elsewhere(single):
    go_on = threading.Event()
    busy = single.begin(lambda: go_on.wait(60))
    here = threading.get_ident()
    try:
        assert single.share(lambda piece: threading.get_ident(), range(9)) == [here] * 9
        assert single.begin(threading.get_ident)() == here
    finally:
        go_on.set()
    assert busy()


def test_who_works_beside_the_caller_may_share_its_own_work(single, four):
    """The digest of a table does so: it never waits for a thread that waits for it."""
    for threads in (single, four):
        inner = [threads.begin(lambda threads=threads: threads.share(str, range(9))) for _ in range(6)]
        assert [work() for work in inner] == [list("012345678")] * 6


def test_a_thread_is_kept_for_what_comes_next(single):
    names, begun = [], threading.Event()

    def note():
        names.append(threading.current_thread().name)
        begun.set()
        return len(names)

    first = single.begin(note)
    assert begun.wait(60) and first() == 1 == first()
    begun.clear()
    single.begin(note)
    assert begun.wait(60) and len(set(names)) == 1 and names[0] != threading.current_thread().name


def test_where_no_thread_is_to_be_had_the_caller_does_it_all(four, monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        here = threading.get_ident()
        assert four.share(lambda piece: threading.get_ident(), range(9)) == [here] * 9
        assert four.begin(threading.get_ident)() == here


@pytest.mark.parametrize("wrong", [0, 7, 19])
def test_what_a_piece_raises_reaches_the_caller(four, wrong):
    def work(piece):
        if piece == wrong:
            raise ValueError(f"piece {piece}")

    with pytest.raises(ValueError, match=f"piece {wrong}"):
        four.share(work, range(20))


def test_nothing_is_under_way_after_a_piece_has_failed(four):
    others, ended = threading.Barrier(4, timeout=60), []

    def work(piece):
        others.wait()
        if piece == 0:
            raise ValueError
        ended.append(piece)

    with pytest.raises(ValueError):
        four.share(work, range(4))
    assert sorted(ended) == [1, 2, 3]


def test_what_a_thread_raises_is_told_where_its_result_is_asked_for(single):
    tried = threading.Event()

    def fails():
        tried.set()
        raise ValueError("no digest")

    begun = single.begin(fails)
    assert tried.wait(60)
    with pytest.raises(ValueError, match="no digest"):
        begun()


@pytest.mark.parametrize("shape", [(1, 5), (7, 3), (400, 60), (61, 4000), (100_000, 1)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_extents_are_those_of_all_values(monkeypatch, four, shape, dtype):
    monkeypatch.setattr(module, "_threads", four)
    monkeypatch.setattr(extents, "n_threads", lambda: 4)
    monkeypatch.setattr(extents, "_LEAST_BYTES", 1 << 10)
    x = np.random.default_rng(3).standard_normal(shape).astype(dtype)
    for _ in range(2):
        for found, expected in zip(extents.extent(x), (x.min(axis=0), x.max(axis=0)), strict=True):
            np.testing.assert_array_equal(found, expected)
        assert extents.present_extent(x) == (np.nanmin(x), np.nanmax(x))
        if x.size > 20:
            x[len(x) // 2, 0] = x[-1, -1] = np.nan
    assert np.isnan(extents.present_extent(np.full((300, 300), np.nan))).all()
