"""Second opinion: Empirical Dynamic Modeling in float64 NumPy, slow and obvious, sharing no code with pyedmcl.

Rows are 0-based. Row t is embedded as (x[t], x[t-tau], ..., x[t-(E-1)*tau]); NaN marks a gap in the data.
"""

from __future__ import annotations

import numpy as np


def embedded_rows(x, E, tau):
    """Boolean (L,): rows whose embedding lies inside the series and touches no NaN."""
    ok = np.arange(len(x)) >= (E - 1) * tau
    for t in np.flatnonzero(ok):
        ok[t] = np.isfinite(x[t - np.arange(E) * tau]).all()
    return ok


def with_target(target, Tp, n):
    """Boolean (n,): rows j whose target value at j + Tp exists and is finite."""
    finite = np.isfinite(target).tolist()
    return np.array([0 <= j + Tp < len(finite) and finite[j + Tp] for j in range(n)], dtype=bool)


def knn(x, E, tau=1, k=None, Tp=0, exclusion_radius=0, query=None, lib=None, target=None):
    """Nearest legal rows of ``x`` for every row of ``query`` (``x`` itself when None).

    ``lib`` is a Boolean mask of rows that may be neighbours, ``target`` the series whose value at j + Tp must be
    finite (default ``x``). Returns (indices, distances), (rows, k): -1 and inf where there is no neighbour.
    """
    x = np.asarray(x, dtype=np.float64)
    asked = x if query is None else np.asarray(query, dtype=np.float64)
    target = x if target is None else np.asarray(target, dtype=np.float64)
    k = E + 1 if k is None else k
    legal = embedded_rows(x, E, tau) & with_target(target, Tp, len(x))
    if lib is not None:
        legal &= lib
    indices = np.full((len(asked), k), -1)
    distances = np.full((len(asked), k), np.inf)
    for t in np.flatnonzero(embedded_rows(asked, E, tau)):
        rows = np.flatnonzero(legal)
        if query is None:
            rows = rows[np.abs(rows - t) > exclusion_radius]
        squared = np.zeros(len(rows))
        for e in range(E):
            squared += (asked[t - e * tau] - x[rows - e * tau]) ** 2
        order = np.argsort(squared, kind="stable")[:k]  # rows ascend, so equal distances keep the smaller row first
        indices[t, : len(order)] = rows[order]
        distances[t, : len(order)] = np.sqrt(squared[order])
    return indices, distances


def weights(distances):
    """Simplex weights of one row's neighbours, nearest first, summing to one."""
    nearest = distances[0]
    w = (distances == 0).astype(np.float64) if nearest == 0 else np.exp(-distances / nearest)
    return w / w.sum()


def predict(indices, distances, target, Tp):
    """Weighted mean and variance of the targets of each row's neighbours; NaN where a row has none."""
    predicted = np.full(len(indices), np.nan)
    variance = np.full(len(indices), np.nan)
    for t in range(len(indices)):
        there = indices[t] >= 0
        if there.any():
            w = weights(np.asarray(distances[t][there], dtype=np.float64))
            y = np.asarray(target, dtype=np.float64)[indices[t][there] + Tp]
            predicted[t] = (w * y).sum()
            variance[t] = (w * (y - predicted[t]) ** 2).sum()
    return predicted, variance


def pearson(a, b):
    """Two-pass correlation over the rows where both are finite; NaN below 3 rows or without variance."""
    both = np.isfinite(a) & np.isfinite(b)
    a, b = np.asarray(a, dtype=np.float64)[both], np.asarray(b, dtype=np.float64)[both]
    if len(a) < 3 or np.all(a == a[0]) or np.all(b == b[0]):
        return np.nan
    a, b = a - a.mean(), b - b.mean()
    return float((a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum()))


def observed_at(series, rows, Tp):
    """Value of ``series`` at row + Tp, NaN outside."""
    inside = [0 <= t + Tp < len(series) for t in rows]
    return np.array([series[t + Tp] if ok else np.nan for t, ok in zip(rows, inside, strict=True)], dtype=np.float64)


