"""Long searches say how far they are, and can be stopped between launches and blocks."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from series_helpers import lorenz, lorenz_x

import pyedmcl
from pyedmcl.config import child_environment
from pyedmcl.launch import staging
from pyedmcl.search import searches

SEARCHES = ("exhaustive", "pruned", "kdtree", "ivf", "hnsw")


@pytest.fixture
def short_launches(monkeypatch):
    """Launches and blocks as short as can be: several, however many groups the device takes at once."""
    groups = searches.ExhaustiveSearcher._groups
    few = lambda self, knn_pass, tiles: min(groups(self, knn_pass, tiles), max(tiles // 5, 1))  # noqa: E731
    monkeypatch.setattr(searches.ExhaustiveSearcher, "_groups", few)
    monkeypatch.setattr(staging.Pacer, "units", lambda self, cost: 1)
    monkeypatch.setattr(searches, "_CELLS", 1 << 12)


def needs(name):
    if name == "kdtree":
        pytest.importorskip("scipy", reason="the k-d tree is SciPy's")
    if name in ("ivf", "hnsw"):
        pytest.importorskip("faiss", reason="faiss-cpu is not installed")


def runs(told, unit):
    """Reports of a unit, cut where a search begins anew."""
    found = []
    for done, total, kind in told:
        if kind == unit:
            if not found or done < found[-1][-1][0]:
                found.append([])
            found[-1].append((done, total))
    return found


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_of_many_launches_says_how_far_it_is(one_device, short_launches, name):
    needs(name)
    x, seen = lorenz_x(9000), []
    found = pyedmcl.knn(x, E=3, neighbors=name, recall=0.9, device=one_device, progress=lambda *a: seen.append(a))
    assert found.provenance["neighbors"] == [] or found.provenance["neighbors"][0]["used"] == name
    first = runs(seen, "queries")[0]
    assert len(first) > 2 and [done for done, _ in first] == sorted(done for done, _ in first)
    assert first[-1][0] == first[-1][1] and first[-1][1] in (8998, 9000)
    if name in SEARCHES[2:]:
        (built,) = runs(seen, "states")
        assert built[0] == (0, 8998) and built[-1] == (8998, 8998)


@pytest.mark.parametrize("name", SEARCHES)
def test_a_stopped_search_leaves_nothing_behind(one_device, short_launches, name):
    needs(name)
    x = lorenz_x(9000)

    def stop(done, total, unit):
        if unit == "queries":
            raise KeyboardInterrupt

    options = {"E": 3, "neighbors": name, "recall": 0.9, "device": one_device}
    want = pyedmcl.knn(x, **options)
    with pytest.raises(KeyboardInterrupt):
        pyedmcl.knn(x, progress=stop, **options)
    again = pyedmcl.knn(x, **options)
    if name != "hnsw":  # whose graph is grown by several threads
        np.testing.assert_array_equal(again.indices, want.indices)


def test_functions_tell_of_their_searches(one_device, short_launches):
    x = lorenz_x(9000)
    three = np.asarray(lorenz(4500), np.float32)
    for call, units in (
        (lambda **o: pyedmcl.simplex(x, E=3, **o), {"queries"}),
        (lambda **o: pyedmcl.embed_dimension(x, E_max=2, **o), {"queries", "series"}),
        (lambda **o: pyedmcl.xmap(three, E=2, **o), {"queries", "series"}),
        (lambda **o: pyedmcl.ccm(three[:, 0], three[:, 1], E=2, lib_sizes=[40, 2000], sample=2, **o),
         {"queries", "predictions"}),
    ):  # fmt: skip
        seen = []
        call(device=one_device, progress=lambda *a, seen=seen: seen.append(a))
        assert {unit for _, _, unit in seen} == units
        assert all(0 <= done <= total for done, total, _ in seen)


def test_a_short_search_says_nothing(one_device):
    seen = []
    pyedmcl.knn(lorenz_x(300), E=2, device=one_device, progress=lambda *a: seen.append(a))
    assert seen == []


def test_ctrl_c_within_a_tree_search_leaves_no_thread_behind():
    """SciPy's own threads went on writing into freed memory."""
    pytest.importorskip("scipy", reason="the k-d tree is SciPy's")
    code = """
import os, signal, threading
import subprocess
import sys

import numpy as np
from pyedmcl.search.index import KDTree
points = np.random.default_rng(0).normal(size=(12000, 10))
tree = KDTree(points)
threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    tree.search(points, 12)
except KeyboardInterrupt:
    np.testing.assert_array_equal(tree.search(points[:50], 1)[0][:, 0], np.arange(50))
    print("stopped", threading.active_count())
"""
    done = subprocess.run([sys.executable, "-c", code], env=child_environment(), capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "stopped 1\n"), done.stderr
