"""Series, states and parameters of kernels that tests of S-map use."""

from __future__ import annotations

import naive
import numpy as np

from pyedmcl.kernels.texts import SENTINELS
from pyedmcl.reference import fma32, fma64

GAP = SENTINELS["GAP"]
N, LENGTH = 5, 200
MIXED = (3, 1, 5, 3, 1)


def between_rows(m, dims, seed=0):
    """A library of m rows, drawn from 2 m query rows: its states, targets and rows; states and rows of the queries."""
    rng = np.random.default_rng(seed)
    states = rng.standard_normal((2 * m, dims)) + 3.0
    rows = np.sort(rng.choice(2 * m, m, replace=False))
    y = np.sin(states).sum(axis=1) + 0.1 * rng.standard_normal(2 * m)
    return states[rows], y[rows], rows, states, np.arange(2 * m)


def plain():
    return naive.noisy_maps(N, LENGTH, 1)


def gaps():
    x = naive.noisy_maps(N, LENGTH, 2)
    x[50:53, 0] = np.nan
    x[[9, 100], 3] = np.nan
    return x


def lorenz(noise=0.0):
    state, out = np.array([1.0, 2.0, 20.0]), []

    def slope(s):
        return np.array([10 * (s[1] - s[0]), s[0] * (28 - s[2]) - s[1], s[0] * s[1] - 8 / 3 * s[2]])

    for _ in range(5 * (LENGTH + 100)):
        a = slope(state)
        b = slope(state + 0.005 * a)
        c = slope(state + 0.005 * b)
        d = slope(state + 0.01 * c)
        state = state + 0.01 / 6 * (a + 2 * b + 2 * c + d)
        out.append(state)
    x = np.array(out[500::5])
    return x + noise * x.std(axis=0) * np.random.default_rng(0).standard_normal(x.shape)


def spikes(x):
    x = x.copy()
    x[np.random.default_rng(1).choice(len(x), 5, replace=False)] *= 1e4
    return x


def periodic():
    t = np.arange(LENGTH)
    noise = np.random.default_rng(2).standard_normal(LENGTH)
    return np.column_stack([np.sin(2 * np.pi * t / 20), np.cos(2 * np.pi * t / 12.3), noise])


HARD = {
    "lorenz": lorenz,
    "nearly no noise": lambda: lorenz(1e-3),
    "heavy tails": lambda: np.random.default_rng(3).standard_t(2, (LENGTH, 3)),
    "log-normal": lambda: np.exp(2 * np.random.default_rng(4).standard_normal((LENGTH, 3))),
    "spikes": lambda: spikes(plain()[:, :3]),
    "spikes on lorenz": lambda: spikes(lorenz()),
    "periodic": periodic,
    "far from zero": lambda: plain()[:, :3] + 1e4,
}


GROUPS = {  # as on GPUs: work-items share library rows and tiles
    "smap_map": {"lanes": 1, "width": 4, "vectors": 2, "rows_each": 4, "target_lanes": 4, "row_lanes": 8,
                 "row_tiles": 1, "target_tiles": 1, "step": 16},
    "smap_gram": {"lanes": 1, "wg": 64},
    "smap_white": {"wg": 64},
    "smap_slopes": {"lanes": 1, "wg": 64},
}  # fmt: skip


def squared_distances(queries, states):
    """(query, state): coordinates in their order, one rounding for each."""
    fused, total = (fma32 if queries.dtype == np.float32 else fma64), None
    for e in range(queries.shape[1]):
        difference = queries[:, e, None] - states[None, :, e]
        total = fused(difference, difference, total) if e else difference * difference
    return total


class FittedLibrary:
    """A library of random states x with regressors z, and for each row what its fit would have found."""

    def __init__(self, E, gaps, dtype, n, theta, radius=2):
        rng = np.random.default_rng(10 * E + gaps)
        draw = lambda *shape: rng.standard_normal(shape).astype(dtype)  # noqa: E731
        self.E, self.gaps, self.theta, self.radius, self.n = E, gaps, theta, radius, n
        self.x, self.z, self.centre, self.g = draw(n, E), draw(n, E), draw(n, E) / 4, draw(n, E + 1)
        self.counts = np.where(rng.random(n) < 0.2, 0, 1).astype(dtype) if gaps else np.ones(n, dtype)
        self.x[n // 2] = self.x[3]  # a distance of 0
        self.d = np.sqrt(squared_distances(self.x, self.x)).astype(float)
        rows = np.arange(n)
        self.excluded = np.abs(rows[:, None] - rows) <= radius
        self.neighbor = ~self.excluded & (self.counts > 0)
        self.n_neighbors = self.neighbor.sum(axis=1)
        self.total = (self.d * self.neighbor).sum(axis=1)
        self.nearest = np.where(self.neighbor, self.d, np.inf).min(axis=1).astype(dtype)
        self.rate = (2 * theta / np.log(2) * self.n_neighbors / self.total).astype(dtype)

    @property
    def states(self):
        """Row by row: coordinates, regressors, with gaps whether it counts, and padding."""
        columns = [self.x, self.z, *([self.counts[:, None]] if self.gaps else [])]
        state = np.concatenate(columns, axis=1)
        return np.pad(state, ((0, 0), (0, -state.shape[1] % 4)), constant_values=1e9)

    @property
    def columns(self):
        """Column by column: coordinates, the centre, with gaps whether a row is predicted."""
        return np.concatenate([self.x, self.centre, *([self.counts[:, None]] if self.gaps else [])], axis=1).T

    @property
    def fits(self):
        """g, the distance of the nearest row and the rate of the weights."""
        return np.concatenate([self.g, self.nearest[:, None], self.rate[:, None]], axis=1).T

    @property
    def weights(self):
        """W^2 of (t, s) in units of the nearest row's; 0 where s does not count."""
        with np.errstate(over="ignore"):
            return np.where(self.neighbor, np.exp2((self.nearest[:, None] - self.d) * self.rate[:, None]), 0)

    @property
    def regressors(self):
        """(t, s, E + 1): (1, z_s - centre_t)."""
        z = self.z[None].astype(float) - self.centre[:, None]
        return np.concatenate([np.ones((self.n, self.n, 1)), z], axis=2)

    @property
    def h(self):
        return self.weights * np.einsum("tse,te->ts", self.regressors, self.g.astype(float))


def predictions(n, n_columns, gaps, seed=0):
    """Predictions and observations that follow them, with some gaps, far from 0."""
    rng = np.random.default_rng(seed)
    p = (20 + rng.standard_normal((n, n_columns))).astype(np.float32)
    o = (p / 2 + rng.standard_normal((n, n_columns))).astype(np.float32)
    if gaps:
        o[rng.random(o.shape) < 0.2] = GAP
    return p, o


def sums_of(p, o, counted):
    """(number, column): rows that count, means, and sums of products of what differs from the means."""
    n = counted.sum(axis=0)
    mean_p, mean_o = (np.where(counted, x, 0).sum(axis=0, dtype=float) / np.maximum(n, 1) for x in (p, o))
    from_p, from_o = np.where(counted, p - mean_p, 0), np.where(counted, o - mean_o, 0)
    return np.array(
        [n, mean_p, mean_o, (from_p**2).sum(axis=0), (from_o**2).sum(axis=0), (from_p * from_o).sum(axis=0)]
    )
