"""What a pool keeps for the next call of its shape, and what it sends again."""

import numpy as np

import pyedmcl
from pyedmcl.device.select import open_device
from pyedmcl.launch.staging import Pool


def test_a_second_call_allocates_nothing_and_sends_its_data_only(one_device, monkeypatch):
    executor, allocated, sent = open_device(one_device), [], []
    x = np.random.default_rng(1).standard_normal((120, 9)).astype(np.float32)
    other = x[::-1].copy()
    calls = {
        "simplex": lambda data: pyedmcl.xmap(data, E=2, device=one_device).rho,
        "smap": lambda data: pyedmcl.xmap(data, E=2, method="smap", theta=1.0, device=one_device).rho,
    }
    expected = {name: call(other) for name, call in calls.items()}
    allocate, upload = type(executor).allocate, type(executor).upload
    monkeypatch.setattr(type(executor), "allocate", lambda self, n: allocated.append(n) or allocate(self, n))
    monkeypatch.setattr(type(executor), "upload", lambda self, a, *to: sent.append(a.nbytes) or upload(self, a, *to))
    for name, call in calls.items():
        call(x)
        sent.clear()
        allocated.clear()
        np.testing.assert_array_equal(call(other), expected[name])
        assert allocated == [] and len(sent) == 1
        assert 0 <= sent[0] - x.nbytes < 1024, "beside the data, marks of libraries whose fits are to be done again"


def test_what_a_kernel_has_marked_is_cleared_for_the_next_call(one_device):
    """Libraries whose fits are nearly singular are marked on the device, where a call after it finds no marks."""
    t = np.arange(120.0)
    easy = np.random.default_rng(1).standard_normal((120, 3))
    hard = np.stack([np.sin(t / 3), np.sin(t / 3 + 1), np.cos(t / 5)], axis=1)
    call = lambda data: pyedmcl.xmap(data, E=5, method="smap", theta=8.0, device=one_device).rho  # noqa: E731
    expected = call(easy)
    call(hard)
    np.testing.assert_array_equal(call(easy), expected)


def test_a_constant_is_sent_again_where_it_changed(one_device, each_call_allocates, monkeypatch):
    executor, sent = open_device(one_device), []
    upload = type(executor).upload
    monkeypatch.setattr(type(executor), "upload", lambda self, a, *to: sent.append(a.tolist()) or upload(self, a, *to))
    pool = Pool(executor)
    for values in ([1, 2], [1, 2], [1, 3]):
        pool.constant("numbers", np.array(values, np.int32))
    pool.changed("numbers")
    pool.constant("numbers", np.array([1, 3], np.int32))
    pool.release()
    assert sent == [[1, 2], [1, 3], [1, 3]]
