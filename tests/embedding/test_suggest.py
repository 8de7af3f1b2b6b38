"""``suggest``: one E, tau, Theiler window and radius a series, each of the function that finds it."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from series_helpers import lorenz_x
from typer.testing import CliRunner

import pyedmcl
from pyedmcl.cli.app import app
from pyedmcl.errors import InputError
from pyedmcl.recurrence.arguments import correlation_time

N = 600
RNG = np.random.default_rng(3)
NOISE = RNG.standard_normal(N)
WAVE = np.sin(2 * np.pi * np.arange(N) / 17.3) + 0.1 * NOISE


def henon(n=N):
    x, y, out = 0.1, 0.1, []
    for _ in range(n + 50):
        x, y = 1 - 1.4 * x * x + y, 0.3 * x
        out.append(x)
    return np.array(out[50:])


def logistic(n=N):
    out = [0.4]
    for _ in range(n - 1):
        out.append(3.8 * out[-1] * (1 - out[-1]))
    return np.array(out)


def quiet(data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return pyedmcl.suggest(data, **options)


def test_known_systems(one_device):
    """The dimensions that made them, in which each unfolds, and lags of a quarter turn."""
    found = quiet({"logistic": logistic(), "henon": henon(), "wave": WAVE}, device=one_device)
    assert found.E[:2].tolist() == [1, 2] and found.names == ("logistic", "henon", "wave")
    assert found.tau.tolist() == [1, 1, 4] and found.theiler.tolist() == [1, 1, correlation_time(WAVE[:, None])]
    assert (found.rho > 0.9).all()
    x = lorenz_x()
    found = quiet(x, device=one_device)
    assert found.E == 3 and found.tau == pyedmcl.mutual_information(x).first_minimum()


def test_values_are_those_of_the_functions_behind_them(one_device):
    found = quiet(WAVE, device=one_device)
    assert isinstance(found.E, int) and isinstance(found.radius, float)
    asked = {"tau": found.tau, "Tp": found.tau, "exclusion_radius": found.theiler - 1, "E_max": 10}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        behind = pyedmcl.embed_dimension(WAVE, E_rule="one-se", device=one_device, **asked)
    assert (behind.E, behind.rho[behind.E - 1]) == (found.E, found.rho)
    states = np.stack([WAVE[k * found.tau : N - (found.E - 1 - k) * found.tau] for k in range(found.E)], axis=1)
    distance = np.sqrt(((states[:, None] - states[None]) ** 2).sum(axis=2))
    apart = np.abs(np.subtract.outer(np.arange(len(states)), np.arange(len(states)))) >= found.theiler
    assert (distance[apart] <= found.radius * (1 + 1e-6)).mean() == pytest.approx(0.05, abs=0.001)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (np.full(N, 2.0), "Nothing: it is constant."),
        (np.full(N, np.nan), "Nothing: there are 0 values, and at least 30 are needed."),
        (np.where(np.arange(N) < 29, NOISE, np.nan), "Nothing: there are 29 values"),
        (NOISE[:29], "Nothing: there are 29 values"),
        (NOISE, "E: none, since the best skill one step ahead"),
        (np.where(np.arange(N) % 2, NOISE, np.nan), "E: none, since no state has a target"),
        (RNG.integers(0, 2, N), "radius: none, since 50% of the pairs of states outside the Theiler window are equal"),
    ],
)
def test_what_cannot_be_recommended_is_not(values, said, one_device):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = pyedmcl.suggest(values, device=one_device)
    assert found.E == 0 and said in found.reasons[0]
    nothing = said.startswith("Nothing")
    assert (found.tau == 0) == (found.theiler == 0) == nothing
    assert np.isnan(found.radius) == (nothing or "radius" in said)


def test_noise_has_no_E(one_device):
    """Of independent values at most one series in twenty is given one, by chance."""
    noise = np.random.default_rng(11).standard_normal((200, 100))
    assert (quiet(noise, device=one_device).E > 0).sum() <= 5 + 2 * np.sqrt(100 * 0.05 * 0.95)


def test_where_longer_lags_carry_noise_tau_is_one(one_device):
    walk = np.cumsum(NOISE)
    found = quiet(walk, device=one_device)
    assert found.tau == 1 and found.E >= 1 and found.theiler > 10 and "predict nothing" in found.reasons[0]


def test_gaps_and_scale_do_not_matter_much(one_device):
    gaps = WAVE.copy()
    gaps[[50, 51, 300]] = np.nan
    plain, holed, large = (quiet(values, device=one_device) for values in (WAVE, gaps, 1e200 * WAVE))
    assert (holed.tau, holed.theiler) == (plain.tau, plain.theiler) == (large.tau, large.theiler)
    assert large.E == plain.E and large.radius == pytest.approx(1e200 * plain.radius, rel=1e-5)
    assert holed.radius == pytest.approx(plain.radius, rel=0.1)


def test_no_state_crosses_a_border_of_groups(one_device):
    """Recordings of one map, in an order that makes no difference."""
    x = np.concatenate([logistic(400)[:200], logistic(400)[200:]])
    groups = np.arange(400) // 200
    found = quiet(x, groups=groups, device=one_device)
    turned = quiet(x.reshape(2, 200)[::-1].ravel(), groups=groups, device=one_device)
    assert (found.E, found.tau, found.theiler) == (turned.E, turned.tau, turned.theiler) == (1, 1, 1)
    with pytest.raises(InputError, match="groups"):
        pyedmcl.suggest(x, groups=groups[:5], device=one_device)


def test_the_commands(tmp_path, one_device, monkeypatch):
    monkeypatch.setenv("PYEDMCL_DEVICE", one_device)
    path, out = tmp_path / "x.csv", tmp_path / "s.csv"
    np.savetxt(path, np.column_stack([WAVE, NOISE]), delimiter=",", header="wave,noise", comments="", fmt="%.17g")
    done = CliRunner().invoke(app, ["suggest", str(path), "-o", str(out), "--json"])
    assert done.exit_code == 0, done.output
    rows = json.loads(done.stdout)["suggested"]
    found = quiet({"wave": WAVE, "noise": NOISE})
    assert [row["E"] for row in rows] == found.E.tolist() and [row["radius"] for row in rows] == found.radius.tolist()
    assert out.read_text().startswith("series,E,tau,theiler,radius,rho,Tp,reasons\nwave,")
    said = CliRunner().invoke(app, ["check", str(path)]).stdout
    assert f"wave: take E={found.E[0]}, tau={found.tau[0]}, Theiler window {found.theiler[0]}, radius" in said
    assert "noise: E: none" in said
    monkeypatch.setattr("pyedmcl.cli.maps._FEW_PAIRS", 1)
    said = CliRunner().invoke(app, ["check", str(path)]).stdout
    assert "'pyedmcl suggest' recommends" in said and "take E=" not in said


def test_a_frame(one_device):
    pytest.importorskip("pandas", reason="tables need pandas")
    frame = quiet({"wave": WAVE}, device=one_device).to_frame()
    assert frame["series"].tolist() == ["wave"] and frame["reasons"][0].count(". ") == 3
