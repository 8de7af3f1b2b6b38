"""Surrogates that a device draws, which have the bits of the host."""

from dataclasses import replace

import numpy as np
import pytest

from pyedmcl.device.select import open_device
from pyedmcl.engines import lagged
from pyedmcl.engines.lagged import WaveDrawer, WaveSeries, centred, laid_out
from pyedmcl.kernels.texts import GAP
from pyedmcl.launch.staging import round_up
from pyedmcl.surrogates.makers import TURNS, Streams, keys, phases

SEED = 5


def made_of(column, number, first, n, base=None):
    """A series as the drawer takes it."""
    maker, scale = phases(column.astype(float)), centred(column)
    streams = keys(SEED, [number], first, first + n)[0]
    values = laid_out(column.astype(float), *scale).astype(np.float32)
    return WaveSeries(values, maker.spectrum, maker.mean, base, *scale, streams)


def by_the_host(column, number, first, n, base=0.0):
    """Its surrogates as the host lays them out, (n, n_steps)."""
    drawn = phases(column.astype(float))(Streams(SEED, number, first, first + n)) + base
    return laid_out(drawn, *centred(column)).astype(np.float32)


def drawn_by(device, several, first, n, n_steps, columns):
    """All targets, and how many draws of each series were left to the host."""
    executor = open_device(device)
    stride, rows = round_up(len(several) * (n + 1), 16), n_steps + 5
    targets = executor.upload(np.full((rows, stride), 7, np.float32))
    drawer = WaveDrawer(executor, n_steps, TURNS)
    left = [0] * len(several)

    def back(place, turned):
        left[place] += len(turned)
        maker = replace(phases(columns[:, place].astype(float)), base=several[place].base)
        return laid_out(maker.summed(turned), *centred(columns[:, place])).astype(np.float32)

    try:
        drawer.draw(several, first, n, targets, rows, stride, back)
        return executor.download(targets, np.empty((rows, stride), np.float32)), left
    finally:
        drawer.release()
        targets.release()


@pytest.fixture
def table(rng):
    """Series that wander around 3."""
    return lambda n_steps, n: (0.1 * rng.standard_normal((n_steps, n)).cumsum(0) + 3).astype(np.float32)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.mark.parametrize("left_to_the_host", [False, True])
@pytest.mark.parametrize(("n_steps", "first", "n"), [(100, 0, 70), (101, 7, 33), (257, 30, 3)])
def test_numbers_are_those_of_the_host(device, table, monkeypatch, n_steps, first, n, left_to_the_host):
    if left_to_the_host:
        monkeypatch.setattr(lagged, "_ROUNDINGS", 1e9)
    x = table(n_steps, 3)
    targets, left = drawn_by(device, [made_of(x[:, j], j, first, n) for j in range(3)], first, n, n_steps, x)
    for j in range(3):
        own = targets[:n_steps, j * (n + 1) : (j + 1) * (n + 1)].T
        np.testing.assert_array_equal(own[0], laid_out(x[:, j].astype(float), *centred(x[:, j])).astype(np.float32))
        np.testing.assert_array_equal(own[1:], by_the_host(x[:, j], j, first, n))
    assert left == [n] * 3 if left_to_the_host else sum(left) < 0.1 * 3 * n
    assert not targets[n_steps:].any()
    assert not targets[:, 3 * (n + 1) :].any()


@pytest.mark.parametrize("left_to_the_host", [False, True])
def test_what_is_added_and_gaps(device, table, monkeypatch, left_to_the_host):
    if left_to_the_host:
        monkeypatch.setattr(lagged, "_ROUNDINGS", 1e9)
    x, base = table(90, 2), np.linspace(-1.0, 1.0, 90)
    base[[3, 40]] = np.nan
    several = [made_of(x[:, 0], 0, 0, 20, base), made_of(x[:, 1], 1, 0, 20)]
    targets, _ = drawn_by(device, several, 0, 20, 90, x)
    np.testing.assert_array_equal(targets[[3, 40], 1:21], np.float32(GAP))
    np.testing.assert_array_equal(targets[:90, 1:21].T, by_the_host(x[:, 0], 0, 0, 20, base))
    np.testing.assert_array_equal(targets[:90, 22:42].T, by_the_host(x[:, 1], 1, 0, 20))


@pytest.mark.parametrize("left_to_the_host", [False, True])
def test_parts_are_drawn_one_after_another(one_device, table, monkeypatch, left_to_the_host):
    if left_to_the_host:
        monkeypatch.setattr(lagged, "_ROUNDINGS", 1e9)
    monkeypatch.setattr(lagged, "_AMPLITUDES_BYTES", 1)
    x = table(80, 2)
    targets, left = drawn_by(one_device, [made_of(x[:, j], j, 0, 100) for j in range(2)], 0, 100, 80, x)
    for j in range(2):
        np.testing.assert_array_equal(targets[:80, 101 * j + 1 : 101 * (j + 1)].T, by_the_host(x[:, j], j, 0, 100))
    assert left == [100, 100] if left_to_the_host else sum(left) < 20


@pytest.mark.parametrize("seed", [0, 5, (1 << 33) + 7, 1 << 200])
def test_keys_are_those_of_numpy(seed):
    own = keys(seed, [3, 70_000], 40, 400)
    of_numpy = [[np.random.SeedSequence(seed, spawn_key=(j, group, 1)) for group in range(1, 13)] for j in (3, 70_000)]
    np.testing.assert_array_equal(own, [[one.generate_state(2, np.uint64) for one in row] for row in of_numpy])


@pytest.mark.parametrize("n_steps", [997, 3000])
@pytest.mark.parametrize("kind", ["white", "red", "periodic"])
def test_sums_differ_by_far_less_than_is_allowed_for(rng, kind, n_steps):
    """A sum over frequencies, one after the other, and NumPy's transform: what decides whether the host draws anew."""
    x = rng.standard_normal(n_steps)
    x = {"white": x, "red": x.cumsum(), "periodic": np.sin(2 * np.pi * np.arange(n_steps) * 7 / n_steps)}[kind]
    maker, frequencies, steps = phases(x), n_steps // 2, rng.integers(0, n_steps // 2, 40)
    turned = maker.turned(np.exp(2j * np.pi * rng.random((30, frequencies + 1))))
    roots = np.exp(2j * np.pi * np.arange(n_steps) / n_steps)
    halved = turned.copy()
    if n_steps % 2 == 0:
        halved[:, -1] /= 2
    cosines, sines = np.zeros((2, 30, 40))
    for f in range(1, frequencies + 1):
        root, amplitude = roots[f * steps % n_steps], halved[:, f, None]
        cosines, sines = cosines + amplitude.real * root.real, sines + amplitude.imag * root.imag
    apart = np.abs((cosines - sines) * 2 / n_steps - np.fft.irfft(turned, n_steps, axis=1)[:, steps])
    one = made_of(x.astype(np.float32), 0, 0, 1)
    allowed = one.numbers[3] / one.numbers[2]
    assert 0 < apart.max() < allowed / 2
    assert np.sqrt(np.mean(apart**2)) < allowed / 8
