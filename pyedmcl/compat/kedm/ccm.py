"""Convergent cross mapping with kEDM's arguments, its own random sub-libraries, and returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.arguments import real, room
from ...device.session import open_device
from ...edm.shared.arguments import draws
from ...edm.shared.states import delay_states, future
from ...engines.ccm import SampledSkill
from ...engines.sub_libraries import CcmPair
from ...errors import InputError
from .arguments import Floats, check_rows, embedding, numbers, whole, whole_numbers
from .draws import Generator

Mask = NDArray[np.bool_]
_LANES = 16  # samples that the kernels take at a time


def ccm(
    lib: Any, target: Any, *, lib_sizes: Sequence[int] = (), sample: int = 1, E: int = 1, tau: int = 1, Tp: int = 0,
    seed: int = 0, accuracy: float = 1.0,
) -> list[float]:  # fmt: skip
    """Mean cross-map skill for several library sizes: how well ``lib``'s states predict ``target``.

    The sub-libraries are those that kEDM draws for the same seed: of all time steps, of which only those that are a
    target's step of an embedded row count.

    Parameters
    ----------
    lib, target : array_like (n,)
    lib_sizes : sequence of int
        At most n.
    sample : int
        Sub-libraries of each size.
    E, tau, Tp : int
    seed : int
        0 for a fresh one.
    accuracy : float
        Above 0, at most 1; without effect: neighbours are exact.

    Returns
    -------
    list of float
        rho of each library size, the mean over its samples.

    Raises
    ------
    InputError
        An argument cannot be used.
    """
    series, target_values, sizes, samples, number = _checked(lib, target, lib_sizes, sample, seed, "ccm")
    real("accuracy must be between zero and one: accuracy", accuracy, "a number in (0, 1]", lambda a: 0 < a <= 1)
    E, tau, Tp = embedding(E, tau, Tp, "ccm")
    check_rows(len(series), len(series), E, tau, Tp, E + 1)
    generator, n = Generator(number), len(series)
    members = np.zeros((len(sizes), samples, n), bool)
    for place, size in enumerate(sizes):
        # kEDM marks the steps of targets; a row is the step of its state.
        members[place, :, : n - Tp] = generator.samples(n, size, samples)[:, Tp:]
    return _means(series, target_values, members, E, tau, Tp)


def ccm_naive(
    lib: Any, target: Any, *, lib_sizes: Sequence[int] = (), sample: int = 1, E: int = 1, tau: int = 1, Tp: int = 0,
    seed: int = 0,
) -> list[float]:  # fmt: skip
    """:func:`ccm` of sub-libraries that are drawn among the embedded rows that lead to a target.

    Sizes beyond their number stand for all of them. It is no slower than :func:`ccm`: both use the same kernels.

    Parameters
    ----------
    lib, target, lib_sizes, sample, E, tau, Tp, seed
        As for :func:`ccm`.

    Returns
    -------
    list of float

    Raises
    ------
    InputError
        An argument cannot be used.
    """
    series, target_values, sizes, samples, number = _checked(lib, target, lib_sizes, sample, seed, "ccm_naive")
    E, tau, Tp = embedding(E, tau, Tp, "ccm_naive")
    check_rows(len(series), len(series), E, tau, Tp, E + 1)
    generator, n, first = Generator(number), len(series), (E - 1) * tau
    rows = n - first - Tp
    members = np.zeros((len(sizes), samples, n), bool)
    for place, size in enumerate(sizes):
        members[place, :, first : first + rows] = generator.samples(rows, size, samples)
    return _means(series, target_values, members, E, tau, Tp)


def _checked(
    lib: Any, target: Any, lib_sizes: Any, sample: Any, seed: Any, name: str
) -> tuple[Floats, Floats, list[int], int, int]:
    series, target_values = numbers(lib, "lib", name), numbers(target, "target", name)
    if series.ndim != 1 or target_values.ndim != 1:
        raise InputError(
            f"lib and target must be 1D arrays: {name} got shapes {series.shape} and {target_values.shape}"
        )
    if len(series) != len(target_values):
        raise InputError(
            f"lib and target must have same number of time steps: {name} got {len(series)} and {len(target_values)}"
        )
    sizes = whole_numbers(lib_sizes, "lib_sizes", name)
    if any(size < 1 for size in sizes):
        raise InputError(f"All lib_sizes must be larger than zero: {name} got {min(sizes)}")
    if any(size > len(series) for size in sizes):
        raise InputError(f"All lib_sizes must not exceed lib size: {name} got {max(sizes)}, there are {len(series)}")
    samples = whole(sample, "sample", name)
    if samples < 1:
        raise InputError(f"sample must be larger than zero: {name} got sample={samples}")
    samples = draws(f"{name}: sample", samples)
    # The masks of sub-libraries, and copies of them on their way to the device.
    room(f"{name}: sample", (len(sizes), samples, len(series)), np.float32)
    return series, target_values, sizes, samples, whole(seed, "seed", name)


def _means(lib: Floats, target: Floats, members: Mask, E: int, tau: int, Tp: int) -> list[float]:
    """Mean skill (n_sizes,) of sub-libraries (n_sizes, samples, n) of states' steps."""
    if not members.size:
        return []
    executor = open_device(None)
    states = delay_states(lib.reshape(-1, 1), E, tau, k=E + 1, Tp=Tp, exclusion_radius=0, dtype="float32")
    engine = SampledSkill(executor, states, future(target, Tp)[None])
    pair = CcmPair(0, 0, (0, 0))
    flat = (members & engine.library_mask(pair)).reshape(-1, len(lib))
    rho = np.full(len(flat), np.nan)
    counts = flat.sum(axis=1)
    # One search serves several sizes if they have equally many samples, in steps of what the kernels take at a time.
    alike: dict[int, list[NDArray[np.int64]]] = {}
    for count in np.unique(counts[counts > 0]):
        which = np.flatnonzero(counts == count)
        alike.setdefault(-(-len(which) // _LANES), []).append(which)
    try:
        for blocks, groups in alike.items():
            width = blocks * _LANES
            padded = np.array([np.resize(which, width) for which in groups])
            sizes = [int(counts[which[0]]) for which in groups]
            means = engine.skill([pair], sizes, width, 0, flat[padded][None])[0]
            rho[padded] = means
    finally:
        engine.release()
    return [float(value) for value in rho.reshape(members.shape[:2]).mean(axis=1)]
