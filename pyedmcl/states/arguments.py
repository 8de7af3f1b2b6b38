"""Checks of the arguments of empirical dynamic modelling, and measures of forecast skill."""

from __future__ import annotations

import secrets
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..arguments import MOST_STEPS, choice, folder, integer, precision, real, reporter, room, several
from ..call import noticed_seed
from ..device.select import DeviceNames, open_devices
from ..errors import InputError, shown
from ..functions import MOST_DRAWS
from ..jobs.client import ClientRunner
from ..jobs.runner import LocalRunner, Runner
from ..series.calendar import faults, remedy, steps_of
from ..series.groups import Groups
from ..series.regular import require_same_rows
from ..series.scaling import FAR_EXPONENT, exponents, near_one
from ..series.series import Series, as_series, tell_constant

__all__ = [
    "MOST_THETA",
    "choice",
    "draws",
    "folder",
    "integer",
    "one_series",
    "precision",
    "real",
    "reporter",
    "room",
    "runner_on",
    "several",
    "share",
    "shown",
    "stream",
    "surrogates",
    "target_values_of",
    "theta_of_fit",
]  # fmt: skip

#: No weight but the nearest row's is left long before; beyond it, products in single precision overflow.
MOST_THETA = 1e20


def draws(name: str, value: object) -> int:
    """How often something random is drawn."""
    return integer(name, value, 1, most=MOST_DRAWS)


def surrogates(n: int | str) -> int:
    """How many surrogates are drawn; 0 for "auto"."""
    return n if isinstance(n, int) else 0


def share(name: str, value: object) -> float:
    """A number between 0 and 1, without these."""
    return real(name, value, "a number between 0 and 1", lambda number: 0 < number < 1)


def theta_of_fit(name: str, value: object) -> float:
    """The localisation of an S-map."""
    needed = f"a number from 0 (one global fit) to {MOST_THETA:g}, or several of them,"
    return real(name, value, needed, lambda theta: 0 <= theta <= MOST_THETA)


def stream(seed: Any) -> int:
    """``seed`` as an int from 0 to 2^63 - 1; a random one for None."""
    number = secrets.randbits(63) if seed is None else seed
    noticed_seed(number)
    return number


def runner_on(device: DeviceNames, dtype: str, client: Any = None) -> Runner:
    """What runs jobs on one or more devices, those of the workers of ``client`` where it is given.

    Each must compute in ``dtype``.
    """
    runner: Runner = LocalRunner(open_devices(device)) if client is None else ClientRunner(client, device)
    for info in runner.infos:
        precision(dtype, info.fp64, info.name)
    return runner


def one_series(data: Any, what: str) -> Series:
    """A single series; a table of several is refused with its shape."""
    series = as_series(data, what=what)
    if series.n_series != 1:
        raise InputError(
            f"{what}: one series is needed (1-D), got {series.n_series} series of {series.n_steps} steps; pass a column"
        )
    if series.n_steps > MOST_STEPS:
        raise InputError(f"{what}: {series.n_steps:,} steps; at most {MOST_STEPS:,} are supported")
    return series


def target_values_of(series: Series, target: Any, quiet: bool = False) -> NDArray[np.float64]:
    """Values of the series that is predicted: ``target``, or the only one of the library.

    Parameters
    ----------
    series : Series
        The library.
    quiet : bool
        Say nothing of constant series.
    """
    if target is None:
        if series.n_series > 1:
            raise InputError(
                f"target=None: lib has {series.n_series} series, so the one to predict must be given; if one series "
                "was meant (1-D), pass a column"
            )
        target_series = series
    else:
        target_series = one_series(target, "target")
        require_same_rows(lib=series, target=target_series)
    if not quiet:
        state = {"lib": series} if len(series.constant) == series.n_series else {}
        tell_constant(**state, **({} if target is None else {"target": target_series}))
    values: NDArray[np.float64] = target_series.values[:, 0].astype(np.float64)
    return values


# What the caller of a prediction chooses beside the data, as it was given: simplex and S-map check it alike.


@dataclass(frozen=True)
class PredictionOptions:
    """Arguments of :func:`pyedmcl.simplex` and :func:`pyedmcl.smap` of these names, unchecked."""

    E: Any = None
    tau: Any = 1
    Tp: Any = 1
    knn: Any = None
    exclusion_radius: Any = 0
    embedded: bool = False
    lib_range: Any = None
    pred_range: Any = None
    valid_lib: Any = None
    groups: Any = None
    state: Any = None


