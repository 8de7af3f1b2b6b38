"""Oracle of convergent cross mapping: random sub-libraries bit for bit as a device draws them, and their skill.

A sub-library is drawn without replacement by going through the rows that may be drawn, in order, and taking each with
the chance that what is still wanted has among what is left (selection sampling: Fan, Muller and Rezucha, J. Am. Stat.
Assoc. 57, 387, 1962). The random numbers are those of Philox4x32-10 (Salmon et al., Proc. SC11, 16, 2011), whose output
is a function of key and counter alone: no draw depends on another.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .edm import Doubles, Floats, knn_float64_exact, library_mask_of, simplex_predict
from .edm import pearson as pearson_of
from .smap import smap_rows

Words = npt.NDArray[np.uint32]
Mask = npt.NDArray[np.bool_]

_MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_STEPS = np.uint32(0x9E3779B9), np.uint32(0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)


def philox4x32(counter: npt.ArrayLike, key: npt.ArrayLike) -> Words:
    """Ten rounds of Philox.

    Parameters
    ----------
    counter : array_like of uint32 (..., 4)
    key : array_like of uint32 (2,)

    Returns
    -------
    ndarray of uint32 (..., 4)
    """
    c = np.moveaxis(np.asarray(counter, np.uint32), -1, 0).copy()
    k0, k1 = np.asarray(key, np.uint32)
    with np.errstate(over="ignore"):
        for _ in range(10):
            first, second = (c[0].astype(np.uint64) * _MULTIPLIERS[0], c[2].astype(np.uint64) * _MULTIPLIERS[1])
            c = np.stack([
                (second >> _HALF).astype(np.uint32) ^ c[1] ^ k0, (second & _LOW).astype(np.uint32),
                (first >> _HALF).astype(np.uint32) ^ c[3] ^ k1, (first & _LOW).astype(np.uint32),
            ])  # fmt: skip
            k0, k1 = k0 + _STEPS[0], k1 + _STEPS[1]
    return np.moveaxis(c, 0, -1)


def stream_key(seed: int, lib_size: int) -> Words:
    """Key of the streams of a library size: two words that NumPy's SeedSequence makes of both."""
    words: Words = np.random.SeedSequence(entropy=seed, spawn_key=(lib_size,)).generate_state(2).astype(np.uint32)
    return words


def sub_library(
    n_rows: int, lib_size: int, *, seed: int, library: int, target: int, sample: int
) -> npt.NDArray[np.int64]:
    """Ranks (lib_size,) among the rows that may be drawn, ascending, that a sample draws.

    Parameters
    ----------
    n_rows, lib_size : int
        Rows there are, and rows wanted, at most as many.
    seed : int
    library, target : int
        Numbers of the two series, which choose the stream.
    sample : int
        Number of the sample.
    """
    blocks = -(-n_rows // 4)
    counter = np.zeros((blocks, 4), np.uint32)
    counter[:, 0] = np.arange(blocks)
    counter[:, 1:] = sample, library, target
    numbers = philox4x32(counter, stream_key(seed, lib_size)).reshape(-1).tolist()
    taken: list[int] = []
    for p in range(n_rows):
        if numbers[p] * (n_rows - p) >> 32 < lib_size - len(taken):
            taken.append(p)
    return np.array(taken, np.int64)


def ccm_skill(
    x: npt.ArrayLike,
    y: npt.ArrayLike,
    lib_size: int,
    *,
    E: int,
    tau: int = 1,
    Tp: int = 0,
    k: int | None = None,
    exclusion_radius: int = 0,
    seed: int = 0,
    library: int = 0,
    target: int = 1,
    sample: int = 0,
    library_mask: Mask | None = None,
) -> float:
    """rho of ``y`` predicted from a random sub-library of the embedding of ``x``, in float64.

    Parameters
    ----------
    x, y : array_like (L,)
        Library series, whose every embedded row is predicted from, and target series.
    lib_size : int
    library, target, sample, seed : int
        See :func:`sub_library`.
    library_mask : ndarray of bool (L,), optional
        Rows that may be drawn.
    """
    of: Floats = np.asarray(x, np.float64)
    aim: Floats = np.asarray(y, np.float64)
    mask = library_mask_of(of, E, tau, Tp, aim)
    stream = {"seed": seed, "library": library, "target": target, "sample": sample}
    members = _members(mask if library_mask is None else mask & library_mask, lib_size, stream)
    squared, indices = knn_float64_exact(
        of, E=E, tau=tau, k=k, Tp=Tp, exclusion_radius=exclusion_radius, target=aim, library_mask=members
    )
    predicted: Doubles = simplex_predict(indices, np.sqrt(squared), aim, Tp)[0]
    return pearson_of(predicted, _ahead(aim, Tp))


def ccm_smap_skill(
    x: npt.ArrayLike, y: npt.ArrayLike, lib_size: int, *, E: int, theta: float, ridge: float = 0.0, tau: int = 1,
    Tp: int = 0, exclusion_radius: int = 0, seed: int = 0, library: int = 0, target: int = 1, sample: int = 0,
    library_mask: Mask | None = None,
) -> float:  # fmt: skip
    """As :func:`ccm_skill`, predicted by S-map from all members of the sub-library, where there are E + 1 or more."""
    of: Floats = np.asarray(x, np.float64)
    aim: Floats = np.asarray(y, np.float64)
    mask = library_mask_of(of, E, tau, Tp, aim)
    stream = {"seed": seed, "library": library, "target": target, "sample": sample}
    members = np.flatnonzero(_members(mask if library_mask is None else mask & library_mask, lib_size, stream))
    states = np.column_stack([np.roll(of, lag * tau) for lag in range(E)])  # its rows hold nothing that went round
    ahead, rows = _ahead(aim, Tp), np.flatnonzero(mask)
    fit = smap_rows(
        states[members], ahead[members], members, states[rows], rows, theta, exclusion_radius=exclusion_radius,
        alpha=ridge,
    )  # fmt: skip
    left = (np.abs(rows[:, None] - members) > exclusion_radius).sum(axis=1)
    return pearson_of(np.where(left > E, fit.predicted, np.nan), ahead[rows])


def _members(mask: Mask, lib_size: int, stream: dict[str, int]) -> Mask:
    """Which of the rows that may be drawn a sample draws."""
    rows, members = np.flatnonzero(mask), np.zeros(len(mask), bool)
    members[rows[sub_library(len(rows), lib_size, **stream)]] = True
    return members


def _ahead(aim: Floats, Tp: int) -> Floats:
    """What each row is to predict; NaN where that lies outside the series."""
    observed = np.full(len(aim), np.nan)
    at = np.arange(len(aim)) + Tp
    inside = (at >= 0) & (at < len(aim))
    observed[inside] = aim[at[inside]]
    return observed
