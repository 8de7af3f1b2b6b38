"""What a causal network tests and how, as the user asked for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..data.groups import Groups
from ..data.series import Series, require_rows
from ..errors import InputError, warn
from . import arguments
from .scores import pearson
from .times import remarks_on_times

SEASONS = ("remove", "keep")
_LEAST_ROWS = 30
_SMOOTH = 0.5  # lag-1 autocorrelation


@dataclass(frozen=True)
class Legs:
    """What is tested and how, checked."""

    surrogate: str | None
    n: int
    rate: float
    budget: int
    convergence: bool
    sample: int
    lags: tuple[int, ...]
    latest: int
    partial: bool
    seed: int
    period: int | None
    recurrence: float
    season: str
    draw: str


def lags_asked(lags: Any) -> tuple[int, ...]:
    """Lags that are compared."""
    if lags is None:
        return ()
    return tuple(sorted({arguments.integer("lags", lag) for lag in arguments.several("lags", lags)}))


def latest_asked(latest: Any, lags: Sequence[int], series: Series) -> int:
    """The latest lag at which a cause is believed, with lags on both sides of it."""
    limit = (0 if _smooth(series) else -1) if latest is None else arguments.integer("latest", latest)
    if lags and not min(lags) <= limit < max(lags):
        raise InputError(
            f"lags={arguments.shown(list(lags))}: lags up to latest={limit} and later ones are needed, or None"
        )
    return limit


def _smooth(series: Series) -> bool:
    """Whether half of the series have a lag-1 autocorrelation above 0.5."""
    now, before = series.values[1:].T.astype(np.float64), series.values[:-1].T.astype(np.float64)
    return float(np.median(np.nan_to_num(pearson(now, before)))) > _SMOOTH


def check_size(series: Series, groups: Groups | None, fields: dict[str, Any], lags: Sequence[int]) -> None:
    """Refuse what no network can be made of, and tell what makes one doubtful; of series as they were given."""
    if series.n_series < 2:
        raise InputError("data: there is one series; a network needs two at least")
    if series.n_steps < _LEAST_ROWS:
        raise InputError(
            f"data: there are {series.n_steps} rows, and at least {_LEAST_ROWS} are needed: states must come near each "
            "other several times before skill means anything"
        )
    if series.n_series > series.n_steps:
        warn(
            f"there are more series ({series.n_series:,}) than rows ({series.n_steps:,}). If the table is the other "
            "way round (a row for each series), transpose it"
        )
    for text in _remarks_on_times(series.time, groups):
        warn(f"data: {text}")
    highest, name = (fields["E_max"], "E_max") if fields["E"] is None else (max(fields["E"]), "E")
    for Tp in {min(lags, default=0), max(lags, default=0)}:
        require_rows(series, E=highest, tau=fields["tau"], Tp=Tp, k=1, name=name)


def _remarks_on_times(time: Any, groups: Groups | None) -> list[str]:
    """What is wrong with the times of each recording; of groups each kind once, for the first that has it."""
    if groups is None or time is None:
        return [text for _, text in remarks_on_times(time)]
    found: dict[str, list[str]] = {}
    for number, name in enumerate(groups.names.tolist()):
        for code, text in remarks_on_times(time[groups.codes == number]):
            found.setdefault(code, []).append(f"group {name}: {text}")
    return [own[0] + (f" (and so in {len(own) - 1} more groups)" if len(own) > 1 else "") for own in found.values()]
