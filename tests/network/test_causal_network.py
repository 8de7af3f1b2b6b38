"""Causal networks: each leg is the function it stands for, and truth is found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from null_systems import null_table
from series_helpers import CHAIN, linked_maps

import pyedmcl
from pyedmcl.errors import InputError, PyedmclWarning
from pyedmcl.network import legs
from pyedmcl.network.legs import p_of_order, z_of_lags

LAGS = (-3, -2, -1, 0, 1)


@pytest.fixture(scope="module")
def chain(one_device):
    data = linked_maps(400, CHAIN, 3, strength=0.4)
    return data, pyedmcl.causal_network(
        {"a": data[:, 0], "b": data[:, 1], "c": data[:, 2]}, E=3, lags=LAGS, seed=1, device=one_device
    )


def test_a_chain_is_told_from_direct_links(chain):
    _, found = chain
    truth = {("a", "b"): "direct", ("b", "c"): "direct", ("a", "c"): "indirect"}
    verdicts = {(row[0], row[1]): row[2] for row in found.rows()}
    assert {pair: verdicts[pair] for pair in truth} == truth
    assert not {"direct", "indirect", "link"} & {verdicts[pair] for pair in verdicts if pair not in truth}
    assert "through:b" in found.codes[2, 0]


def test_the_legs_are_the_functions_that_they_stand_for(chain, one_device):
    data, found = chain
    for place, Tp in enumerate(LAGS):
        np.testing.assert_allclose(
            found.by_lag[place], pyedmcl.xmap(data, E=3, Tp=Tp, device=one_device).rho, atol=1e-6
        )
    off = ~np.eye(3, dtype=bool)
    np.testing.assert_array_equal(found.skill, found.by_lag.max(axis=0))
    np.testing.assert_array_equal(found.rho[off], found.by_lag[:3].max(axis=0)[off])
    assert found.lag[2, 0] == LAGS[int(found.by_lag[:, 2, 0].argmax())]
    direct = pyedmcl.partial_ccm(
        data[:, 0], data[:, 2], given=data[:, 1], E=3, Tp=-1, n=None, device=one_device
    )
    plain = pyedmcl.causal_network(
        data, E=3, lags=None, surrogate=None, convergence=False, seed=1, device=one_device
    )
    assert plain.rho[2, 0] == pytest.approx(direct.rho[0], abs=1e-5)
    assert plain.partial[2, 0] == pytest.approx(direct.partial[0], abs=1e-4)
    assert plain.carried[2, 0] == pytest.approx(direct.through[0, 0], abs=1e-4)


def test_surrogates_have_their_own_best_lags(chain, one_device):
    data, _ = chain
    found = pyedmcl.causal_network(data, E=3, lags=LAGS, n=9, seed=1, partial=False, device=one_device)
    drawn = pyedmcl.surrogate(data[:, 0], "auto", n=9, seed=1)  # series 0 of the seed
    skill = [
        max(pyedmcl.simplex(data[:, 1], target=row, E=3, Tp=Tp, device=one_device).rho for Tp in (-3, -2, -1))
        for row in drawn
    ]
    assert found.p_value[1, 0] == (1 + (np.array(skill) >= found.rho[1, 0]).sum()) / 10
    skill = [
        max(pyedmcl.simplex(data[:, 2], target=row, E=3, Tp=Tp, device=one_device).rho for Tp in (-3, -2, -1))
        for row in drawn
    ]
    assert found.p_value[2, 0] == (1 + (np.array(skill) >= found.rho[2, 0]).sum()) / 10
    assert set(np.unique(found.verdict)) <= {"link", "unordered", "none"}


def test_dimensions_are_those_of_the_effect(one_device):
    data = linked_maps(200, CHAIN, 5)
    found = pyedmcl.causal_network(data, E=[2, 3, 2], lags=(-1, 0), n=9, seed=2, partial=False, device=one_device)
    for effect, E in enumerate((2, 3, 2)):
        whole = pyedmcl.xmap(data, E=E, Tp=-1, device=one_device).rho
        np.testing.assert_allclose(found.by_lag[0][effect], whole[effect], atol=1e-6)
    # Surrogates: the skill of the states of the effect, whose dimension is not that of the cause.
    drawn = pyedmcl.surrogate(data[:, 0], "auto", n=9, seed=2)  # series 0 of the seed
    skill = [pyedmcl.simplex(data[:, 1], target=row, E=3, Tp=-1, device=one_device).rho for row in drawn]
    assert found.p_value[1, 0] == (1 + (np.array(skill) >= found.rho[1, 0]).sum()) / 10


def test_gaps_are_left_out_of_every_lag(one_device):
    data = linked_maps(200, CHAIN, 5)
    data[[20, 21, 90], 0] = data[60, 2] = np.nan
    data[:, 2] *= 1e6
    found = pyedmcl.causal_network(data, E=[2, 3, 2], lags=(-2, -1, 0), n=9, seed=2, partial=False, device=one_device)
    for place, Tp in enumerate((-2, -1, 0)):
        for E in (2, 3):
            rows = np.array([2, 3, 2]) == E
            whole = pyedmcl.xmap(data, E=E, Tp=Tp, device=one_device).rho
            np.testing.assert_allclose(found.by_lag[place][rows], whole[rows], atol=1e-6)
    drawn = pyedmcl.surrogate(data[:, 0], "auto", n=9, seed=2)
    skill = [
        max(pyedmcl.simplex(data[:, 1], target=row, E=3, Tp=Tp, device=one_device).rho for Tp in (-2, -1))
        for row in drawn
    ]
    assert found.p_value[1, 0] == (1 + (np.array(skill) >= found.rho[1, 0]).sum()) / 10


def test_surrogates_of_a_target_do_not_depend_on_what_is_computed_with_them(chain, one_device, monkeypatch):
    data, _ = chain
    options = {"E": 3, "lags": (-2, -1, 0), "seed": 1, "partial": False, "convergence": False, "device": one_device}
    one = pyedmcl.causal_network(data, **options)
    monkeypatch.setattr("pyedmcl.engines.lagged.LaggedMap.most_targets", 112)  # of one to two targets
    monkeypatch.setattr("pyedmcl.engines.lagged.LaggedMap._keep", lambda *_: None)  # tables are made again
    other = pyedmcl.causal_network(data, **options, n=99)
    np.testing.assert_array_equal(other.rho, one.rho)
    first = pyedmcl.causal_network(data, **options, n=39)
    assert ((other.p_value * 100 - 1) - (first.p_value * 40 - 1) >= -1e-9)[~np.eye(3, dtype=bool)].all()


def test_switched_off_legs_are_said(chain, one_device):
    data, _ = chain
    found = pyedmcl.causal_network(
        data, E=3, lags=None, surrogate=None, convergence=False, partial=False, seed=1, device=one_device
    )
    assert found.lag is None and np.isnan(found.q_value).all() and np.isnan(found.gain).all()
    assert set(found.codes[0, 1]) == {"surrogates-off", "convergence-off", "lags-off", "partial-off"}
    said = found.statement("x0", "x1")
    for words in ("not compared with surrogates", "Convergence was not tested", "Lags were not compared", "not tested"):
        assert words in said
    assert "surrogates" not in found.methods()


def test_sentences_have_the_numbers(chain):
    _, found = chain
    said = found.statement("a", "b")
    assert said.startswith("There is evidence that a drives b, and no other series of the table explains it.")
    assert f"rho = {found.rho[1, 0]:.2f}" in said and f"q = {found.q_value[1, 0]:.2g}" in said
    assert f"gain {found.gain[1, 0]:.2f}" in said and "not in the table" in said
    assert "linked through b" in found.statement("a", "c")
    assert "no sufficient evidence" in found.statement("c", "a") or "comes first" in found.statement("c", "a")
    assert "400 rows" in found.methods() and "seed 1" in found.methods()
    full = replace(
        found, exclusion_radius=12, groups=24, season=365.25, without_season=found.names, seed=2**62,
        E=np.array([2, 3, 10]), p_forecast=np.full((3, 3), 0.5), gain=np.full((3, 3), 0.5),
    ).methods()  # fmt: skip
    for words in ("radius 12", "24 recordings", "365.2 rows", "surrogates", "grow", "lags", "Partial", "Forecasts"):
        assert words in full
    assert len(full.split()) <= 120, "a methods section has no room for more"
    assert repr(found).splitlines()[0] == f"CausalNetwork of 3 series: {found.summary()}"
    assert repr(found).splitlines()[2].split()[:3] == ["a", "b", "direct"] == list(found.answer().rows[0][:3])
    with pytest.raises(InputError, match="cause='z': there is no such series"):
        found.statement("z", "b")


def test_tables_and_pictures(chain, tmp_path):
    _, found = chain
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    frame = found.to_frame()
    assert len(frame) == 6 and frame.columns[:2].tolist() == ["cause", "effect"]
    assert frame["verdict"].tolist()[:2] == ["direct", "direct"] and len(found.to_frame(["indirect"])) == 1
    assert frame["other"][frame["verdict"] == "indirect"].tolist() == ["b"]
    assert not pandas.isna(frame["q_value"]).any()
    with pytest.raises(InputError, match="verdicts='wrong'"):
        found.to_frame("wrong")
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    from matplotlib.patches import FancyArrowPatch

    figure = found.plot(str(tmp_path / "network.png"))
    assert len([patch for patch in figure.axes[0].patches if isinstance(patch, FancyArrowPatch)]) == 2
    assert "direct" in figure.axes[0].get_title() and (tmp_path / "network.png").stat().st_size > 1000


def test_graphs(chain, tmp_path):
    _, found = chain
    networkx = pytest.importorskip("networkx", reason="networkx is not installed")
    graph = found.to_networkx()
    assert set(graph.edges) == {("a", "b"), ("b", "c")} and graph.edges["a", "b"]["verdict"] == "direct"
    assert set(found.to_networkx(["indirect"]).edges) == {("a", "c")}
    for name, read in (("n.graphml", networkx.read_graphml), ("n.gexf", networkx.read_gexf)):
        again = read(found.write_graph(tmp_path / name))
        assert set(again.edges) == set(graph.edges) and float(again.edges["a", "b"]["rho"]) == found.rho[1, 0]
    with pytest.raises(InputError, match="graph"):
        found.write_graph(tmp_path / "n.png")


@pytest.mark.filterwarnings("ignore:constant series")
def test_a_constant_series_is_linked_to_nothing(one_device):
    data = np.column_stack([linked_maps(100, CHAIN, 3)[:, :2], np.ones(100)])
    found = pyedmcl.causal_network(data, E=3, lags=(-1, 0), n=9, seed=1, device=one_device)
    assert (found.verdict[2] == "none").all() and (found.verdict[:, 2] == "none").all()


def test_a_table_of_constants_has_no_links(one_device):
    with pytest.warns(RuntimeWarning, match="constant series, whose rho is NaN: 'x0', 'x1', 'x2'"):
        found = pyedmcl.causal_network(np.ones((100, 3)), E=2, n=3, seed=1, lags=None, device=one_device)
    assert (found.verdict == "none").all()


def test_too_many_intermediates_are_told_of(one_device, monkeypatch):
    monkeypatch.setattr(legs, "MOST_GIVEN", 1)
    links = [[0, 1, 1, 0], [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0]]  # from the first to the last through two others
    options = {"E": 3, "lags": None, "n": 39, "seed": 1, "convergence": False, "device": one_device}
    with pytest.warns(RuntimeWarning, match="may pass through more than 1 other series each; those with the strongest"):
        pyedmcl.causal_network(linked_maps(200, links, 3), **options)


@pytest.mark.parametrize(
    ("data", "options", "words"),
    [(np.zeros((20, 3)), {}, "20 rows, and at least 30"), (np.arange(50.0), {}, "one series"),
     (None, {"lags": [-2, -1], "latest": -1}, "latest=-1"), (None, {"lags": [0, 1], "latest": -1}, "latest=-1"),
     (None, {"surrogate": "x"}, "'x'"),
     (None, {"rate": 0}, "rate=0"), (None, {"lags": [-1, 0.5]}, "lags=0.5")],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:constant series")
def test_bad_input_is_named(data, options, words):
    with pytest.raises(InputError, match=words):
        pyedmcl.causal_network(linked_maps(60, CHAIN) if data is None else data, **{"E": 2, **options})


def test_a_table_on_its_side_is_told_of(one_device):
    with pytest.warns(RuntimeWarning, match="transpose it"):
        pyedmcl.causal_network(
            np.random.default_rng(1).random((40, 41)), E=3, lags=(-1, 0), surrogate=None, convergence=False,
            partial=False, device=one_device,
        )  # fmt: skip


def test_the_order_of_a_link_is_tested_by_predictions_of_both_directions(chain, one_device):
    data, found = chain

    def z(effect, cause):
        estimates, best = np.full((2, 400), np.nan), []
        for side, tried in enumerate(((-1, -2, -3), (0, 1))):
            Tp = max(tried, key=lambda lag: found.by_lag[LAGS.index(lag), effect, cause])
            made = pyedmcl.simplex(data[:, effect], target=data[:, cause], E=3, Tp=Tp, device=one_device)
            inside = made.time < 400  # it forecasts rows behind the last, too
            estimates[side, made.time[inside]] = made.predicted[inside]
            best.append(Tp)
        return z_of_lags(estimates, data, np.array([cause, cause]), np.array(best))

    assert found.lag[0, 1] > -1  # the opposite direction is best later
    assert found.p_lag[1, 0] == pytest.approx(p_of_order(z(1, 0), z(0, 1))[0], rel=1e-3)
    assert found.p_lag[2, 1] == pytest.approx(p_of_order(z(2, 1), z(1, 2))[0], rel=1e-3)
    linked = np.isin(found.verdict.astype(str), ["direct", "indirect"])
    assert (found.p_lag[linked] < 0.05).all() and np.isnan(found.p_lag[~linked & (found.verdict == "none")]).all()


def test_smooth_series_may_be_linked_within_a_row(one_device):
    off = {"surrogate": None, "convergence": False, "partial": False, "E": 3, "lags": (-1, 0, 1), "device": one_device}
    rough = linked_maps(100, CHAIN, 3)
    assert pyedmcl.causal_network(rough, **off).latest == -1
    slow = np.sin(np.arange(100)[:, None] * 0.1 + np.arange(3))
    assert pyedmcl.causal_network(slow, **off).latest == 0
    assert pyedmcl.causal_network(slow, latest=-1, **off).latest == -1
    with pytest.warns(RuntimeWarning, match="lags end at 0 and none is later: latest=-1 is taken"):
        assert pyedmcl.causal_network(slow, **off | {"lags": (-2, -1, 0)}).latest == -1
    with pytest.raises(InputError, match="latest=0 and later ones are needed"):  # which was asked for
        pyedmcl.causal_network(slow, latest=0, **off | {"lags": (-2, -1, 0)})


def test_states_of_smooth_series_span_their_memory(one_device):
    off = {"surrogate": None, "convergence": False, "partial": False, "lags": (-1, 0, 1), "device": one_device}
    rough = linked_maps(100, CHAIN, 3)
    assert pyedmcl.causal_network(rough, **off).exclusion_radius == 0
    trended = pyedmcl.causal_network(rough + np.arange(100)[:, None], **off)
    assert (trended.exclusion_radius, trended.latest) == (0, -1)  # a trend is no memory
    noise = np.random.default_rng(1).standard_normal((603, 3))
    smooth = sum(noise[step : 600 + step] for step in range(4))  # autocorrelation 0.75, 0.5, 0.25
    found = pyedmcl.causal_network(smooth, **off)
    assert found.exclusion_radius == 3 and found.E.min() >= 6
    np.testing.assert_allclose(
        found.by_lag[1][0, 1:],
        pyedmcl.xmap(smooth, E=int(found.E[0]), exclusion_radius=3, Tp=0, device=one_device).rho[0, 1:], atol=1e-6,
    )  # fmt: skip
    assert "exclusion radius 3" in found.methods()
    assert (pyedmcl.causal_network(smooth, E_max=4, **off).E == 4).all()
    assert pyedmcl.causal_network(smooth, tau=3, **off).E.min() >= 2
    given = pyedmcl.causal_network(smooth, E=2, exclusion_radius=0, **off)
    assert given.exclusion_radius == 0 and (given.E == 2).all()
    with pytest.raises(InputError, match="exclusion_radius='x': 'auto' or an integer"):
        pyedmcl.causal_network(smooth, exclusion_radius="x")


def test_recordings_remember_by_themselves(one_device):
    noise = np.random.default_rng(2).standard_normal((403, 3))
    smooth = sum(noise[step : 400 + step] for step in range(4))
    smooth[250:] += 50.0  # a step between recordings is no memory
    label = np.repeat(["a", "b"], [250, 150])
    off = {"surrogate": None, "convergence": False, "partial": False, "lags": (-1, 0, 1), "device": one_device}
    found = pyedmcl.causal_network(smooth, groups=label, **off)
    assert found.exclusion_radius == 3 and found.E.min() >= 6
    whole = pyedmcl.xmap(smooth, E=int(found.E[0]), exclusion_radius=3, Tp=0, groups=label, device=one_device).rho
    np.testing.assert_allclose(found.by_lag[1][0, 1:], whole[0, 1:], atol=1e-6)
    rough = pyedmcl.causal_network(noise[:400], groups=label, **off)
    assert rough.exclusion_radius == 0 and rough.latest == -1


@pytest.mark.parametrize("memory", ["0.3", "0.7", "0.9"])
def test_one_weather_is_no_cause(memory, one_device):
    """Innovations that are correlated within a row: none of these series comes first."""
    tables = [null_table(f"one weather, r 0.7, AR(1) {memory}", number, 6, 300) for number in (7, 8, 9)]
    found = [pyedmcl.causal_network(data, budget=200, seed=1, device=one_device).verdict for data in tables]
    arrows, unordered = (np.array([verdict == word for verdict in found]) for word in ("direct", "unordered"))
    assert arrows.sum() <= 5 and unordered.sum() >= 25  # of 90 pairs; 60 and more were arrows
    assert not (arrows & arrows.transpose(0, 2, 1)).any()


def test_a_driver_that_is_not_in_the_table_is_told(one_device):
    data = null_table("hidden driver, one delay", 7, 6, 300)
    with pytest.warns(PyedmclWarning, match="a driver which is not in the table is likely"):
        found = pyedmcl.causal_network(data, budget=200, seed=1, device=one_device)
    assert found.hidden_driver and "not in the table" in repr(found)
    apart = pyedmcl.causal_network(null_table("AR(1) 0.5", 7, 6, 300), budget=200, seed=1, device=one_device)
    assert not apart.hidden_driver and "not in the table" not in repr(apart)


@pytest.mark.parametrize("kind", ["AR(1) 0.9", "random walk", "logistic maps", "season 12.37", "lognormal"])
def test_skill_that_grows_with_the_library_is_no_link(kind, one_device):
    """It grows in a third of pairs without a link, and the verdict does not stand on it alone."""
    growing, arrows = 0, 0
    for number in (7, 8, 9):
        data = null_table(kind, number, 6, 300)
        growing += int(pyedmcl.ccm_matrix(data, E=3, sample=10, seed=1, device=one_device).converging().sum())
        found = pyedmcl.causal_network(data, E=3, budget=200, seed=1, device=one_device)
        arrows += int((found.verdict == "direct").sum())
    assert arrows <= 3 < 9 <= growing  # of 90 pairs
