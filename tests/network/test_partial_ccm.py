"""Partial cross mapping: as by definition, and right about chains and direct links."""

from __future__ import annotations

import numpy as np
import pytest
from series_helpers import CHAIN, LOOP, linked_maps

import pyedmcl
from pyedmcl.errors import InputError
from pyedmcl.network.partial import partial_correlation
from pyedmcl.reference.edm import partial_skill


@pytest.mark.parametrize("Tp", [0, -2])
def test_as_by_definition(device, Tp):
    x = linked_maps(120, CHAIN, 1)
    x[40, 1] = np.nan
    other = np.random.default_rng(2).random(120)
    found = pyedmcl.partial_ccm(
        x[:, 0], x[:, 2], given=np.column_stack([x[:, 1], other]), E=[2, 3, 2, 2], Tp=Tp, n=None, device=device
    )
    assert found.cause == ("x", "y") and found.effect == ("y", "x") and found.given == ("z0", "z1")
    for d, (cause, effect, E) in enumerate(((x[:, 0], x[:, 2], 3), (x[:, 2], x[:, 0], 2))):
        rho, partial, through = partial_skill(cause, effect, [x[:, 1], other], [E, 2, 2], 1, Tp)
        assert found.rho[d] == pytest.approx(rho, abs=1e-4)
        assert found.partial[d] == pytest.approx(partial, abs=1e-4)
        np.testing.assert_allclose(found.through[d], through, atol=1e-4)
    assert np.isnan(found.p_value).all() and found.n == 0


def test_a_chain_passes_through_its_middle_and_a_direct_link_does_not(one_device):
    ratio, p_value = {}, {}
    for name, links in (("chain", CHAIN), ("loop", LOOP)):
        x = linked_maps(500, links, 3)
        found = pyedmcl.partial_ccm(x[:, 0], x[:, 2], given=x[:, 1], E=3, Tp=-2, n=19, seed=1, device=one_device)
        ratio[name], p_value[name] = found.partial[0] / found.rho[0], found.p_value[0]
    assert p_value["chain"] > 0.1 and p_value["loop"] == 0.05
    assert ratio["chain"] < 0.6 < 0.7 < ratio["loop"]


def test_surrogates_by_hand(one_device):
    x = linked_maps(200, CHAIN, 4)
    options = {"given": x[:, 1], "E": 2, "Tp": -1, "surrogate": "phase", "device": one_device}
    found = pyedmcl.partial_ccm(x[:, 0], x[:, 2], n=9, seed=5, **options)
    drawn = pyedmcl.surrogate(x[:, 0], "phase", n=9, seed=5)  # series 0 of the seed
    partial = [pyedmcl.partial_ccm(row, x[:, 2], n=None, **options).partial[0] for row in drawn]
    assert found.p_value[0] == (1 + (np.array(partial) >= found.partial[0]).sum()) / 10
    pytest.importorskip("pandas", reason="pandas is not installed")
    frame = found.to_frame()
    assert frame["cause"].tolist() == ["x", "y"] and frame["through z"].tolist() == found.through[:, 0].tolist()


def test_as_many_surrogates_as_it_takes(one_device):
    """By default: one direction is decided in the first round, the other keeps on until the budget ends."""
    x = linked_maps(200, CHAIN, 4)
    options = {"given": x[:, 1], "E": 2, "Tp": -1, "surrogate": "phase", "seed": 5, "device": one_device}
    found = pyedmcl.partial_ccm(x[:, 0], x[:, 2], budget=60, **options)
    assert found.n > 60 and found.provenance["arguments"]["budget"] == 60
    fixed = {n: pyedmcl.partial_ccm(x[:, 0], x[:, 2], n=n, **options).p_value for n in (39, found.n)}
    assert sorted(int(np.flatnonzero([p[d] == found.p_value[d] for p in fixed.values()])[0]) for d in (0, 1)) == [0, 1]
    with pytest.warns(RuntimeWarning, match="n=3 surrogates are too few"):
        pyedmcl.partial_ccm(x[:, 0], x[:, 1], n=3, **options | {"given": x[:, 2]})


def test_partial_correlations():
    rng = np.random.default_rng(1)
    z = rng.standard_normal(5000)
    a, b = z + rng.standard_normal((2, 5000))
    assert abs(partial_correlation(a, b, [z])) < 0.05 < 0.4 < partial_correlation(a, b, [])
    inverse = np.linalg.inv(np.corrcoef([a, b, z]))
    assert partial_correlation(a, b, [z]) == pytest.approx(-inverse[0, 1] / np.sqrt(inverse[0, 0] * inverse[1, 1]))
    assert np.isnan(partial_correlation(a, a, [a])) and np.isnan(partial_correlation(a[:3], b[:3], [z[:3]]))


@pytest.mark.parametrize(
    ("change", "words"),
    [({"given": np.zeros(5)}, "given has 5 steps"), ({"x": np.zeros((200, 2))}, "x: one series"), ({"n": 0}, "n=0"),
     ({"E": [2, 2]}, "E has 2 values, but there are 3 series"), ({"surrogate": "no"}, "surrogate='no'")],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:constant")
def test_bad_input_is_named(change, words):
    x = linked_maps(200, CHAIN, 4)
    with pytest.raises(InputError, match=words):
        pyedmcl.partial_ccm(**{"x": x[:, 0], "y": x[:, 2], "given": x[:, 1], "E": 2, **change})
