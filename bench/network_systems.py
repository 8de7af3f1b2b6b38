"""Simulated networks for bench/networks.py: which series drive which, and the systems that follow from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from null_systems import NULLS, SHARED, null_table
from numpy.typing import NDArray

Truth = NDArray[np.bool_]
Data = NDArray[np.float64]


def random_links(rng: np.random.Generator, n: int) -> Truth:
    """Each series has none, one or two drivers."""
    links = np.zeros((n, n), bool)
    for j in range(n):
        links[rng.choice(np.delete(np.arange(n), j), rng.integers(0, 3), replace=False), j] = True
    return links


def chain_links(rng: np.random.Generator, n: int) -> Truth:
    links = np.zeros((n, n), bool)
    links[np.arange(n - 1), np.arange(1, n)] = True
    return links


def fork_links(rng: np.random.Generator, n: int) -> Truth:
    """Two drivers of all others in halves."""
    links = np.zeros((n, n), bool)
    links[0, 2::2] = links[1, 3::2] = True
    return links


def maps(rng: np.random.Generator, links: Truth, rows: int, strength: float) -> Data:
    """Logistic maps, as in pyedmcl.simulate."""
    n = len(links)
    weights = links / np.maximum(links.sum(axis=0), 1)
    growth, x, out = rng.uniform(3.65, 3.85, n), rng.uniform(0.2, 0.8, n), np.empty((rows, n))
    for t in range(-300, rows):
        x = x * (growth * (1 - x) - strength * (x @ weights)) * np.exp(0.005 * rng.standard_normal(n))
        x = np.clip(x, 1e-3, 1 - 1e-3)
        if t >= 0:
            out[t] = x
    return out


def lotka_volterra(rng: np.random.Generator, links: Truth, rows: int, strength: float) -> Data:
    """Competing species in discrete time: x exp(r (1 - x - strength * competitors)), with process noise."""
    n = len(links)
    weights = links / np.maximum(links.sum(axis=0), 1)
    growth, x, out = rng.uniform(2.7, 3.0, n), rng.uniform(0.2, 0.8, n), np.empty((rows, n))
    for t in range(-300, rows):
        x = x * np.exp(growth * (1 - x - strength * (x @ weights)) + 0.01 * rng.standard_normal(n))
        if t >= 0:
            out[t] = x
    return out


def neurons(rng: np.random.Generator, links: Truth, rows: int, strength: float) -> Data:
    """Hindmarsh and Rose's neurons with excitatory synapses; a row every time unit, Runge and Kutta's steps of 0.1."""
    n, h, each = len(links), 0.1, 10
    weights, current = links / np.maximum(links.sum(axis=0), 1), rng.uniform(3.0, 3.3, len(links))
    state, out = rng.uniform(-1, 1, (3, n)), np.empty((rows, n))

    def slope(s: Data) -> Data:
        x, y, z = s
        synapse = strength * (2.0 - x) * ((1 / (1 + np.exp(-10 * (x + 0.25)))) @ weights)
        return np.array([y - x**3 + 3 * x**2 - z + current + synapse, 1 - 5 * x**2 - y, 0.006 * (4 * (x + 1.6) - z)])

    for t in range(-200 * each, rows * each):
        a = slope(state)
        b = slope(state + h / 2 * a)
        c = slope(state + h / 2 * b)
        state = state + h / 6 * (a + 2 * b + 2 * c + slope(state + h * c))
        if t >= 0 and t % each == 0:
            out[t // each] = state[0]
    return out


def flows(rng: np.random.Generator, links: Truth, rows: int, strength: float) -> Data:
    """Thomas's cyclic attractors, whose first coordinates are pulled to those of their drivers; a row each 0.8."""
    n, h, each = len(links), 0.1, 8
    weights, friction = links / np.maximum(links.sum(axis=0), 1), rng.uniform(0.17, 0.2, len(links))
    driven, state, out = links.any(axis=0), rng.uniform(-1, 1, (3, len(links))), np.empty((rows, n))

    def slope(s: Data) -> Data:
        x, y, z = s
        pull = strength * driven * (x @ weights - x)
        return np.array([np.sin(y) - friction * x + pull, np.sin(z) - friction * y, np.sin(x) - friction * z])

    for t in range(-300 * each, rows * each):
        a = slope(state)
        b = slope(state + h / 2 * a)
        c = slope(state + h / 2 * b)
        state = state + h / 6 * (a + 2 * b + 2 * c + slope(state + h * c))
        if t >= 0 and t % each == 0:
            out[t // each] = state[0]
    return out


def phases(rng: np.random.Generator, links: Truth, rows: int, strength: float) -> Data:
    """Rotators of periods from 12 to 24 rows that noise disturbs, and that are pulled towards the phase of drivers."""
    n = len(links)
    weights, turn = links / np.maximum(links.sum(axis=0), 1), 2 * np.pi / rng.uniform(12, 24, len(links))
    angle, out = rng.uniform(0, 6.28, n), np.empty((rows, n))
    for t in range(-200, rows):
        pull = (np.sin(angle[:, None] - angle[None, :]) * weights).sum(axis=0)
        angle = angle + turn + strength * pull + 0.15 * rng.standard_normal(n)
        if t >= 0:
            out[t] = np.sin(angle)
    return out


def linear(rng: np.random.Generator, links: Truth, rows: int, strength: float) -> Data:
    """Autoregressions with links of one or two rows' delay, and noise."""
    n = len(links)
    own, x = rng.uniform(0.2, 0.6, n), np.zeros((rows + 200, n))
    first = links & (rng.random(links.shape) < 0.5)
    for t in range(2, len(x)):
        x[t] = own * x[t - 1] + strength * (x[t - 1] @ first + x[t - 2] @ (links & ~first)) + rng.standard_normal(n)
    return x[200:]


def regimes(rng: np.random.Generator, links: Truth, rows: int, strength: float) -> Data:
    """Autoregressions whose drivers act by a saturating function, and noise."""
    n = len(links)
    x = np.zeros((rows + 200, n))
    for t in range(1, len(x)):
        x[t] = 0.5 * x[t - 1] + strength * np.tanh(2 * x[t - 1] - 1) @ links + rng.standard_normal(n)
    return x[200:]


def unlinked(kind: str) -> Callable[..., Data]:
    """Red noise by itself, with a common season or trend, or summed up to random walks."""

    def make(rng: np.random.Generator, links: Truth, rows: int, strength: float) -> Data:
        n = len(links)
        x = np.zeros((rows, n))
        for t in range(1, rows):
            x[t] = strength * x[t - 1] + rng.standard_normal(n)
        time_of = np.arange(rows)[:, None]
        season = np.sin(2 * np.pi * time_of / 12 + rng.uniform(0, 6.28, n))
        if kind == "season":
            return x + 2 * season
        if kind == "trend":
            return x + 4 * time_of / rows
        return np.cumsum(x, axis=0) if kind == "walk" else x

    return make


def noisy(data: Data, rng: np.random.Generator, noise: float, season: float = 0.0) -> Data:
    """With observation noise and a common season, as shares of the standard deviation."""
    spread = data.std(axis=0)
    cycle = np.sin(2 * np.pi * np.arange(len(data)) / 12)[:, None]
    return data + season * spread * cycle + noise * spread * rng.standard_normal(data.shape)


# name: (series, rows, links, system, strength, observation noise, season)
CASES: dict[str, tuple[Any, ...]] = {
    "maps, weak": (10, 400, random_links, maps, 0.2, 0.0, 0.0),
    "maps, strong": (10, 400, random_links, maps, 0.4, 0.0, 0.0),
    "maps, strong, 10 % noise": (10, 400, random_links, maps, 0.4, 0.1, 0.0),
    "maps, strong, 20 % noise": (10, 400, random_links, maps, 0.4, 0.2, 0.0),
    "maps, strong, season": (10, 400, random_links, maps, 0.4, 0.1, 0.5),
    "30 maps, 10 % noise": (30, 1000, random_links, maps, 0.4, 0.1, 0.0),
    "60 maps, 10 % noise": (60, 3000, random_links, maps, 0.4, 0.1, 0.0),
    "chains": (10, 400, chain_links, maps, 0.4, 0.05, 0.0),
    "forks": (10, 400, fork_links, maps, 0.4, 0.05, 0.0),
    "Lotka-Volterra": (10, 400, random_links, lotka_volterra, 0.3, 0.05, 0.0),
    "Hindmarsh-Rose": (10, 1000, random_links, neurons, 0.3, 0.0, 0.0),
    "flows": (5, 500, random_links, flows, 0.3, 0.0, 0.0),
    "flows, 10 % noise": (5, 500, random_links, flows, 0.3, 0.1, 0.0),
    "rotators": (6, 500, random_links, phases, 0.25, 0.0, 0.0),
    "linear": (8, 400, random_links, linear, 0.35, 0.0, 0.0),
    "saturating": (6, 400, random_links, regimes, 0.8, 0.0, 0.0),
    "no links": (10, 300, None, unlinked("noise"), 0.6, 0.0, 0.0),
    "no links, common season": (10, 300, None, unlinked("season"), 0.6, 0.0, 0.0),
    "no links, common trend": (10, 300, None, unlinked("trend"), 0.6, 0.0, 0.0),
    "no links, random walks": (10, 300, None, unlinked("walk"), 0.0, 0.0, 0.0),
}
CASES |= {
    f"null: {kind} (n = {rows})": (8, rows, None, null_table, 0.0, 0.0, 0.0)
    for rows in (300, 100) for kind in NULLS | SHARED
}


def simulated(name: str, number: int) -> tuple[Truth, Data]:
    """Which series (row) drives which (column) in a network of a case, and its series."""
    n, rows, draw, system, strength, noise, season = CASES[name]
    if system is null_table:
        return np.zeros((n, n), bool), null_table(name.partition(": ")[2].partition(" (")[0], number, n, rows)
    rng = np.random.default_rng([number, *map(ord, name)])
    links = np.zeros((n, n), bool) if draw is None else draw(rng, n)
    return links, noisy(system(rng, links, rows, strength), rng, noise, season)


def over_one_step(name: str) -> Truth:
    """Pairs of a case whose only way is a chain over one series in between; row = effect and column = cause."""
    n, _, draw, *_ = CASES[name]
    pairs = np.zeros((n, n), bool)
    if draw is chain_links:
        pairs[np.arange(2, n), np.arange(n - 2)] = True
    return pairs
