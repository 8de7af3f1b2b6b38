"""Where the series of a network stand, and which of them belong together."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError, shown

Points = NDArray[np.float64]
LAYOUTS = ("circle", "force")
#: Clusters that can be told apart by colour and mark.
MOST_CLUSTERS = 28
_STEPS = 300
_TOGETHER = 1.0  # pull of all others of the cluster, beside a half for a link of full strength
_HEIGHT, _APART_STEPS = 0.13, 200  # of a mark and the name above it


def clusters_of(clusters: Any, names: Sequence[str], drawn: Sequence[int], weights: Points) -> list[str]:
    """The cluster of each series that is drawn, empty for none.

    Parameters
    ----------
    clusters : None, "auto", mapping of names to labels, or sequence of labels
        "auto" finds series that are linked among themselves more than to others (greedy modularity; Clauset, Newman
        and Moore, Phys. Rev. E 70, 066111, 2004).
    names : sequence of str
        Of all series.
    drawn : sequence of int
        Those that are drawn.
    weights : ndarray (n, n)
        Strength of the links among these, 0 for none.

    Raises
    ------
    InputError
        They name other series, are no label for each, or are too many.
    """
    if clusters is None:
        return [""] * len(drawn)
    if isinstance(clusters, str):
        if clusters != "auto":
            raise InputError(f"clusters={shown(clusters)}: 'auto', or a label for each series by its name, is needed")
        return _communities(weights)
    if isinstance(clusters, Mapping):
        unknown = sorted(set(map(str, clusters)).difference(names))
        if unknown:
            raise InputError(f"clusters: there is no series {shown(unknown[0])}; there are {shown(', '.join(names))}")
        labels = [str(clusters.get(names[number], "")) for number in drawn]
    else:
        cluster_of = list(clusters) if hasattr(clusters, "__len__") else []
        if len(cluster_of) != len(names):
            raise InputError(f"clusters={shown(clusters)}: a label for each of the {len(names)} series is needed")
        labels = [str(cluster_of[number]) for number in drawn]
    count = len({label for label in labels if label})
    if count > MOST_CLUSTERS:
        raise InputError(f"clusters: there are {count}; at most {MOST_CLUSTERS} can be told apart")
    return labels


def _communities(weights: Points) -> list[str]:
    """Labels of clusters, the largest first; empty for series without a link, or alone."""
    share = weights + weights.T
    if not share.any():
        return [""] * len(weights)
    share = share / share.sum()
    ends = share.sum(axis=1)
    members = [[number] for number in range(len(weights))]
    while len(members) > 1:
        gain = share - np.outer(ends, ends)
        np.fill_diagonal(gain, -np.inf)
        one, other = sorted(divmod(int(gain.argmax()), len(members)))
        if gain[one, other] <= 1e-12:
            break
        members[one] += members.pop(other)
        share[one] += share[other]
        share[:, one] += share[:, other]
        ends[one] += ends[other]
        share, ends = np.delete(np.delete(share, other, 0), other, 1), np.delete(ends, other)
    members = sorted((own for own in members if len(own) > 1), key=lambda own: (-len(own), own[0]))[:MOST_CLUSTERS]
    labels = [""] * len(weights)
    for number, own in enumerate(members, 1):
        for member in own:
            labels[member] = f"cluster {number}"
    return labels


def on_circle(labels: Sequence[str]) -> NDArray[np.float64]:
    """The angle of each series on a circle: clusters side by side, with a gap between them, in the order of series."""
    order = [label for label in dict.fromkeys(labels) if label] + [""]
    rows = sorted(range(len(labels)), key=lambda row: order.index(labels[row]))
    breaks = [labels[a] != labels[b] for a, b in itertools.pairwise(rows)]
    gaps = np.cumsum([0, *breaks])[: len(rows)]
    several = len(set(labels)) > 1  # then there is also a gap between the last and the first
    places = len(labels) + (sum(breaks) + 1 if several else 0)
    angles = np.empty(len(labels))
    angles[rows] = np.pi / 2 - 2 * np.pi * (np.arange(len(rows)) + gaps) / max(places, 1)
    return angles


def by_forces(labels: Sequence[str], weights: Points, widths: Points) -> Points:
    """Places (n, 2) from -1 to 1: linked series near each other, all others apart, clusters together.

    ``widths`` are those of names.

    Fruchterman and Reingold, Softw. Pract. Exp. 21, 1129 (1991), from the circle, so that there is nothing random.
    """
    n, angles = len(labels), on_circle(labels)
    at = np.column_stack([np.cos(angles), np.sin(angles)])
    if n < 2:
        return at * 0.0
    pull = (weights + weights.T) / max(float(weights.max()), 1e-300) / 2
    same = np.array([[bool(a) and a == b for b in labels] for a in labels], float)
    pull = pull + _TOGETHER * same / np.maximum(same.sum(axis=1), 1.0)
    length = 1.6 / np.sqrt(n)  # between neighbours
    for step in range(_STEPS):
        apart = at[:, None] - at[None]
        distance = np.maximum(np.sqrt((apart**2).sum(axis=2)), 1e-6)
        np.fill_diagonal(distance, 1.0)
        force = (apart * ((length / distance) ** 2 - pull * distance / length)[..., None]).sum(axis=1) - at * length
        size = np.maximum(np.sqrt((force**2).sum(axis=1)), 1e-9)
        at = at + force / size[:, None] * np.minimum(size, 0.3 * (1 - step / _STEPS))[:, None]
    return _spread(at, widths)


def _spread(at: Points, widths: Points) -> Points:
    """Places that fill a square, with room for a mark and a name of each width, as far as there is any."""
    wide = (widths[:, None] + widths[None]) / 2
    for _ in range(_APART_STEPS):
        at = at - (at.max(axis=0) + at.min(axis=0)) / 2
        at = at / np.maximum(np.abs(at).max(axis=0), 1e-9)
        apart = at[:, None] - at[None]
        lacking = np.stack([wide, np.full_like(wide, _HEIGHT)], axis=2) - np.abs(apart)
        near = (lacking > 0).all(axis=2) & ~np.eye(len(at), dtype=bool)
        if not near.any():
            break
        # Whichever way is shorter; of two at one height the first goes up.
        order = np.arange(len(at))
        way = np.where(apart == 0, np.sign(order[None] - order[:, None])[..., None], np.sign(apart))
        shorter = lacking == lacking.min(axis=2, keepdims=True)
        at = at + np.where(near[..., None] & shorter, 0.3 * lacking * way, 0.0).sum(axis=1)
    return at
