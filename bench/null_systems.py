"""Tables of series without any link, for bench/calibration.py and bench/networks.py: what they share is no series.

Each kind draws its own numbers (period, place of a step, size of a season) where its name does not say them, so that
tests are not tuned to one of them. Numbers 0 to 99 were looked at while rules were chosen; reported are those from
1,000 on.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray

Data = NDArray[np.float64]
Null = Callable[[np.random.Generator, int, int], Data]


def red(rng: np.random.Generator, n_series: int, rows: int, memory: float = 0.5) -> Data:
    """Autoregressive series of order 1."""
    return filtered(rng.standard_normal((rows + 200, n_series)), [memory])[200:]


def filtered(noise: Data, coefficients: list[float]) -> Data:
    """An autoregression driven by given noise (rows, n_series)."""
    x = np.zeros_like(noise)
    for t in range(len(noise)):
        x[t] = noise[t] + sum(a * x[t - lag] for lag, a in enumerate(coefficients, 1) if t >= lag)
    return x


def walk(rng: np.random.Generator, n_series: int, rows: int, drift: float = 0.0) -> Data:
    return np.cumsum(rng.standard_normal((rows, n_series)) + drift, axis=0)


def logistic(rng: np.random.Generator, n_series: int, rows: int) -> Data:
    growth, x, out = rng.uniform(3.6, 3.9, n_series), rng.uniform(0.2, 0.8, n_series), np.empty((rows, n_series))
    for t in range(-200, rows):
        x = growth * x * (1 - x)
        if t >= 0:
            out[t] = x
    return out


def cycles(rng: np.random.Generator, n_series: int, rows: int, alike: bool = True) -> Data:
    """Noise-driven oscillations, of one period or of several."""
    period = np.full(n_series, rng.uniform(8, 14)) if alike else rng.uniform(5, 20, n_series)
    noise, out = rng.standard_normal((rows + 200, n_series)), []
    for j in range(n_series):
        out.append(filtered(noise[:, j : j + 1], [2 * 0.95 * np.cos(2 * np.pi / period[j]), -0.9025])[200:, 0])
    return np.column_stack(out)


def predators(rng: np.random.Generator, n_series: int, rows: int) -> Data:
    """Prey of Rosenzweig and MacArthur's cycles, each with a predator of its own, of nearly one period."""
    each, h = 10, 0.2
    r, out = rng.uniform(0.95, 1.05, n_series), np.empty((rows, n_series))
    x, y = rng.uniform(0.2, 0.8, (2, n_series))
    for t in range(-100 * each, rows * each):
        eaten = x * y / (0.3 + x)
        x, y = x + h * (r * x * (1 - x) - eaten), y + h * (0.6 * eaten - 0.25 * y)
        if t % each == 0:
            x, y = (side * np.exp(0.05 * rng.standard_normal(n_series)) for side in (x, y))
        x, y = np.maximum(x, 1e-3), np.maximum(y, 1e-3)
        if t >= 0 and t % each == 0:
            out[t // each] = x
    return out


def season(
    rng: np.random.Generator, n_series: int, rows: int, shape: str = "sin", period: float | None = None,
    size: float = 1.5,
) -> Data:  # fmt: skip
    """Red noise and a cycle that all share, each with a phase and a size of its own."""
    length = period or float(rng.uniform(6, 30))
    t = np.arange(rows)[:, None] / length
    if shape == "drifting":
        way = np.linspace(0, 1, rows)[:, None]
        t = t + rng.uniform(0.4, 1.2) * way**2 + 0.15 * np.sin(2 * np.pi * (way + rng.uniform()))
    angle = 2 * np.pi * (t + (rng.uniform(0, 1, n_series) if shape != "half" else rng.uniform(0, 1)))
    cycle = {
        "saw": lambda a: (a / (2 * np.pi)) % 1 * 3 - 1.5,
        "bloom": lambda a: 2 * np.exp(6 * (np.cos(a) - 1)),
        "harmonics": lambda a: np.sin(a) + np.sin(2 * a + 1),
    }.get(shape, np.sin)(angle)
    noise = red(rng, n_series, rows, 0.4)
    if shape == "variance":
        return noise * np.exp(0.8 * np.sin(angle[:, :1]))
    if shape == "counts":
        return rng.poisson(np.exp(0.7 + 1.0 * cycle)).astype(float)
    if shape == "log":
        return np.exp(0.8 * noise + cycle)
    if shape == "amplitude":
        cycle = cycle * (1 + 0.8 * np.sin(2 * np.pi * (np.arange(rows)[:, None] / rows + rng.uniform())))
    sizes = size * rng.uniform(0.7, 1.3, n_series)
    return noise + np.where(np.arange(n_series) < n_series // 2, sizes, 0.0 if shape == "half" else sizes) * cycle


def trend(rng: np.random.Generator, n_series: int, rows: int, shape: str = "linear", size: float = 3.0) -> Data:
    """Red noise and a slow or sudden change that all share."""
    way, at = np.linspace(0, 1, rows)[:, None], rng.uniform(0.3, 0.7)
    change = {
        "linear": way, "quadratic": way**2, "sigmoid": 1 / (1 + np.exp(-(way - at) / rng.uniform(0.02, 0.08))),
        "step": (way > at).astype(float), "hump": np.exp(-((way - at) ** 2) / (2 * rng.uniform(0.06, 0.14) ** 2)),
        "steps": (way > at - 0.25) * 1.0 - 1.4 * (way > at + 0.1),
    }[shape]  # fmt: skip
    signs = rng.choice([-1.0, 1.0], n_series)
    return red(rng, n_series, rows, 0.4) + size * signs * rng.uniform(0.7, 1.3, n_series) * change


def growing(rng: np.random.Generator, n_series: int, rows: int) -> Data:
    return red(rng, n_series, rows, 0.4) * np.linspace(0.3, 1.7, rows)[:, None]


def garch(rng: np.random.Generator, n_series: int, rows: int) -> Data:
    variance, x, out = np.ones(n_series), np.zeros(n_series), np.empty((rows, n_series))
    for t in range(-200, rows):
        variance = 0.1 + 0.2 * x**2 + 0.7 * variance
        x = np.sqrt(variance) * rng.standard_normal(n_series)
        if t >= 0:
            out[t] = x
    return out


def heavy(rng: np.random.Generator, n_series: int, rows: int, freedom: float = 2.0) -> Data:
    return filtered(rng.standard_t(freedom, (rows + 200, n_series)), [0.4])[200:]


def lognormal(rng: np.random.Generator, n_series: int, rows: int) -> Data:
    return np.exp(1.2 * red(rng, n_series, rows, 0.6))


def counts(rng: np.random.Generator, n_series: int, rows: int, kind: str = "poor") -> Data:
    if kind == "poor":
        return rng.poisson(0.4, (rows, n_series)).astype(float)
    x = rng.poisson(np.exp(0.8 + 0.5 * red(rng, n_series, rows, 0.6))).astype(float)
    return x * (rng.random(x.shape) > 0.6) if kind == "zeros" else x


def one_weather(rng: np.random.Generator, n_series: int, rows: int, r: float = 0.7, memory: float = 0.7) -> Data:
    """Innovations that are correlated within a row: no series comes first."""
    shared, own = rng.standard_normal((rows + 200, 1)), rng.standard_normal((rows + 200, n_series))
    noise = np.sqrt(r) * shared + np.sqrt(1 - r) * own
    return filtered(noise, [memory])[200:]


def hidden(rng: np.random.Generator, n_series: int, rows: int, delays: int = 0, size: float = 0.8) -> Data:
    """Red noise that a red series acts on which is not in the table, after 0 to ``delays`` rows more."""
    driver, later = red(rng, 1, rows + 300, 0.7)[:, 0], rng.integers(0, delays + 1, n_series)
    noise = rng.standard_normal((rows + 200, n_series))
    for j in range(n_series):
        noise[:, j] += size * driver[100 - 1 - later[j] :][: rows + 200]
    return filtered(noise, [0.5])[200:]


NULLS: dict[str, Null] = {
    "AR(1) 0": partial(red, memory=0.0), "AR(1) 0.5": partial(red, memory=0.5), "AR(1) 0.9": partial(red, memory=0.9),
    "AR(1) 0.98": partial(red, memory=0.98), "random walk": walk, "walk + drift": partial(walk, drift=0.3),
    "logistic maps": logistic, "AR(2) cycles, one period": cycles,
    "AR(2) cycles, other periods": partial(cycles, alike=False), "predator-prey cycles": predators,
    "season 12": partial(season, period=12.0), "season 12, saw": partial(season, shape="saw", period=12.0),
    "season 12, bloom": partial(season, shape="bloom", period=12.0),
    "season 12, two harmonics": partial(season, shape="harmonics", period=12.0), "season, any period": season,
    "season 12.37": partial(season, period=12.37), "season 36.52": partial(season, period=36.52),
    "season 52.18": partial(season, period=52.18), "bloom, any period": partial(season, shape="bloom"),
    "season, drifting": partial(season, shape="drifting"),
    "season, changing amplitude": partial(season, shape="amplitude"),
    "season in half": partial(season, shape="half"), "season of the variance": partial(season, shape="variance"),
    "season of counts": partial(season, shape="counts"), "season of logarithms": partial(season, shape="log"),
    "trend linear": trend, "trend quadratic": partial(trend, shape="quadratic"),
    "trend sigmoid": partial(trend, shape="sigmoid"), "trend step": partial(trend, shape="step"),
    "trend two steps": partial(trend, shape="steps"), "trend hump": partial(trend, shape="hump"),
    "variance grows": growing, "GARCH": garch, "heavy tails": heavy, "Cauchy": partial(heavy, freedom=1.0),
    "lognormal": lognormal, "counts, poor": counts, "counts, red": partial(counts, kind="red"),
    "counts, zeros": partial(counts, kind="zeros"),
}  # fmt: skip
#: Series that feel one weather in the same row, or a driver that is not in the table: no surrogate can tell.
SHARED: dict[str, Null] = {
    "one weather, r 0.3, AR(1) 0.3": partial(one_weather, r=0.3, memory=0.3),
    "one weather, r 0.7, AR(1) 0.3": partial(one_weather, r=0.7, memory=0.3),
    "one weather, r 0.3, AR(1) 0.7": partial(one_weather, r=0.3, memory=0.7),
    "one weather, r 0.7, AR(1) 0.7": one_weather,
    "one weather, r 0.7, AR(1) 0.9": partial(one_weather, r=0.7, memory=0.9),
    "hidden driver, one delay": hidden, "hidden driver, weak": partial(hidden, size=0.3),
    "hidden driver, several delays": partial(hidden, delays=2),
}  # fmt: skip


def null_table(name: str, number: int, n_series: int, rows: int) -> Data:
    """A table (rows, n_series) of a kind; the same number gives the same one."""
    rng = np.random.default_rng([number, rows, *map(ord, name)])
    return (NULLS | SHARED)[name](rng, n_series, rows)