def simplex(lib, pred=None, target=None, E=1, tau=1, Tp=1, k=None, exclusion_radius=0, mask=None):
    """Simplex projection. Returns a dict of time, observed, predicted, variance, rho, mae and rmse."""
    indices, distances = knn(lib, E, tau, k, Tp, exclusion_radius, pred, mask, target)
    predicted, variance = predict(indices, distances, lib if target is None else target, Tp)
    rows = np.arange((E - 1) * tau, len(indices))
    if pred is None:
        observed = observed_at(lib if target is None else target, rows, Tp)
    else:
        observed = observed_at(pred, rows, Tp) if target is None else np.full(len(rows), np.nan)
    predicted, variance = predicted[rows], variance[rows]
    error = (predicted - observed)[np.isfinite(predicted) & np.isfinite(observed)]
    return {
        "time": rows + Tp,
        "observed": observed,
        "predicted": predicted,
        "variance": variance,
        "rho": pearson(observed, predicted),
        "mae": float(np.abs(error).mean()) if len(error) else np.nan,
        "rmse": float(np.sqrt((error**2).mean())) if len(error) else np.nan,
    }


def predictions(states, goal, rows, library, *, k, Tp, radius=0, own=True, asked=None):
    """Predictions and variances of rows from library rows, state by state."""
    asked = states if asked is None else asked
    out = np.full((2, len(rows)), np.nan)
    for place, t in enumerate(rows):
        if not np.isfinite(asked[t]).all():
            continue
        usable = [j for j in library if np.isfinite(states[j]).all() and 0 <= j + Tp < len(goal)
                  and np.isfinite(goal[j + Tp]) and not (own and abs(t - j) <= radius)]  # fmt: skip
        if not usable:
            continue
        near = np.array(usable)
        distance = np.sqrt(((states[near] - asked[t]) ** 2).sum(axis=1))
        order = np.argsort(distance, kind="stable")[:k]
        w, y = weights(distance[order]), goal[near[order] + Tp]
        out[:, place] = (w * y).sum(), (w * (y - (w * y).sum()) ** 2).sum()
    return out


def embed_dimension(x, E_max=20, tau=1, Tp=1, exclusion_radius=0, k=None):
    """(best E, rho per E) of one series: highest rho, the smaller E on ties, 1 where no rho exists."""
    rho = np.array([simplex(x, E=E, tau=tau, Tp=Tp, k=k, exclusion_radius=exclusion_radius)["rho"]
                    for E in range(1, E_max + 1)])  # fmt: skip
    best = 1
    for E in range(1, E_max + 1):
        if np.isfinite(rho[E - 1]) and not rho[best - 1] >= rho[E - 1]:
            best = E
    return best, rho


def xmap(data, E, tau=1, Tp=0, exclusion_radius=0, k=None):
    """rho (N, N): row = library, column = target; each target is mapped with its own E. A constant library has none."""
    data = np.asarray(data, dtype=np.float64)
    rho = np.full((data.shape[1], data.shape[1]), np.nan)
    for i in np.flatnonzero(np.nanmin(data, axis=0) < np.nanmax(data, axis=0)):
        for j in range(data.shape[1]):
            rho[i, j] = simplex(data[:, i], target=data[:, j], E=int(np.broadcast_to(E, data.shape[1])[j]), tau=tau,
                                Tp=Tp, k=k, exclusion_radius=exclusion_radius)["rho"]  # fmt: skip
    return rho


def coupled_maps(n_series, n_steps, seed=0):
    """The series of the speed comparisons: logistic maps, float32 (n_steps, n_series), each driven by another."""
    rng = np.random.default_rng(seed)
    x = rng.random(n_series) * 0.8 + 0.1
    r = 3.6 + 0.35 * rng.random(n_series)
    parent = rng.integers(0, n_series, n_series)
    out = np.empty((n_steps + 100, n_series), np.float32)
    for t in range(n_steps + 100):
        x = np.clip(r * x * (1 - x) * (1 - 0.1 * x[parent]), 1e-6, 1 - 1e-6)
        out[t] = x
    return np.ascontiguousarray(out[100:])


def noisy_maps(n_series, n_steps, seed=0):
    """Chaotic maps with observation noise, float32 of unit variance: no series comes near a period."""
    rng = np.random.default_rng(seed)
    x = coupled_maps(n_series, n_steps, seed).astype(np.float64)
    x = (x - x.mean(axis=0)) / x.std(axis=0) + 0.2 * rng.standard_normal(x.shape)
    return np.ascontiguousarray(x / x.std(axis=0), dtype=np.float32)


def auc(score, truth):
    """Area under the ROC curve: over all pairs of a true and a false case."""
    wins = [(t > f) + 0.5 * (t == f) for t in score[truth] for f in score[~truth]]
    return np.mean(wins)
