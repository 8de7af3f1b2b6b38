"""Skill sums: bit-equal to their definition in the working precision, and scores against plain formulas."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
from loopy_helpers import needs_loopy

from pyedmcl.device.select import open_device
from pyedmcl.engines import predict
from pyedmcl.engines.predict import SUMS, scores, skill_sums
from pyedmcl.errors import InputError
from pyedmcl.kernels import spec
from pyedmcl.kernels.specs.maps import CHUNK
from pyedmcl.reference import fma32, fma64, pearson
from pyedmcl.tuning.parameters import ParameterChoice

FMA = {"float32": fma32, "float64": fma64}
GAP = 1e16


@pytest.fixture
def executor(device):
    return open_device(device)


def case(n_pairs, n_rows, dtype="float32", seed=0, n_series=None, stride=None, gaps=0.05):
    """Predictions (NaN where there is none), padded observations with gaps, and which belongs to which."""
    rng = np.random.default_rng(seed)
    n_series = n_series or max(n_pairs // 2, 1)
    stride = stride or n_rows + 13
    observed = rng.standard_normal((n_series, stride)).astype(dtype)
    series = rng.integers(0, n_series, n_pairs)
    predicted = (0.6 * observed[series, :n_rows] + 0.5 * rng.standard_normal((n_pairs, n_rows))).astype(dtype)
    predicted[rng.random(predicted.shape) < gaps] = np.nan
    observed[rng.random(observed.shape) < gaps] = GAP
    return predicted, observed, series


def pairs(predicted, observed, series, offset, begin, end):
    """(p, o, t) of every pair: the rows that count, in their order."""
    n_pairs, n_rows = predicted.shape
    flat = observed.reshape(-1)
    for pair in range(n_pairs):
        t = np.arange(max(begin[pair], 0), max(min(end[pair], n_rows), 0))
        p, o = predicted[pair, t], flat[series[pair] * observed.shape[1] + offset + t]
        there = ~np.isnan(p) & (np.abs(o) < 1e15)
        yield p[there], o[there], t[there]


def expected(predicted, observed, series, offset, begin, end, dtype, chunk):
    """Sums with the rounding of every step, chunk by chunk."""
    real, fma = np.dtype(dtype).type, FMA[dtype]
    out = np.zeros((len(predicted), 8))
    for pair, (p, o, t) in enumerate(pairs(predicted, observed, series, offset, begin, end)):
        for c in np.unique(t // chunk):
            s = [real(0)] * 8
            for a, b in zip(p[t // chunk == c], o[t // chunk == c], strict=True):
                d = a - b
                s = [
                    s[0] + real(1), s[1] + a, s[2] + b, fma(a, a, s[3]), fma(b, b, s[4]), fma(a, b, s[5]),
                    s[6] + abs(d), fma(d, d, s[7]),
                ]  # fmt: skip
            out[pair] += np.array([float(v) for v in s])
    return out


def ask(executor, predicted, observed, series, dtype="float32", **more):
    held = [executor.upload(predicted), executor.upload(observed)]
    try:
        return skill_sums(
            executor,
            *held,
            observed_of=series,
            n_rows=predicted.shape[1],
            observed_stride=observed.shape[1],
            dtype=dtype,
            **more,
        )
    finally:
        for buffer in held:
            buffer.release()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n_rows", [1, 2, 255, 256, 257, 600])
def test_sums_are_bit_equal_to_their_definition(executor, n_rows, dtype):
    predicted, observed, series = case(5, n_rows, dtype, seed=n_rows)
    rng = np.random.default_rng(n_rows)
    begin = rng.integers(-3, n_rows // 2 + 1, 5)
    end = rng.integers(n_rows // 2, n_rows + 5, 5)
    end[-1] = begin[-1]  # a pair without rows
    offset = 7
    got = ask(executor, predicted, observed, series, dtype, observed_offset=offset, t_begin=begin, t_end=end)
    assert got.shape == (5, len(SUMS))
    assert got.dtype == np.float64
    np.testing.assert_array_equal(got, expected(predicted, observed, series, offset, begin, end, dtype, 256))
    assert got[:, 0].max() > 0
    assert not got[-1].any()


@needs_loopy
def test_tuning_changes_no_bit(executor, monkeypatch):
    predicted, observed, series = case(7, 1000, seed=3)
    exact = np.zeros((7, 8))
    scale = np.zeros((7, 8))
    for pair, (p, o, _) in enumerate(pairs(predicted, observed, series, 0, [0] * 7, [1000] * 7)):
        p, o = p.astype(float), o.astype(float)
        terms = [np.ones_like(p), p, o, p * p, o * o, p * o, np.abs(p - o), (p - o) ** 2]
        exact[pair] = [v.sum() for v in terms]
        scale[pair] = [np.abs(v).sum() for v in terms]
    every = {tunable.name: tunable.values for tunable in spec("skill").tunables}
    found = []
    for values in product(*every.values()):
        choice = ParameterChoice(dict(zip(every, values, strict=True)), "test")
        monkeypatch.setattr(predict, "parameters", lambda *_, choice=choice: choice)
        got = ask(executor, predicted, observed, series)
        assert (np.abs(got - exact) <= (CHUNK + 2) * 2.0**-24 * scale).all()
        np.testing.assert_array_equal(got[:, 0], exact[:, 0])
        found.append(got)
        np.testing.assert_array_equal(got, found[0])
    assert len(found) > 2


def test_blocks_of_pairs_change_no_bit(executor, monkeypatch):
    predicted, observed, series = case(23, 300, seed=4)
    whole = ask(executor, predicted, observed, series)
    np.testing.assert_array_equal(ask(executor, predicted, observed, series), whole)
    monkeypatch.setattr(predict, "_PAIRS_MOST", 5)
    np.testing.assert_array_equal(ask(executor, predicted, observed, series), whole)
    monkeypatch.setattr(predict, "_SUMS_BYTES_MOST", 1)  # a pair at a time
    np.testing.assert_array_equal(ask(executor, predicted, observed, series), whole)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-6), ("float64", 1e-13)])
def test_scores_are_those_of_the_plain_formulas(executor, dtype, tolerance):
    predicted, observed, series = case(40, 1700, dtype, seed=5)
    begin, end = np.full(40, 3), np.full(40, 1650)
    rho, mae, rmse = scores(ask(executor, predicted, observed, series, dtype, t_begin=3, t_end=1650), dtype)
    for pair, (p, o, _) in enumerate(pairs(predicted, observed, series, 0, begin, end)):
        p, o = p.astype(float), o.astype(float)
        assert rho[pair] == pytest.approx(pearson(p, o), abs=tolerance)
        assert mae[pair] == pytest.approx(np.abs(p - o).mean(), rel=tolerance)
        assert rmse[pair] == pytest.approx(np.sqrt(((p - o) ** 2).mean()), rel=tolerance)
    assert 0.5 < np.median(rho) < 0.95


@pytest.mark.parametrize("offset", [-4, 5])
def test_a_prediction_interval_is_an_offset(executor, offset):
    n = 200
    x = np.random.default_rng(6).standard_normal((3, n)).astype(np.float32)
    predicted = np.full((3, n), np.nan, np.float32)
    rows = np.arange(max(0, -offset), min(n, n - offset))
    predicted[:, rows] = x[:, rows + offset]
    sums = ask(executor, predicted, x, [0, 1, 2], observed_offset=offset, t_begin=rows[0], t_end=rows[-1] + 1)
    rho, mae, _ = scores(sums)
    np.testing.assert_allclose(rho, 1, atol=1e-6)
    np.testing.assert_array_equal(mae, 0)
    assert (sums[:, 0] == len(rows)).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_undefined_scores_are_not_a_number(executor, dtype):
    n = 700
    rng = np.random.default_rng(7)
    observed = rng.standard_normal((4, n)).astype(dtype)
    observed[1] = 0
    observed[3, 2:] = GAP  # two rows are left
    predicted = np.repeat(rng.standard_normal((1, n)), 6, axis=0).astype(dtype)
    predicted[2] = 0.3  # its square and its sum are not exact in either precision
    predicted[4] = np.nan
    predicted[5] = -7.7
    rho, mae, rmse = scores(ask(executor, predicted, observed, [0, 1, 2, 3, 0, 0], dtype), dtype)
    np.testing.assert_array_equal(np.isnan(rho), [False, True, True, True, True, True])
    np.testing.assert_array_equal(np.isnan(mae), [False] * 4 + [True, False])
    np.testing.assert_array_equal(np.isnan(rmse), [False] * 4 + [True, False])
    assert mae[3] == pytest.approx(np.abs(predicted[3, :2] - observed[3, :2]).mean(), rel=1e-6)


def test_an_infinite_prediction_shows(executor):
    predicted, observed, series = case(2, 50, seed=8, gaps=0)
    predicted[1, 7] = np.inf
    rho, mae, _ = scores(ask(executor, predicted, observed, series))
    assert np.isfinite(rho[0])
    assert np.isnan(rho[1])
    assert mae[1] == np.inf


def test_sums_of_parts_give_the_scores_of_the_whole():
    p, o = np.random.default_rng(9).standard_normal((2, 400))

    def sums(a, b):
        return np.array([len(a), a.sum(), b.sum(), a @ a, b @ b, a @ b, np.abs(a - b).sum(), ((a - b) ** 2).sum()])

    rho, mae, rmse = scores(sums(p[:150], o[:150]) + sums(p[150:], o[150:]), "float64")
    assert rho == pytest.approx(np.corrcoef(p, o)[0, 1], abs=1e-13)
    assert mae == pytest.approx(np.abs(p - o).mean())
    assert rmse == pytest.approx(np.sqrt(((p - o) ** 2).mean()))
    assert scores(sums(p, 2 * p + 1), "float64")[0] <= 1
    assert np.isnan(scores(sums(p[:2], o[:2]), "float64")[0])


def test_rows_outside_a_buffer_are_refused(executor):
    predicted, observed, _ = case(3, 40, seed=10, stride=40)
    with pytest.raises(InputError, match=r"t_begin and t_end"):
        ask(executor, predicted, observed, [0, 0, len(observed) - 1], observed_offset=1)
    with pytest.raises(InputError, match=r"\[-2, "):
        ask(executor, predicted, observed, [0, 0, 0], observed_offset=-2)
    with pytest.raises(InputError, match="4 predictions of 40 rows need 640 bytes; the buffer has 480"):
        ask(executor, predicted, observed, [0, 0, 0, 0])
    # The same offsets with rows that are there.
    assert ask(executor, predicted, observed, [0, 0, 0], observed_offset=-2, t_begin=2)[0, 0] > 0
    last = [len(observed) - 1] * 3
    assert ask(executor, predicted, observed, last, observed_offset=1, t_end=39)[0, 0] > 0


def test_nothing_asked_is_nothing_given(executor):
    predicted, observed, _ = case(3, 40, seed=11)
    assert ask(executor, predicted, observed, []).shape == (0, 8)
    assert not ask(executor, predicted[:, :0], observed, [0, 0, 0]).any()


def test_a_precision_that_is_not_there_is_refused(executor):
    poor = SimpleNamespace(info=replace(executor.info, fp64=False))
    with pytest.raises(InputError, match="no float64; use dtype='float32'"):
        skill_sums(poor, None, None, observed_of=[0], n_rows=1, observed_stride=1, dtype="float64")
    with pytest.raises(InputError, match="dtype = 'half'"):
        skill_sums(poor, None, None, observed_of=[0], n_rows=1, observed_stride=1, dtype="half")
