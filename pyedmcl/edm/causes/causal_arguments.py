"""What a causal network tests and how, as the user asked for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.condition import near_one
from ...data.groups import Groups
from ...data.series import Series, require_rows
from ...errors import InputError, warn
from ..shared import arguments
from ..shared.scores import pearson
from ..surrogates.surrogate_choice import bridged, line
from ..table_remarks import remarks_on_size, remarks_on_table

SEASONS = ("remove", "keep")
_LEAST_ROWS = 30
_SMOOTH = 0.5  # lag-1 autocorrelation
_FORGOTTEN, _LONGEST_MEMORY = np.exp(-1), 100


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
    forecast: bool
    partial_surrogates: int
    seed: int
    period: float | None
    recurrence: float
    season: str
    draw: str


def lags_asked(lags: Any) -> tuple[int, ...]:
    """Lags that are compared."""
    if lags is None:
        return ()
    return tuple(sorted({arguments.integer("lags", lag) for lag in arguments.several("lags", lags)}))


def latest_asked(latest: Any, lags: Sequence[int], memory: int) -> int:
    """The latest lag at which a cause is believed, with lags on both sides of it.

    Where lags end at 0, none is later than the 0 of smooth series, and -1 is taken as elsewhere.
    """
    limit = (0 if memory else -1) if latest is None else arguments.integer("latest", latest)
    if latest is None and lags and limit == 0 and max(lags) == 0 > min(lags):
        limit = -1
        warn(
            "the series are smooth, for which latest=0 is the default, but lags end at 0 and none is later: latest=-1 "
            "is taken. Lags up to 1 or more keep a cause within the same row"
        )
    if lags and not min(lags) <= limit < max(lags):
        raise InputError(
            f"lags={arguments.shown(list(lags))}: lags up to latest={limit} and later ones are needed"
        )
    return limit


def partial_surrogates_asked(n: Any, surrogate: str | None, partial: bool) -> int:
    """Surrogates of a link for the test of what is left without another series; 0 for no test."""
    if n is None:
        return 0
    count = arguments.draws("partial_surrogates", n)
    if surrogate is None or not partial:
        off = "surrogate=None" if surrogate is None else "partial=False"
        raise InputError(f"partial_surrogates={count}: with {off} there is nothing that they could test; leave it out")
    return count


def radius_asked(radius: Any) -> int | None:
    """The exclusion radius; None for "auto"."""
    if isinstance(radius, str) and radius == "auto":
        return None
    if isinstance(radius, str):
        raise InputError(f"exclusion_radius={arguments.shown(radius)}: 'auto' or an integer of at least 0 is needed")
    return arguments.exclusion(radius)


def longest_memory(series: Series, groups: Groups | None) -> int:
    """The most that :func:`memory_of` finds: a tenth of the rows, of the longest group, and 100."""
    rows = series.n_steps if groups is None else int(groups.sizes.max())
    return max(min(rows // 10, _LONGEST_MEMORY), 1)


def memory_of(parts: Sequence[Series], longest: int) -> int:
    """Rows after which smooth series have forgotten their values; 0 where a table is not smooth.

    A table is smooth if the median of its series' autocorrelations at lag 1 is above 0.5, straight lines apart. It has
    forgotten at the first lag at which that median is below 1 / e.

    Parameters
    ----------
    parts : sequence of Series
        The rows of each group; all rows where there are no groups. A group counts for lags up to a tenth of its rows.
    longest : int
        The longest memory that is looked for.
    """
    left = [_without_line(part) for part in parts]
    for lag in range(1, longest + 1):
        long_enough = [values for values in left if lag <= max(values.shape[1] // 10, 1)]
        correlations = [pearson(values[:, lag:], values[:, :-lag]) for values in long_enough]
        alike = float(np.median(np.nan_to_num(np.concatenate(correlations))))
        if lag == 1 and alike <= _SMOOTH:
            return 0
        if alike < _FORGOTTEN:
            return lag
    return longest


def _without_line(series: Series) -> NDArray[np.float64]:
    """Values (n_series, n_steps) near 1 less a straight line each; gaps stay gaps."""
    columns = [near_one(column.astype(np.float64))[0] for column in series.values.T]
    return np.stack([column - line(bridged(column), np.isfinite(column)) for column in columns])


def check_size(series: Series, fields: dict[str, Any], lags: Sequence[int]) -> None:
    """Refuse what no network can be made of, and tell what makes one doubtful; of series as they were given."""
    if series.n_series < 2:
        raise InputError("data: there is one series; a network needs two at least")
    if series.n_steps < _LEAST_ROWS:
        raise InputError(
            f"data: there are {series.n_steps} rows, and at least {_LEAST_ROWS} are needed: states must come near each "
            "other several times before skill means anything"
        )
    for remark in remarks_on_size(series, 1):
        warn(remark.text.partition("; take")[0])
    for remark in remarks_on_table(series):
        warn(str(remark))
    highest, name = (fields["E_max"], "E_max") if fields["E"] is None else (max(fields["E"]), "E")
    for Tp in {min(lags, default=0), max(lags, default=0)}:
        require_rows(series, E=highest, tau=fields["tau"], Tp=Tp, k=1, name=name)
