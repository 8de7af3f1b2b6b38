"""The last comparison of a tuning: the best configurations and the defaults, in one process, round by round."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median

from .measure import Reply

_ROUNDS_LEAST = 3
#: Part of a time that is noise: so much of the defaults' time must be gained at least.
MARGIN = 0.01


def compare(
    figure: Callable[[str], Reply], names: Sequence[str], rounds: int, late: Callable[[], bool]
) -> dict[str, list[float]]:
    """Seconds of each in the same rounds, each of which begins with another one; who fails is out.

    Parameters
    ----------
    figure : callable
        Runs the configuration of a name.
    names : sequence of str
    rounds : int
    late : callable
        Whether the time is up; some rounds are run all the same.
    """
    times: dict[str, list[float]] = {name: [] for name in names}
    for number in range(max(rounds, _ROUNDS_LEAST)):
        if not times or (number >= _ROUNDS_LEAST and late()):
            break
        left = list(times)
        first = number % len(left)
        for name in left[first:] + left[:first]:
            reply = figure(name)
            if reply.status == "ok":
                times[name] += reply.seconds
            else:
                del times[name]
    return times


def winner(
    times: Mapping[str, Sequence[float]], default: str, margin: float = MARGIN, changes: Mapping[str, int] | None = None
) -> str | None:
    """The first of :func:`by_speed` that beats the defaults by more than noise, or None: the defaults stay.

    Parameters
    ----------
    times : mapping
        Name to the seconds of each round.
    default : str
        Which are the defaults' times.
    margin : float
        Part of the defaults' time that must be gained, in the median; three rounds of four must be won, too.
    changes : mapping, optional
        Name to the number of parameters that are not the defaults.
    """
    if not times.get(default):
        return None
    faster: dict[str, float] = {}
    for name in times:
        ratios = sorted(mine / other for mine, other in zip(times[name], times[default], strict=False))
        if name != default and ratios and median(ratios) < 1.0 - margin and ratios[3 * len(ratios) // 4] < 1.0:
            faster[name] = median(times[name])
    return next(iter(by_speed(faster, changes or {}, margin)), None)


def by_speed(seconds: Mapping[str, float], changes: Mapping[str, int], margin: float = MARGIN) -> list[str]:
    """Names, the fastest first; those that are as fast as the fastest one, but for noise, by how little they change.

    A parameter that makes no difference here may make one for a problem of another size, which gets the same
    parameters.

    Parameters
    ----------
    seconds : mapping
    changes : mapping
        Name to the number of parameters that are not the defaults.
    margin : float
        Part of a time that is noise.
    """
    as_fast = (1.0 + margin) * min(seconds.values(), default=0.0)
    return sorted(seconds, key=lambda name: (max(seconds[name], as_fast), changes.get(name, 0), seconds[name]))