# How much work a call is, roughly: long ones repay tuning.


def operations(
    dims: Sequence[int], *, n_library: int, n_query: int, n_series: int = 1, n_targets: int = 0
) -> float:
    """Arithmetic operations of a search and of what is predicted from it, roughly.

    Parameters
    ----------
    dims : sequence of int
        Embedding dimensions.
    n_library, n_query : int
        Rows of the library and of the query.
    n_series : int
        Libraries.
    n_targets : int
        Targets that are predicted from each library.
    """
    pairs = float(n_library) * n_query * n_series
    # The same count as the pacing of launches: two sweeps of 2 E and a few operations per dimension for each pair.
    search = pairs * (4 * max(dims) + 4 * len(set(dims)) + 2)
    lookup = 2.0 * n_query * n_series * n_targets * (max(dims) + 5)
    return search + lookup


# What tables and pictures of results within windows have in common.


PAIRS_SHOWN = 8  # in a picture


def spans(windows: Any, each: int) -> dict[str, NDArray[Any]]:
    """First row of each window, one past the last, and its middle, in ``each`` rows of a table."""
    columns = {"start": windows.starts, "end": windows.starts + windows.width, "time": windows.time}
    return {name: np.repeat(values, each) for name, values in columns.items()}


# What the times of a table say about its rows: whether these are equally spaced, complete and in order.


Key = TypeVar("Key", bound=Hashable)


def remarks_on_times(time: NDArray[Any] | None) -> list[tuple[str, str]]:
    """(code, sentence) of whatever is wrong with times; nothing for names and where there are none."""
    steps = steps_of(time)
    if time is None or steps is None:
        return []
    return [(code, f"{said}. {remedy(code)}") for code, said in faults(time, steps).items()]


def remarks_on_times_of(time: NDArray[Any] | None, groups: Groups | None) -> list[tuple[str, str]]:
    """As :func:`remarks_on_times`, of each recording; of groups each kind once, for the first that has it."""
    if groups is None or time is None:
        return remarks_on_times(time)
    remarks = (
        (code, name, text) for number, name in enumerate(groups.names.tolist())
        for code, text in remarks_on_times(time[groups.codes == number])
    )  # fmt: skip
    return list(said_once(remarks).items())


def said_once(found: Iterable[tuple[Key, Any, str]]) -> dict[Key, str]:
    """Of what (key, name of a group, sentence) say, each key once: for the first group, with the number of others."""
    held: dict[Key, list[str]] = {}
    for key, name, text in found:
        held.setdefault(key, []).append(f"group {name}: {text}")
    return {
        key: own[0] + (f" (and so in {len(own) - 1:,} more groups)" if len(own) > 1 else "")
        for key, own in held.items()
    }


# Forecast skill on the host, in float64, of data of any magnitude.
#
# Products of values below 1e-154 vanish and those above 1e154 overflow. Values are therefore brought near 1 before they
# are multiplied, by a power of two, which rounds nothing: elsewhere the bits are those of the values as they are.


Doubles = NDArray[np.float64]


