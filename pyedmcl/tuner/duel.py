"""The last comparison: a winner must beat the defaults by more than noise, or the defaults stay."""

from __future__ import annotations

import time
from collections.abc import Mapping
from statistics import median

from .measure import Parameters
from .outcome import Backend
from .workload import Case

#: Configurations that are compared with the defaults.
FINALISTS = 3
_ROUNDS_LEAST = 3

Finalists = dict[str, Parameters]


def compare(
    backend: Backend, case: Case, finalists: Mapping[str, Parameters], rounds: int, until: float
) -> dict[str, list[float]]:
    """Figures of each, all in one process, round by round, each round beginning with another one.

    Parameters
    ----------
    backend : Backend
    case : Case
    finalists : mapping
        Name to parameters, None for the defaults.
    rounds : int
    until : float
        Moment from which no further round begins, but for the first few.

    Returns
    -------
    dict
        Name to seconds; who failed is left out.
    """
    times: dict[str, list[float]] = {name: [] for name in finalists}
    for number in range(max(rounds, _ROUNDS_LEAST)):
        if number >= _ROUNDS_LEAST and time.monotonic() > until:
            break
        names = list(times)
        first = number % max(len(names), 1)
        for name in names[first:] + names[:first]:
            reply = backend.sample(case, finalists[name], together=True)
            if reply.status == "ok":
                times[name] += reply.seconds
            else:
                del times[name]
    return times


def winner(times: Mapping[str, list[float]], default: str, margin: float) -> str | None:
    """The fastest that beats the defaults by more than the margin, and in three rounds of four at least.

    Parameters
    ----------
    times : mapping
        From :func:`compare`.
    default : str
        Which are the defaults' times.
    margin : float
        Part of the defaults' time that must be gained.
    """
    if not times.get(default):
        return None
    for name in sorted(times, key=lambda n: median(times[n]) if times[n] else float("inf")):
        ratios = sorted(mine / other for mine, other in zip(times[name], times[default], strict=False))
        if name != default and ratios and median(ratios) < 1.0 - margin and ratios[3 * len(ratios) // 4] < 1.0:
            return name
    return None
