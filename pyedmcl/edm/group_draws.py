"""Random sub-libraries of whole groups, for replicates that are short (Clark et al., Ecology 96, 1174, 2015)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ..engines.sub_libraries import CcmPair

Mask = NDArray[np.bool_]


def drawn_groups(
    code: NDArray[np.int64], legal: Mask, pair: CcmPair, size: int, samples: int, seed: int
) -> Mask:
    """Members (samples, n) of sub-libraries of ``size`` rows.

    Groups are taken in random order, each with all rows that may be drawn, until there are ``size`` rows. Of the last
    group only as many rows as are lacking enter, which follow each other from a random one on.

    Parameters
    ----------
    code : ndarray of int (n,)
        Group of each row.
    legal : ndarray of bool (n,)
        Rows that may be drawn, at least ``size`` of them.
    pair : CcmPair
        Its stream, ``size``, ``seed`` and the number of the sample choose the random numbers.
    size, samples, seed : int
    """
    rows = np.flatnonzero(legal)
    rows = rows[np.argsort(code[rows], kind="stable")]
    _, begins, counts = np.unique(code[rows], return_index=True, return_counts=True)
    out = np.zeros((samples, len(legal)), bool)
    for sample in range(samples):
        sequence = np.random.SeedSequence(entropy=seed, spawn_key=(size, sample, *pair.stream))
        rng = np.random.Generator(np.random.Philox(sequence))
        order = rng.permutation(len(counts))
        before = np.cumsum(counts[order]) - counts[order]
        for group, lacking in zip(order[before < size], size - before[before < size], strict=True):
            begin, count = begins[group], counts[group]
            if lacking < count:
                begin += rng.integers(count - lacking + 1)
                count = lacking
            out[sample, rows[begin : begin + count]] = True
    return out
