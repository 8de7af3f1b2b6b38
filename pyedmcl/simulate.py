"""Simulated series whose causal links are known, and how well a cross map finds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .arguments import integer, real, room
from .errors import InputError

_TRANSIENT = 200  # steps run before the first one that is kept
_FLOOR = 1e-3  # a strongly suppressed population survives at this size instead of turning negative


@dataclass(frozen=True, eq=False)
class Network:
    """Series and the links that made them.

    Attributes
    ----------
    values : ndarray of float32
        Shape (L, N), between 0 and 1.
    names : tuple of str
        N names.
    links : ndarray of bool
        Shape (N, N): ``links[i, j]`` says that series i drives series j. The diagonal is False.

    Examples
    --------
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> bool(network.links[1, 2]), bool(network.links[2, 0])  # map1 drives map2, and map2 drives map0
    (True, True)
    >>> bool(network.over_one()[1, 0])  # hence map1 drives map0 by way of another
    True
    """

    values: NDArray[np.float32]
    names: tuple[str, ...]
    links: NDArray[np.bool_]

    def over_one(self) -> NDArray[np.bool_]:
        """Shape (N, N): True where i does not drive j itself, but drives one that does."""
        reached: NDArray[np.bool_] = (self.links.astype(np.int64) @ self.links.astype(np.int64) > 0) & ~self.links
        np.fill_diagonal(reached, False)
        return reached


def coupled_maps(
    n_series: int = 64, n_steps: int = 1200, *, strength: float = 0.4, noise: float = 0.01, seed: int = 1
) -> Network:
    """A network of chaotic logistic maps, each driven by one or two others.

    Series j follows ``x_j <- x_j (r_j (1 - x_j) - strength * m_j)``, where ``m_j`` is the mean of its drivers and
    ``r_j`` lies between 3.65 and 3.85: the coupled maps by which convergent cross mapping was introduced, as a
    sparse directed network. Process noise multiplies each step.

    Parameters
    ----------
    n_series : int
        N, at least 3.
    n_steps : int
        L, steps kept after the transient, at least 1.
    strength : float
        Total coupling into a series, 0 to 0.5 (stronger coupling leaves the chaotic range).
    noise : float
        Standard deviation of the relative process noise, at least 0.
    seed : int
        Decides links, growth rates, start and noise.

    Returns
    -------
    Network

    Raises
    ------
    InputError
        A parameter is out of range.

    Examples
    --------
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> network.values.shape, network.names
    ((400, 4), ('map0', 'map1', 'map2', 'map3'))
    >>> network.links.astype(int)  # row = cause, column = effect
    array([[0, 1, 1, 1],
           [0, 0, 1, 0],
           [1, 1, 0, 1],
           [0, 0, 0, 0]])
    """
    n_series, n_steps = integer("n_series", n_series, 3), integer("n_steps", n_steps, 1)
    strength = real("strength", strength, "a number from 0 to 0.5", lambda value: 0 <= value <= 0.5)
    noise = real("noise", noise, "a number from 0 to 10", lambda value: 0 <= value <= 10)
    rng = np.random.default_rng(integer("seed", seed, 0))
    values = room("n_series", (n_steps, n_series), np.float32)
    links = np.zeros((n_series, n_series), np.bool_)
    for j in range(n_series):
        others = np.delete(np.arange(n_series), j)
        links[rng.choice(others, int(rng.integers(1, 3)), replace=False), j] = True
    weights = links / links.sum(axis=0)
    growth = rng.uniform(3.65, 3.85, n_series)
    x = rng.uniform(0.2, 0.8, n_series)
    for step in range(_TRANSIENT + n_steps):
        x = x * (growth * (1 - x) - strength * (x @ weights)) * np.exp(noise * rng.standard_normal(n_series))
        x = np.clip(x, _FLOOR, 1 - _FLOOR)
        if step >= _TRANSIENT:
            values[step - _TRANSIENT] = x
    width = len(str(n_series - 1))
    return Network(values, tuple(f"map{i:0{width}d}" for i in range(n_series)), links)


def roc_auc(score: ArrayLike, truth: ArrayLike) -> float:
    """Area under the ROC curve: the chance that a true case scores higher than a false one, ties counting half.

    Parameters
    ----------
    score : array_like
        Any shape; NaN (no evidence) counts as the lowest score of all.
    truth : array_like of bool
        The same shape.

    Returns
    -------
    float
        0 to 1; NaN unless there are both true and false cases.

    Raises
    ------
    InputError
        There is not one score for each case.

    Examples
    --------
    >>> from pyedmcl.simulate import roc_auc
    >>> roc_auc([0.9, 0.4, 0.6, 0.1], [True, True, False, False])  # of 4 pairs, 3 have the true case above the false
    0.75
    """
    values = np.asarray(score, np.float64).reshape(-1)
    positive = np.asarray(truth, np.bool_).reshape(-1)
    if values.shape != positive.shape:
        raise InputError(f"{values.size} scores for {positive.size} cases; one score each is needed")
    n_true = int(positive.sum())
    n_false = positive.size - n_true
    if not n_true or not n_false:
        return float("nan")
    _, level, count = np.unique(np.where(np.isnan(values), -np.inf, values), return_inverse=True, return_counts=True)
    rank = np.cumsum(count) - (count - 1) / 2  # the mean rank, from 1, of all that share a value
    total = float(rank[level.reshape(-1)[positive]].sum())
    return (total - n_true * (n_true + 1) / 2) / (n_true * n_false)


def link_auc(rho: Any, links: NDArray[np.bool_]) -> float:
    """ROC AUC of a cross map against known links, the diagonal left out.

    Parameters
    ----------
    rho : array_like
        Shape (N, N), row = library, column = target: ``rho[i, j]`` is the evidence that j drives i.
    links : ndarray of bool
        Shape (N, N), ``links[i, j]``: i drives j.

    Returns
    -------
    float
        As of :func:`roc_auc`: 1 where all links have more skill than all other pairs, about 0.5 for skill by chance.

    Raises
    ------
    InputError
        Map and links differ in shape.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps, link_auc
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> link_auc(pyedmcl.xmap(network.values, E=3).rho, network.links) > 0.7
    True
    >>> link_auc(network.links.T, network.links)  # a map's rows are effects
    1.0
    """
    skill = np.asarray(rho)
    if skill.shape != links.shape:
        raise InputError(f"a map of shape {skill.shape} cannot be held against links of shape {links.shape}")
    off = ~np.eye(len(links), dtype=np.bool_)
    return roc_auc(skill.T[off], links[off])
