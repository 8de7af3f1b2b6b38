"""Checks of what the functions of empirical dynamic modelling are given; see also :mod:`pyedmcl.data.arguments`."""

from __future__ import annotations

import secrets
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.arguments import MOST_STEPS, choice, folder, integer, precision, real, reporter, room, several, shown
from ...data.call import noticed_seed
from ...data.same_rows import require_same_rows
from ...data.series import Series, as_series, tell_constant
from ...device.select import DeviceNames
from ...device.session import open_devices
from ...errors import InputError
from ...jobs.client import ClientRunner
from ...jobs.runner import LocalRunner, Runner
from ...neighbors.choose import SEARCHES, SearchRequest

__all__ = [
    "MOST_DRAWS",
    "MOST_GENERATED",
    "MOST_NEIGHBOURS",
    "MOST_THETA",
    "choice",
    "count",
    "draws",
    "exclusion",
    "folder",
    "integer",
    "neighbor_search",
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

# The lists of a work-item lie in its private memory, and a CPU runtime's threads have small stacks.
MOST_NEIGHBOURS = 1024
#: Sub-libraries or surrogates, and steps that a series is continued by: beyond these a mistake is more likely.
MOST_DRAWS = 10_000_000
MOST_GENERATED = 1_000_000
#: No weight but the nearest row's is left long before; beyond it, products in single precision overflow.
MOST_THETA = 1e20
_MOST_SEED = 2**63 - 1


def count(name: str, value: object) -> int | None:
    """A number of neighbours, or None for E + 1."""
    if value is None:
        return None
    k = integer(name, value, 1)
    if k > MOST_NEIGHBOURS:
        raise InputError(f"{name}={k}: at most {MOST_NEIGHBOURS:,} neighbours are kept for each row")
    return k


def exclusion(radius: object) -> int:
    """A number of steps in time; any that no series is as long as means the same."""
    return min(integer("exclusion_radius", radius, 0), MOST_STEPS)


def draws(name: str, value: object) -> int:
    """How often something random is drawn."""
    return integer(name, value, 1, most=MOST_DRAWS)


def surrogates(n: object) -> int:
    """How many surrogates are drawn; 0 for "auto"."""
    if isinstance(n, str) and n == "auto":
        return 0
    return integer("n", n, 1, most=MOST_DRAWS, hint=", or 'auto'")


def share(name: str, value: object) -> float:
    """A number between 0 and 1, without these."""
    return real(name, value, "a number between 0 and 1", lambda number: 0 < number < 1)


def theta_of_fit(name: str, value: object) -> float:
    """The localisation of an S-map."""
    needed = f"a number from 0 (one global fit) to {MOST_THETA:g}, or several of them,"
    return real(name, value, needed, lambda theta: 0 <= theta <= MOST_THETA)


def stream(seed: Any) -> int:
    """``seed`` as an int from 0 to 2^63 - 1; a random one for None."""
    number = secrets.randbits(63) if seed is None else integer("seed", seed, 0, most=_MOST_SEED)
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
    target : array_like or None
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
        tell_constant(**{"lib" if target is None else "target": target_series})
    values: NDArray[np.float64] = target_series.values[:, 0].astype(np.float64)
    return values


def neighbor_search(neighbors: Any, recall: Any) -> SearchRequest:
    """The search that ``neighbors`` and ``recall`` ask for."""
    share = real("recall", recall, "a share above 0 and at most 1", lambda share: 0 < share <= 1)
    return SearchRequest(choice("neighbors", neighbors, SEARCHES), share)
