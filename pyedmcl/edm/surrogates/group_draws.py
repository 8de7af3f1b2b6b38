"""Random sub-libraries of whole groups, for replicates that are short (Clark et al., Ecology 96, 1174, 2015)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.groups import Layout
from ...engines.ccm import SampledSkill
from ...engines.sub_libraries import CcmPair
from ...errors import InputError
from ..shared import arguments

Mask = NDArray[np.bool_]
DRAWS = ("rows", "groups")
_MEMBER_BYTES = 1 << 28  # of sub-libraries that the host draws together


def drawn_from(layout: Layout | None, draw: Any) -> NDArray[np.int64] | None:
    """Group of each row where sub-libraries are drawn from whole groups, as ``draw`` says; else None."""
    if arguments.choice("draw", draw, DRAWS) == "rows":
        return None
    if layout is None:
        raise InputError("draw='groups': groups= is needed, which says where each row belongs")
    return layout.code


def skill_of_groups(
    engine: SampledSkill, pairs: Sequence[CcmPair], sizes: Sequence[int], samples: int, seed: int,
    code: NDArray[np.int64],
) -> NDArray[np.float64]:  # fmt: skip
    """rho (n_pairs, n_sizes, samples) of sub-libraries of whole groups; ``code`` as for :func:`drawn_groups`."""
    out = np.empty((len(pairs), len(sizes), samples))
    at_once = max(_MEMBER_BYTES // (samples * len(code)), 1)  # sub-libraries of a pair and a size
    together = max(at_once // len(sizes), 1)
    for begin in range(0, len(pairs), together):
        some_pairs = pairs[begin : begin + together]
        step = max(at_once // len(some_pairs), 1)
        for first in range(0, len(sizes), step):
            some_sizes = sizes[first : first + step]
            members = np.array([
                [drawn_groups(code, engine.library_mask(pair), pair, size, samples, seed) for size in some_sizes]
                for pair in some_pairs
            ])  # fmt: skip
            skill = engine.skill(some_pairs, some_sizes, samples, seed, members)
            out[begin : begin + together, first : first + step] = skill
    return out


def drawn_groups(
    code: NDArray[np.int64], library_mask: Mask, pair: CcmPair, size: int, samples: int, seed: int
) -> Mask:
    """Members (samples, n) of sub-libraries of ``size`` rows.

    Groups are taken in random order, each with all rows that may be drawn, until there are ``size`` rows. Of the last
    group only as many rows as are lacking enter, which follow each other from a random one on.

    Parameters
    ----------
    code : ndarray of int (n,)
        Group of each row.
    library_mask : ndarray of bool (n,)
        Rows that may be drawn, at least ``size`` of them.
    pair : CcmPair
        Its stream, ``size``, ``seed`` and the number of the sample choose the random numbers.
    size, samples, seed : int
    """
    rows = np.flatnonzero(library_mask)
    rows = rows[np.argsort(code[rows], kind="stable")]
    _, begins, counts = np.unique(code[rows], return_index=True, return_counts=True)
    out = np.zeros((samples, len(library_mask)), bool)
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
