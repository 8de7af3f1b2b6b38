"""Random sub-libraries as plain numbers: who is drawn from what, and how far a scan for their members has to reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Lengths of sorted neighbour lists: few, since each has a kernel of its own.
ENTRIES = (16, 32, 48, 64, 96, 128, 192, 256, 384, 512)
# The chance that a row's sorted neighbours hold too few members of a sample; such rows are searched anew.
SHORT = 3e-3


class Field(IntEnum):
    """The numbers that describe a column of samples to the kernels: macros ``COLUMN_*`` of ``clkernels/ccm.clh``."""

    TABLE = 0  # library, among those of the neighbour table at hand
    FUTURE = 1  # row of the future targets
    CHOICES = 2  # how many rows may be drawn
    ROWS = 3  # where their list begins
    SIZE = 4  # rows to draw
    SAMPLE = 5  # number of the first sample
    SAMPLES = 6  # how many samples
    KEY0 = 7  # of the random stream
    KEY1 = 8
    LIBRARY = 9
    TARGET = 10
    LISTS = 11  # where the column's lists of members begin; -1 where it has none
    WORDS = 12  # draw whose words of membership the column has


@dataclass(frozen=True)
class CcmPair:
    """A library series that is to predict a target series from random parts of itself.

    Attributes
    ----------
    library, target : int
        Columns of the data given to :class:`pyedmcl.engines.ccm.SampledSkill`.
    stream : (int, int)
        Numbers that choose the random stream, beside seed, library size and sample.
    """

    library: int
    target: int
    stream: tuple[int, int]


class Of(IntEnum):
    """Columns of a table of pairs (n, 4): the fields of :class:`CcmPair`."""

    LIBRARY = 0
    TARGET = 1
    STREAM = 2  # and 3


def table_of(pairs: Sequence[CcmPair] | NDArray[np.int_]) -> NDArray[np.int_]:
    """Pairs as a table of :class:`Of` columns, which is what many of them are handled as."""
    if isinstance(pairs, np.ndarray):
        return pairs
    return np.array([(pair.library, pair.target, *pair.stream) for pair in pairs], int).reshape(-1, len(Of) + 1)


@lru_cache(maxsize=4096)
def reach(k: int, size: int, n: int, chance: float = SHORT) -> int:
    """Nearest neighbours that hold k members of a random sub-library but for a small chance.

    The number of trials until the k-th success has a negative binomial distribution; drawing without replacement only
    makes it narrower.

    Parameters
    ----------
    k : int
    size, n : int
        Rows that are drawn, and rows that they are drawn from.
    chance : float
    """
    if size >= n:
        return min(k, n)
    share = size / n
    most = int((k + 6 * np.sqrt(k) + 24) / share) + k  # far beyond any chance of interest
    trials = np.arange(k, most)
    steps = np.concatenate([[0.0], np.log(trials[:-1] / (trials[:-1] - k + 1.0)) + np.log1p(-share)])
    done = np.cumsum(np.exp(k * np.log(share) + np.cumsum(steps)))
    return min(int(trials[min(int(np.searchsorted(done, 1.0 - chance)), len(trials) - 1)]), n)


def split_sizes(
    sizes: Sequence[int], n_rows: int, E: int, k: int, most_entries: int
) -> tuple[NDArray[np.bool_], int]:
    """Which library sizes are computed from distances to all members, and how many neighbours the others need sorted.

    Parameters
    ----------
    sizes : sequence of int
    n_rows : int
        Rows that are drawn from.
    E, k : int
    most_entries : int
        Neighbours of each row that there is memory for.

    Returns
    -------
    direct : ndarray of bool (n_sizes,)
    entries : int
        One of :data:`ENTRIES`; 0 where all sizes are direct.
    """
    reached = np.array([reach(k, size, n_rows) for size in sizes])
    # Operations per row and sample: a member costs its distance and at times an insertion; a scan goes on until the
    # slowest of sixteen samples is content, and its longest list has to be sorted.
    typical = np.array([reach(k, size, n_rows, 0.05) for size in sizes])
    direct = np.array([size * (2 * E + k + 3) for size in sizes]) < typical * (2 * k + 4) + 2 * reached
    direct |= reached > min(ENTRIES[-1], most_entries)
    entries = 0
    if not direct.all():
        longest = int(reached[~direct].max())
        entries = next(entry for entry in ENTRIES if entry >= longest)
        if entries > most_entries:
            direct |= reached > max([e for e in ENTRIES if e <= most_entries], default=0)
            entries = 0 if direct.all() else next(e for e in ENTRIES if e >= int(reached[~direct].max()))
    return direct, entries


def stream_keys(seed: int, sizes: Sequence[int]) -> NDArray[np.uint32]:
    """Keys (n_sizes, 2) of the random streams of each library size."""
    return np.array(
        [np.random.SeedSequence(entropy=seed, spawn_key=(size,)).generate_state(2, np.uint32) for size in sizes]
    ).reshape(-1, 2)


@dataclass(frozen=True)
class Columns:
    """Columns of up to sixteen samples as the kernels read them, and where their results go.

    Attributes
    ----------
    numbers : ndarray of int32 (n, len(Field))
        By :class:`Field`.
    pair, size : ndarray of int (n,)
        Which pair and which library size.
    draw : ndarray of int (n,)
        Columns with the same number draw the same rows: those of pairs that have the rows to draw from and the stream
        in common, such as the windows of a series, or a library and the surrogates of a target.
    """

    numbers: NDArray[np.int32]
    pair: NDArray[np.int_]
    size: NDArray[np.int_]
    draw: NDArray[np.int_]

    def take(self, which: NDArray[np.int_]) -> Columns:
        """Some of them."""
        return Columns(self.numbers[which], self.pair[which], self.size[which], self.draw[which])

    def by_pair(self, rho: NDArray[Any], samples: int) -> NDArray[np.float64]:
        """What all columns gave (n, width), as (n_pairs, n_sizes, samples)."""
        width = rho.shape[1]
        shape = int(self.pair.max()) + 1, int(self.size.max()) + 1, -(-samples // width)
        out = np.empty((*shape, width))
        out[self.pair, self.size, self.numbers[:, Field.SAMPLE] // width] = rho
        return out.reshape(*shape[:2], -1)[..., :samples]


def columns_of(
    pairs: NDArray[np.int_], sizes: Sequence[int], keys: NDArray[np.uint32], samples: int,
    row_lists: NDArray[np.int_], first_library: int, width: int,
) -> Columns:  # fmt: skip
    """Columns of some pairs, the smallest libraries, which take longest, first.

    Parameters
    ----------
    pairs : ndarray of int (n, 4)
        By :class:`Of`.
    sizes, keys
        Library sizes and their keys.
    samples : int
    row_lists : ndarray of int (n, 2)
        Of each pair: how many rows may be drawn, and where their list begins.
    first_library : int
        Library of the first neighbour table.
    width : int
        Samples of a column.
    """
    starts = np.arange(0, samples, width)
    order = np.argsort(sizes, kind="stable")
    shape = (len(order), len(pairs), len(starts))
    out = np.zeros((*shape, len(Field)), np.int32)
    out[..., Field.TABLE] = (pairs[:, Of.LIBRARY] - first_library)[None, :, None]
    out[..., Field.CHOICES : Field.ROWS + 1] = row_lists[None, :, None]
    out[..., Field.SIZE] = np.array(sizes)[order][:, None, None]
    out[..., Field.SAMPLE] = starts
    out[..., Field.SAMPLES] = np.minimum(samples - starts, width)
    out[..., Field.KEY0 : Field.KEY1 + 1] = keys[order].view(np.int32)[:, None, None]
    out[..., Field.LIBRARY : Field.TARGET + 1] = pairs[:, Of.STREAM :][None, :, None]
    pair = np.broadcast_to(np.arange(len(pairs))[None, :, None], shape).reshape(-1)
    size = np.broadcast_to(order[:, None, None], shape).reshape(-1)
    drawn_from = np.concatenate([row_lists, pairs[:, Of.STREAM :]], axis=1)
    like = np.unique(drawn_from, axis=0, return_inverse=True)[1].reshape(-1)
    kind = np.arange(len(order) * len(starts)).reshape(len(order), 1, len(starts))
    draw = (kind * len(pairs) + like[None, :, None]).reshape(-1)
    return Columns(out.reshape(-1, len(Field)), pair, size, draw)