def pearson(predicted: NDArray[Any], observed: NDArray[Any], noise: float | Doubles = 0.0) -> Doubles:
    """Two-pass Pearson rho along the last axis over pairs where both are finite.

    NaN for fewer than 3 pairs or where either side does not vary; predictions whose range is up to ``noise``, their own
    rounding errors, of all rows or of each, do not.
    """
    p, o = np.asarray(predicted, np.float64), np.asarray(observed, np.float64)
    both = np.isfinite(p) & np.isfinite(o)
    n = both.sum(axis=-1)
    if not both.shape[-1]:
        return np.full(n.shape, np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        if (n == both.shape[-1]).all():
            (p, range_p), (o, range_o) = _near_one(p), _near_one(o)
            p = p - (p.sum(axis=-1) / n)[..., None]
            o = o - (o.sum(axis=-1) / n)[..., None]
        else:
            p, o = np.where(both, p, 0.0), np.where(both, o, 0.0)
            (p, range_p), (o, range_o) = _near_one(p, both), _near_one(o, both)
            p = np.where(both, p - (p.sum(axis=-1) / n)[..., None], 0.0)
            o = np.where(both, o - (o.sum(axis=-1) / n)[..., None], 0.0)
        rho = (p * o).sum(axis=-1) / np.sqrt((p * p).sum(axis=-1) * (o * o).sum(axis=-1))
    out: Doubles = np.where((n >= 3) & (range_p > noise) & (range_o > 0), np.clip(rho, -1, 1), np.nan)
    return out


def _near_one(values: Doubles, valid: NDArray[np.bool_] | None = None) -> tuple[Doubles, Doubles]:
    """Values of each row, times a power of two where they are far from 1, and their range before."""
    high = (values if valid is None else np.where(valid, values, -np.inf)).max(axis=-1)
    low = (values if valid is None else np.where(valid, values, np.inf)).min(axis=-1)
    reach = np.maximum(np.abs(high), np.abs(low))
    if not ((reach > 2.0**-FAR_EXPONENT) & (reach < 2.0**FAR_EXPONENT)).all():
        values = values * np.ldexp(1.0, -exponents(reach[..., None]))[..., None]
    return values, high - low


def errors_of_rows(predicted: NDArray[Any], observed: NDArray[Any]) -> list[tuple[float, float]]:
    """:func:`errors` of each row; those whose pairs are at the same places together."""
    difference = np.asarray(predicted, np.float64) - np.asarray(observed, np.float64)
    present = np.isfinite(difference)
    if not present[0].any() or (present != present[0]).any():
        return [errors(*row) for row in zip(predicted, observed, strict=True)]
    difference = np.ascontiguousarray(difference[:, present[0]])
    largest_exponent = exponents(difference)
    exponent = np.where(np.abs(largest_exponent) > FAR_EXPONENT, largest_exponent, 0)
    scaled = np.ldexp(difference, -exponent[:, None]) if exponent.any() else difference
    absolute, square = np.abs(scaled).mean(axis=1), np.sqrt((scaled**2).mean(axis=1))
    return list(zip(np.ldexp(absolute, exponent).tolist(), np.ldexp(square, exponent).tolist(), strict=True))


def errors(predicted: NDArray[Any], observed: NDArray[Any]) -> tuple[float, float]:
    """Mean absolute error and root mean square error over finite pairs; NaN where there are none."""
    difference = np.asarray(predicted, np.float64) - np.asarray(observed, np.float64)
    difference = difference[np.isfinite(difference)]
    if difference.size == 0:
        return float("nan"), float("nan")
    scaled, exponent = near_one(difference)
    absolute, square = np.abs(scaled).mean(), np.sqrt((scaled**2).mean())
    return float(np.ldexp(absolute, exponent)), float(np.ldexp(square, exponent))


# What tells how good predictions are: correlation of values or of ranks, and errors.


#: The smaller, the better.
ERRORS = ("rmse", "mae", "nrmse")


def check_room(shape: tuple[int, ...], dtype: Any, what: str) -> NDArray[Any]:
    """Room for predictions of this shape."""
    try:
        return room("predictions", shape, dtype)
    except InputError as error:
        needed = str(error).partition(": ")[2].partition(";")[0]
        raise InputError(f"predictions=True: {needed}; {what}") from None


def measure(skill: str, predicted: NDArray[Any], observed: NDArray[Any]) -> Doubles:
    """Skill (m,) of predictions (m, n), over the rows where they and what was observed (n,) or (m, n) are no gaps.

    NaN where there are fewer than 3 such rows, for correlations, or none, for errors; where one side never changes;
    of "nrmse" where what was observed does not.
    """
    p = np.asarray(predicted, np.float64)
    o = np.broadcast_to(np.asarray(observed, np.float64), p.shape)
    if skill == "pearson":
        return pearson(p, o)
    both = np.isfinite(p) & np.isfinite(o)
    if skill == "spearman":
        ranked = np.full((2, *p.shape), np.nan)
        for row, rows in enumerate(both):
            ranked[0, row, rows], ranked[1, row, rows] = _ranks(p[row, rows]), _ranks(o[row, rows])
        return pearson(ranked[0], ranked[1])
    out = np.full(len(p), np.nan)
    for row, rows in enumerate(both):
        mae, rmse = errors(p[row, rows], o[row, rows])
        out[row] = mae if skill == "mae" else rmse
        if skill == "nrmse" and rows.any():
            scaled, exponent = near_one(o[row, rows])
            spread = float(np.ldexp(scaled.std(), exponent))
            out[row] = rmse / spread if spread > 0 else np.nan
    return out


def _ranks(values: Doubles) -> Doubles:
    """Ranks from 0; equal values have the mean of theirs."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    mean: Doubles = (ends - (counts + 1) / 2)[place]
    return mean
