"""Whether a sample shows the recall that was asked for: rounds, intervals of clustered samples, and what follows."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from pyedmcl import knn
from pyedmcl.search import index as recall
from pyedmcl.search.index import effective_slots, judged, measure, wilson
from pyedmcl.search.plan import SearchProblem

pytest.importorskip("faiss", reason="faiss-cpu is not installed")
K = 5


def states(n, E=3):
    points = np.random.default_rng(4).random((n, E)).astype(np.float32)
    return SimpleNamespace(rows=np.arange(n, dtype=np.int32), points=lambda which: points[which])


class Pretended:
    """Finds all but a share of neighbours and far states instead, per setting, and notes how it was asked."""

    exact = False

    def __init__(self, of, *misses, whole=False):
        self._of, self._misses, self._whole = of, list(misses), whole
        self.asked, self.settings = [], 1
        self._rng = np.random.default_rng(1)

    def search(self, points, m):
        self.asked.append(len(points))
        squared = ((points[:, None] - self._of.points(self._of.rows)) ** 2).sum(axis=2)
        order = np.argsort(squared, axis=1, kind="stable")
        shape = (len(points), 1 if self._whole else m)
        missed = self._rng.random(shape) < self._misses[0]
        return np.where(missed, order[:, : -m - 1 : -1], order[:, :m]), squared[:, 0]

    def refine(self):
        if len(self._misses) == 1:
            return False
        self._misses.pop(0)
        self.settings += 1
        return True


def ask(target, *misses, n=6000, whole=False, k=K):
    of = states(n)
    index = Pretended(of, *misses, whole=whole)
    return measure(index, of, of, SearchProblem((3,), (k,), 1, 0, 0, n, n, "float32"), target), index


def test_a_clear_case_is_settled_by_the_first_queries():
    good, index = ask(0.9, 0.0)
    assert good.reached and good.recall == 1 and index.asked == [64] and good.queries == 64
    poor, index = ask(0.9, 0.4)
    assert not poor.reached and index.asked == [64] and poor.interval[1] < 0.9


def test_more_queries_are_asked_while_the_interval_holds_the_target():
    found, index = ask(0.95, 0.03)
    assert found.reached and index.asked[:2] == [64, 192] and found.queries == sum(index.asked)
    assert found.interval[0] >= 0.95 and abs(found.recall - 0.97) < 0.01


def test_a_recall_that_no_sample_settles_is_not_taken_for_reached():
    """By its point estimate this index would pass half of the time."""
    found, index = ask(0.96, 0.04, n=5000)
    low, high = found.interval
    assert not found.reached and low < 0.96 < high and index.asked == [64, 192, 768, 3072]


def test_an_index_is_refined_until_the_sample_shows_it():
    found, index = ask(0.9, 0.5, 0.2, 0.0)
    assert found.reached and index.settings == 3 and found.recall == 1
    assert index.asked == [64, 64, 64]


def test_what_no_sample_can_show_is_not_tried():
    found, index = ask(1.0, 0.0, 0.0)
    assert not found.reached and index.settings == 1 and index.asked == [64] and found.recall == 1


def test_all_queries_leave_nothing_to_chance():
    found, index = ask(1.0, 0.0, n=60)
    assert found.reached and found.interval == (1.0, 1.0) and index.asked == [60]
    found, _ = ask(0.9, 0.3, n=60)
    assert not found.reached and found.interval == (found.recall, found.recall)


def test_pairs_limit_the_sample(monkeypatch):
    monkeypatch.setattr(recall, "_CELLS", 6000 * 3 * 100)
    found, index = ask(0.96, 0.04)
    assert index.asked == [64, 36] and found.queries == 100


def test_neighbours_that_are_missed_together_are_worth_less():
    rng = np.random.default_rng(7)
    slots = np.full(400, 10)
    apart = rng.binomial(10, 0.9, 400)
    together = np.where(rng.random(400) < 0.9, 10, 0)
    assert effective_slots(apart, slots, 10**9) == pytest.approx(4000, rel=0.2)
    assert effective_slots(together, slots, 10**9) == pytest.approx(400, rel=0.05)
    assert effective_slots(slots, slots, 10**9) == pytest.approx(2000)
    assert effective_slots(np.ones(50, int), np.ones(50, int), 10**9) == pytest.approx(50)
    assert effective_slots(apart, slots, 800) == pytest.approx(2 * effective_slots(apart, slots, 10**9))
    assert np.isinf(effective_slots(apart, slots, 400))


def test_the_interval_covers_the_true_share():
    """Samples of a population whose queries miss all or nothing: intervals hold its share in about 95 of 100."""
    rng = np.random.default_rng(11)
    slots, held, passed = np.full(256, 6), 0, 0
    for _ in range(400):
        hits = np.where(rng.random(256) < 0.93, 6, 0)
        found, _ = judged(hits, slots, 10**9, 0.95)
        held += found.interval[0] <= 0.93 <= found.interval[1]
        passed += found.reached
    assert 370 <= held <= 396 and passed <= 2
    naive = sum(
        wilson(6 * (n := rng.binomial(256, 0.93)), 256 * 6)[0] <= 0.93 <= wilson(6 * n, 256 * 6)[1] for _ in range(400)
    )
    assert naive < 300, "slots that count as independent would give intervals that are too narrow"


def test_nothing_to_find_is_found():
    nothing = np.zeros(64, int)
    found, open_ = judged(nothing, nothing, 1000, 0.99)
    assert found.reached and not open_ and found.recall == 1


def finely_sampled(n):
    """A smooth series that comes back: the rows nearest to a row are those just before and after it."""
    t = np.arange(n) * 0.01
    return (np.sin(t) + 0.4 * np.sin(np.sqrt(3) * t)).astype(np.float32)


@pytest.mark.parametrize("name", ["ivf", "hnsw"])
def test_recall_is_that_of_neighbours_outside_the_exclusion_radius(one_device, name):
    """All of the nearest rows are excluded: what counts is whether those that are left are found."""
    x, options = finely_sampled(8000), {"E": 3, "tau": 40, "exclusion_radius": 600, "device": one_device}
    exact, other = knn(x, **options), knn(x, neighbors=name, recall=0.9, **options)
    last = np.where(np.isfinite(exact.distances), exact.distances, -1).max(axis=1, keepdims=True)
    share = (other.distances <= last).sum() / np.isfinite(exact.distances).sum()
    (record,) = other.provenance["neighbors"]
    assert share >= 0.9 and np.isfinite(exact.distances).sum() == np.isfinite(other.distances).sum()
    if record["used"] == name:
        assert record["interval"][0] - 0.01 <= share <= record["interval"][1] + 0.01
        assert int(record["measured"].split()[0].replace(",", "")) >= 64 * 4


@pytest.mark.parametrize("name", ["ivf", "hnsw"])
def test_no_query_is_left_without_neighbours_that_there_are(one_device, name):
    """A graph of equal states has no way from some of them to those outside the exclusion radius."""
    options = {"E": 3, "k": 9, "exclusion_radius": 500, "device": one_device}
    exact, other = knn(np.ones(1500), **options), knn(np.ones(1500), neighbors=name, **options)
    np.testing.assert_array_equal((other.indices >= 0).sum(axis=1), (exact.indices >= 0).sum(axis=1))
