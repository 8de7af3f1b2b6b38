"""The calls that stand for the kernels in the matrix of runtimes, each at an E, a tau and a number type.

A call yields what a device computed, and beside it what the oracles of :mod:`pyedmcl.reference` say: plain arrays
demand the same bits. :data:`CALLS` says which kernels each stands for; what it builds in fact is noted while it runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import portability_recurrence
import portability_surrogates
from numpy.typing import NDArray
from portability_place import Answers, Array, NotThereError, Place, judged

import pyedmcl
from pyedmcl.device.quirks import quirks_for
from pyedmcl.engines.targets import COMPACT_LEAST
from pyedmcl.launch import staging
from pyedmcl.reference import edm as ccm_oracle
from pyedmcl.reference import edm as smap_oracle
from pyedmcl.reference import library_mask_of, simplex_predict, skill
from pyedmcl.tuner.problem import Close, SmallSearch
from pyedmcl.tuner.problems import problem
from pyedmcl.tuning.parameters import using

_THETAS = (0.0, 1.5)
_SHARED_FROM = 4  # regressors
_SAMPLES = 3  # of sub-libraries that are compared


def _neighbours(place: Place, **search: Any) -> Answers:
    n = place.rows()
    cases: dict[str, tuple[Array, dict[str, Any]]] = {
        "itself": (place.noise(1), {"Tp": 1, "exclusion_radius": 2}),
        "another": (place.noise(2), {"query": place.gappy(3, n + 13)}),
        "gaps": (place.gappy(4), {"Tp": 1}),
        "ties": (np.random.default_rng(5).integers(0, 4, n).astype(place.dtype), {}),
    }  # fmt: skip
    for name, (x, options) in cases.items():
        found = pyedmcl.knn(x, **options, **search, **place.common)
        distances, rows = place.nearest(x, **options)
        yield f"rows, {name}", found.indices, rows
        yield f"distances, {name}", found.distances, distances


def knn(place: Place) -> Answers:
    yield from _neighbours(place, neighbors="exhaustive")


def indexed(place: Place) -> Answers:
    """An index of the host proposes rows; below 64 states it has nothing to leave out."""
    x = place.noise(1, place.rows() + 70)
    found = pyedmcl.knn(x, neighbors="kdtree", Tp=1, **place.common)
    distances, rows = place.nearest(x, Tp=1)
    yield "rows", found.indices, rows
    yield "distances", found.distances, distances


def _searched(kernel: str, place: Place) -> Answers:
    own: Any = problem(kernel)
    given = {"E": place.E, "tau": place.tau, "dtype": place.dtype}
    for mine in (True, False):
        excluding = {"excluding": mine} if kernel == "pruned" else {}
        case = own.case(place.executor.info, place.rows(), **given, own=mine, **excluding)
        small = SmallSearch(place.gappy(6), None, 1, 2) if mine else SmallSearch(place.noise(7), place.gappy(8), 0, -1)
        if mine:
            small = SmallSearch(small.library, None, 1, 2, None, np.arange(len(small.library)) % 3 > 0)
        yield from judged(own, place, case, [small])


def pruned(place: Place) -> Answers:
    yield from _searched("pruned", place)


def shared_sums(place: Place) -> Answers:
    yield from _searched("shared_sums", place)


def simplex(place: Place) -> Answers:
    x = place.noise(6)
    distances, rows = place.nearest(x, Tp=1, target=x)
    result = pyedmcl.simplex(x, Tp=1, **place.common)
    begin = (place.E - 1) * place.tau
    yield "predicted", result.predicted, Close(simplex_predict(rows, distances, x, 1)[0][begin:], 0.0, place.tolerance)
    yield "rho", result.rho, Close(np.array(skill(rows, distances, x, 1)), 0.0, place.tolerance)


def embed_dimension(place: Place) -> Answers:
    """All dimensions up to E in passes of several."""
    given = {name: value for name, value in place.common.items() if name != "E"}
    x = place.gappy(8)
    result = pyedmcl.embed_dimension(x, E_max=place.E, **given)
    rho = []
    for E in range(1, place.E + 1):
        distances, rows = Place(place.executor, E, place.tau, place.dtype).nearest(x, Tp=1, target=x)
        rho.append(skill(rows, distances, x, 1))
    yield "rho", result.rho, Close(np.array(rho), 0.0, place.tolerance)


def _series(place: Place, gaps: bool, rows: int | None = None) -> Array:
    x = np.stack([place.noise(20 + i, rows) for i in range(3)], axis=1)
    x[:, 1:] += x[:, :-1] / 2
    if gaps:
        x[len(x) // 8, :2] = np.nan
    return x


def xmap(place: Place) -> Answers:
    for gaps in (False, True):
        x = _series(place, gaps)
        rho = np.empty((3, 3))
        for library, target in np.ndindex(3, 3):
            distances, rows = place.nearest(x[:, library], target=x[:, target])
            rho[library, target] = skill(rows, distances, x[:, target], 0)
        yield f"rho{', gaps' * gaps}", pyedmcl.xmap(x, **place.common).rho, Close(rho, 0.0, place.tolerance)


def compact_map(place: Place) -> Answers:
    """Targets in 16 bits: within twice the tolerance, for values that do not lie far out."""
    if place.dtype != "float32":
        raise NotThereError("only float32 can have 16 bits")
    x = _series(place, False, place.rows(300, 130)) / 10
    x += np.sign(x)
    rho = np.empty((3, 3))
    for library, target in np.ndindex(3, 3):
        distances, rows = place.nearest(x[:, library])
        rho[library, target] = skill(rows, distances, x[:, target], 0)
    times = -(-COMPACT_LEAST // 3)  # so many targets as repay it
    found = pyedmcl.xmap(x, targets=np.tile(x, (1, times)), precision="compact", **place.common)
    yield "rho", found.rho, Close(np.tile(rho, (1, times)), 0.0, 2 * place.tolerance)


def windowed_map(place: Place) -> Answers:
    if quirks_for(place.executor.info).scalar_work_items:
        raise NotThereError("windows are searched together on processors only")
    x = _series(place, False, place.rows())[:, :2]
    width, step, k = len(x) - 12, 2, min(place.E + 1, 12)
    found: Any = pyedmcl.xmap(x, windows=(width, step), knn=k, **place.common)
    rho = np.empty((7, 2, 2))
    for window, library, target in np.ndindex(7, 2, 2):
        part = x[window * step : window * step + width]
        distances, rows = place.nearest(np.ascontiguousarray(part[:, library]), k=k)
        rho[window, library, target] = skill(rows, distances, part[:, target], 0)
    yield "rho", found.rho, Close(rho, 0.0, place.tolerance)


def smap_map(place: Place) -> Answers:
    # The simulator gets a whole tile: behind the last row work-items read fits that nobody made, and drop the answers.
    x = _series(place, True, place.rows(120 + 3 * place.E, 64))[:, :2]
    options: dict[str, Any] = {"theta": 1.5, "exclusion_radius": 2}
    result = pyedmcl.xmap(x, method="smap", **options, **place.common)
    yield "rho", result.rho, Close(smap_oracle.map_rho(x, place.E, tau=place.tau, **options), 0.0, 1e-5)


def mean_slopes(place: Place) -> Answers:
    x = _series(place, False, place.rows(120 + 3 * place.E, 64))[:, :2]
    options: dict[str, Any] = {"theta": 1.5, "exclusion_radius": 2}
    result: Any = pyedmcl.xmap(x, method="smap", coefficients="mean", **options, **place.common)
    slopes = smap_oracle.map_slopes(x, place.E, tau=place.tau, **options)
    yield "slopes", result.coefficients, Close(slopes, 0.0, 1e-3 if place.dtype == "float32" else 1e-7)


def _local_fits(place: Place, share_from: int) -> Answers:
    """Fits of least squares, whose tolerance is that of the tests: relative to the largest value."""
    if place.E + 1 < share_from == _SHARED_FROM:
        raise NotThereError(f"sums are shared from {_SHARED_FROM} regressors on")
    x, E, tau = place.noise(9, place.rows(120 + 4 * place.E)), place.E, place.tau
    with using(smap={"share_from": share_from}):
        result = pyedmcl.smap(x, Tp=1, theta=_THETAS, exclusion_radius=2, **place.common)
    rows = np.arange((E - 1) * tau, len(x) - 1)
    wide = x.astype(np.float64)
    states = np.column_stack([wide[rows - lag * tau] for lag in range(E)])
    right = [smap_oracle.smap_rows(states, wide[rows + 1], rows, states, rows, theta, exclusion_radius=2)
             for theta in _THETAS]  # fmt: skip
    predicted = np.array([fit.predicted for fit in right])
    rounding = (1e-4 if place.dtype == "float32" else 1e-9) * np.abs(predicted).max()
    yield "predicted", np.asarray(result.predicted)[:, : len(rows)], Close(predicted, 0.0, rounding)


def smap(place: Place) -> Answers:
    yield from _local_fits(place, 48)


def smap_shared(place: Place) -> Answers:
    yield from _local_fits(place, _SHARED_FROM)


def ccm(place: Place) -> Answers:
    x, y = place.noise(10).astype(np.float64), place.noise(11).astype(np.float64)
    y[1:] += x[:-1]
    most = int(min(library_mask_of(a, place.E, place.tau, 0, b).sum() for a, b in ((x, y), (y, x))))
    sizes = sorted({place.E + 3, most // 2, most})
    # A work-item has bits of 16 samples. Of fewer, the rest is computed from what nobody wrote, and dropped.
    samples = 16 if place.tiny else _SAMPLES
    result = pyedmcl.ccm(x, y, lib_sizes=sizes, sample=samples, seed=5, exclusion_radius=1, **place.common)
    rho = [[[ccm_oracle.ccm_skill(a, b, size, E=place.E, tau=place.tau, exclusion_radius=1, seed=5, library=d,
                                  target=1 - d, sample=sample) for sample in range(_SAMPLES)]
            for size in sizes] for d, (a, b) in enumerate(((x, y), (y, x)))]  # fmt: skip
    yield "rho", result.rho[..., :_SAMPLES], Close(np.array(rho), 0.0, 2e-5)


def _room(place: Place, shape: tuple[int, ...], dtype: str) -> staging.DeviceRows:
    """An array of the caller, which begins behind some elements of its memory."""
    item = np.dtype(dtype)
    buffer = place.executor.upload(np.zeros(place.tau + int(np.prod(shape)), item))
    return staging.DeviceRows(buffer, place.tau, shape, item)


def _held(place: Place, array: staging.DeviceRows) -> Array:
    return place.executor.download(
        array.buffer, np.empty(array.shape, array.dtype), array.first * array.dtype.itemsize
    )


def _images(place: Place, rng: np.random.Generator) -> Iterator[tuple[str, staging.Pixels, NDArray[np.int64]]]:
    """Images of sums on the device, in one and two words, and all of their pixels."""
    k = place.E + 1
    for symmetric, words in ((True, 1), (False, 2)):
        image = rng.integers(0, 1 << 32, (k, k, words), dtype=np.uint32)
        pixels = image.astype(np.int64) @ np.array([1, 1 << 32][:words])
        whole = np.triu(pixels) + np.triu(pixels, 1).T if symmetric else pixels
        yield f"{words}", staging.Pixels(place.executor.upload(image), symmetric, words), whole


def delivered(place: Place) -> Answers:
    """Neighbours, skill and counts into arrays of the caller."""
    rng, n, k, executor = np.random.default_rng(14), 37, place.E + 1, place.executor
    rows, squared = rng.integers(-1, n, (n, k)).astype(np.int32), rng.random((n, k)).astype(place.dtype)
    into = _room(place, (n, k), "int32"), _room(place, (n, k), place.dtype)
    held = executor.upload(rows), executor.upload(squared)
    staging.deliver_neighbours(executor, *held, into, n_library=n, exponent=3)
    yield "rows", _held(place, into[0]), rows
    yield "distances", _held(place, into[1]), np.where(rows < 0, np.inf, np.sqrt(squared) * 8).astype(place.dtype)
    rho = np.clip(rng.standard_normal((n, n)), -1, 1).astype(place.dtype)
    rho[3, 4] = np.nan
    skilled = _room(place, (n - place.tau, n), place.dtype)
    staging.deliver_skill(executor, executor.upload(rho), n * place.tau, skilled)
    yield "rho", _held(place, skilled), rho[place.tau :]
    for words, image, pixels in _images(place, rng):
        counts = _room(place, pixels.shape, "int64")
        staging.deliver_counts(executor, image, counts)
        yield f"counts, {words}", _held(place, counts), pixels


def delivered_means(place: Place) -> Answers:
    """Means of distances into arrays of the caller; a pixel without a cell has none."""
    if not place.executor.info.fp64:
        raise NotThereError("no float64 on this device")
    rng, k = np.random.default_rng(15), place.E + 1
    rows, columns = rng.integers(0, 9, k).astype(np.float64), rng.integers(1, 9, k).astype(np.float64)
    rows[0] = 0
    cells = np.outer(rows, columns)
    for words, image, pixels in _images(place, rng):
        means = _room(place, pixels.shape, "float64")
        staging.deliver_means(place.executor, image, means, (rows, columns), 3)
        with np.errstate(all="ignore"):
            right = np.where(cells > 0, np.ldexp(pixels / cells, 3), np.nan)
        yield f"means, {words}", _held(place, means), right


@dataclass(frozen=True)
class Call:
    """A call, and the kernels that it stands for."""

    make: Callable[[Place], Answers]
    kernels: tuple[str, ...]


_SWEEP = ("recurrence_bits", "recurrence_transpose", "recurrence_lines", "recurrence_finish")
CALLS: Mapping[str, Call] = {
    "knn": Call(knn, ("stage", "knn")),
    "knn, k-d tree": Call(indexed, ("candidates",)),
    "knn, pruned": Call(pruned, ("pruned_order", "pruned")),
    "knn, shared sums": Call(shared_sums, ("shared_sums",)),
    "simplex": Call(simplex, ("knn", "predict")),
    "embed_dimension": Call(embed_dimension, ("knn", "predict", "skill")),
    "xmap": Call(xmap, ("knn", "lookup")),
    "xmap, S-map": Call(smap_map, ("smap_white", "smap_gram", "smap_map")),
    "xmap, compact": Call(compact_map, ("compact", "lookup")),
    "xmap, windows": Call(windowed_map, ("window_knn",)),
    "xmap, mean slopes": Call(mean_slopes, ("smap_slopes",)),
    "smap": Call(smap, ("smap_stage", "smap_scale", "smap", "smap_solve")),
    "smap, shared sums": Call(smap_shared, ("smap_shared", "smap_solve")),
    "ccm": Call(ccm, ("ccm_draw", "ccm", "ccm_direct")),
    "rqa": Call(portability_recurrence.rqa_rounded, _SWEEP),
    "rqa, exact": Call(portability_recurrence.rqa_exact, _SWEEP),
    "rqa_batch": Call(portability_recurrence.rqa_batch, ("recurrence_batch",)),
    "out=": Call(delivered, ("deliver",)),
    "out=, means": Call(delivered_means, ("deliver",)),
    "surrogates": Call(portability_surrogates.surrogates, ("waves",)),
    "highest of lags": Call(portability_surrogates.highest, ("highest",)),
    "recurrence_plot": Call(portability_recurrence.image, ("recurrence_image",)),
    "thresholds": Call(portability_recurrence.ranks, ("recurrence_ranks",)),
    "recurrence_network": Call(portability_recurrence.network, ("recurrence_network",)),
    "windowed_rqa": Call(portability_recurrence.windows, ("recurrence_windows",)),
}  # fmt: skip
