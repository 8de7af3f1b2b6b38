"""Convergent cross mapping with pyEDM's arguments, its own random sub-libraries, and returns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.arguments import room
from ...device.session import open_device
from ...edm.shared.arguments import draws
from ...edm.shared.convergence import means
from ...edm.shared.states import future, given_states
from ...engines.ccm import SampledSkill
from ...engines.sub_libraries import CcmPair
from ...errors import InputError, shown
from ..checked import checked
from . import frames
from .embed import Embed
from .plots import pyplot

Doubles = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass
class CCMTask:
    """What ``CCM(..., returnObject=True)`` returns.

    Attributes
    ----------
    libMeans : DataFrame
        LibSize, and the mean skill of both directions.
    E : int
    libSizes : list of int
    samples : ndarray (2, n_sizes, sample)
        Skill of each sample.
    """

    E: int
    libSizes: list[int]
    libMeans: Any = field(default=None, repr=False)
    samples: Any = field(default=None, repr=False)


def library_sizes(given: Any, E: int, n: int) -> list[int]:
    """pyEDM's reading of libSizes: a list, or (start, stop, increment) where the increment is below the stop.

    Raises
    ------
    InputError
        A size is too small or larger than the data.
    """
    sizes = frames.numbers(given, "libSizes", "CCM")
    if not sizes:
        raise InputError("CCM: libSizes is empty; library sizes, or start, stop and increment, are needed")
    if len(sizes) == 3 and sizes[2] < sizes[1]:
        start, stop, step = sizes
        if step < 1 or start > stop or start < max(E, 3):
            raise InputError(
                f"CCM: libSizes={shown(given)}: an increment of at least 1 and a start of at least {max(E, 3)}, not "
                "above the stop, are needed"
            )
        sizes = list(range(start, stop + 1, step))
    if max(sizes) > n:
        raise InputError(f"CCM: libSizes goes up to {shown(max(sizes))}; there are {n} rows")
    if min(sizes) < E + 2:
        raise InputError(f"CCM: libSizes begins with {shown(min(sizes))}; at least {E + 2} rows are needed for E={E}")
    return sizes


@checked
def CCM(
    dataFrame: Any = None, columns: Any = "", target: Any = "", libSizes: Any = "", sample: int = 30, E: int = 0,
    Tp: int = 0, knn: int = 0, tau: int = -1, exclusionRadius: int = 0, seed: int | None = None,
    embedded: bool = False, validLib: Any = (), includeData: bool = False, noTime: bool = False, mpMethod: Any = None,
    parallel: Any = True, sharedMB: float = 0.01, verbose: bool = False, showPlot: bool = False,
    returnObject: bool = False, legacy: bool = False,
) -> Any:  # fmt: skip
    """Mean cross-map skill for several library sizes, in both directions.

    The sub-libraries are those that pyEDM draws for the same seed.

    Parameters
    ----------
    columns, target : str or list of str
        Both sides; of several columns each is embedded, and the first is predicted.
    libSizes : str or list of int
        Library sizes, or start, stop and increment.
    sample : int
        Sub-libraries of each size.
    includeData : bool
        Also the variance over the samples.
    dataFrame, E, Tp, knn, tau, exclusionRadius, embedded, validLib, seed, showPlot, returnObject
        As in pyEDM.
    noTime, mpMethod, parallel, sharedMB, verbose, legacy
        Without effect.

    Returns
    -------
    DataFrame or CCMTask
        Columns LibSize, ``x:y`` (states of x predict y), ``y:x``.

    Raises
    ------
    InputError
        An argument cannot be used.
    """
    data = frames.frame(dataFrame, "CCM")
    one, other = (frames.names(given, what, "CCM", data) for given, what in ((columns, "columns"), (target, "target")))
    if not embedded and tau == 0:
        raise InputError("CCM: tau=0; a lag of at least one step is needed, negative for the past")
    if embedded:
        E = len(one)
    elif E < 1:
        raise InputError(f"CCM: E={E}; an embedding dimension of at least 1 is needed")
    if seed is not None and seed < 0:
        raise InputError(f"CCM: seed={seed}; a number of at least 0 is needed")
    draws("CCM: sample", sample)
    room("CCM: sample", (sample, len(data)))
    if abs(Tp) >= max(len(data), 1):
        raise InputError(f"CCM: Tp={Tp} leads beyond all {len(data)} rows")
    room("CCM: knn", (len(data), max(knn, 1)))
    sizes = library_sizes(libSizes, E, len(data))
    to_draw = SubLibraryDraws(sizes, sample, knn if knn > 0 else E + 1, exclusionRadius, seed)
    valid = frames.mask(validLib, len(data), "CCM")
    rho = np.array([
        _direction(data, library, data[library] if embedded else Embed(data, E=E, tau=tau, columns=library),
                   future(frames.doubles(data[targets[0]], "CCM"), Tp), valid, to_draw)
        for library, targets in ((one, other), (other, one))
    ])  # fmt: skip
    mean = means(rho)
    ways = [f"{one[0]}:{other[0]}", f"{other[0]}:{one[0]}"]
    table: dict[str, Any] = {"LibSize": sizes}
    for way, values in zip(ways, mean, strict=True):
        table[way] = values
    if includeData:
        for way, values, centre in zip(ways, rho, mean, strict=True):
            table[f"{way}_var"] = np.nanmean((values - centre[:, None]) ** 2, axis=1)
    task = CCMTask(E, sizes, frames.pandas().DataFrame(table), rho)
    if showPlot:
        plt = pyplot()
        ax = task.libMeans.plot("LibSize", list(dict.fromkeys(ways)), title=f"E = {E}", linewidth=3)
        ax.set(xlabel="Library Size", ylabel="CCM ρ")  # noqa: RUF001
        ax.axhline(y=0, linewidth=1)
        plt.show()
    return task if returnObject else task.libMeans


@dataclass(frozen=True)
class SubLibraryDraws:
    """Which sub-libraries are drawn, and how they predict.

    Attributes
    ----------
    sizes : list of int
    samples : int
        Sub-libraries of each size.
    k, radius : int
        Neighbours; rows around a predicted one that are none.
    seed : int or None
    anew : bool
        Whether draws begin anew for each size.
    """

    sizes: list[int]
    samples: int
    k: int
    radius: int
    seed: int | None
    anew: bool = True


def _direction(
    data: Any, library: list[str], embedding: Any, future_target: Doubles, valid: Mask | None, to_draw: SubLibraryDraws
) -> Doubles:
    """rho (n_sizes, samples) of one direction."""
    states = frames.doubles(embedding, "CCM")
    usable = np.isfinite(states).all(axis=1) & np.isfinite(future_target) & np.isfinite(data[library[0]].to_numpy())
    if valid is not None:
        usable &= valid
    rows = np.flatnonzero(usable)
    least = to_draw.k + 1
    if len(rows) < least:
        raise InputError(f"CCM: {library[0]!r} has {len(rows)} rows with a state and a target; {least} are needed")
    # Only these rows are drawn, and only these are predicted.
    future_targets = np.where(usable, future_target, np.nan)
    rho: Doubles = sampled_skill(states, future_targets[None], rows, to_draw)[0]
    return rho


def sampled_skill(
    states: Doubles, future_targets: Doubles, rows: NDArray[np.int64], to_draw: SubLibraryDraws
) -> Doubles:
    """rho (n_targets, n_sizes, samples) for pyEDM's own draws among ``rows``.

    Rows that have fewer than k neighbours are not predicted, as in pyEDM.
    """
    executor = open_device(None)
    dtype = "float64" if executor.info.fp64 else "float32"
    samples = to_draw.samples
    n, out = len(states), np.full((len(future_targets), len(to_draw.sizes), samples), np.nan)
    entropy = np.random.SeedSequence(to_draw.seed).entropy
    for place, size in enumerate(to_draw.sizes):
        drawn = min(size, len(rows))
        count = min(to_draw.k, drawn - 1)
        if to_draw.anew or place == 0:
            generator = np.random.default_rng(np.random.SeedSequence(entropy))
        members = np.zeros((samples, n), bool)
        for sample in range(samples):
            members[sample, rows[generator.choice(len(rows), size=drawn, replace=False)]] = True
        shared = np.broadcast_to(members, (len(future_targets), 1, samples, n))
        library_states = given_states(states, k=count, Tp=0, exclusion_radius=to_draw.radius, dtype=dtype)
        engine = SampledSkill(executor, library_states, future_targets, least=count)
        try:
            pairs = [CcmPair(0, target_index, (0, 0)) for target_index in range(len(future_targets))]
            out[:, place] = engine.skill(pairs, [drawn], samples, 0, shared)[:, 0]
        finally:
            engine.release()
    return out
