"""Partial cross mapping: what is left of a cross-map skill without what passes through other series.

Leng et al., Nat. Commun. 11, 2632 (2020). If x drives y through z alone, then what the states of y know of x they know
of z, too: x is estimated from the states of y, z likewise, and x again from the states of that estimate of z. The
partial correlation of x and its first estimate, given the second, is what does not pass through z.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...jobs.blocks import Record
from ...jobs.runner import Runner
from ..maps.pair_predictions_problem import PairOptions, predict_pairs
from ..shared.scores import pearson
from ..shared.states import standardised

Doubles = NDArray[np.float64]


@dataclass(frozen=True)
class PartialLink:
    """A possible cause of an effect, and what it may pass through; series by their numbers.

    Attributes
    ----------
    cause, effect : int
    given : tuple of int
    Tp : int
        Steps from the states of the effect to the cause.
    Tp_given : tuple of int
        Steps from the states of the effect to each of ``given``.
    Tp_through : tuple of int
        Steps from the states of each of ``given`` to the cause.
    """

    cause: int
    effect: int
    given: tuple[int, ...]
    Tp: int = 0
    Tp_given: tuple[int, ...] = ()
    Tp_through: tuple[int, ...] = ()

    @property
    def steps(self) -> list[tuple[int, int, int]]:
        """(given, Tp_given, Tp_through) of each series that is given."""
        none = (0,) * len(self.given)
        return list(zip(self.given, self.Tp_given or none, self.Tp_through or none, strict=True))


@dataclass(frozen=True)
class PartialSkill:
    """Skills of links and their targets, each (n_links, n_targets); the first target is the cause itself.

    Attributes
    ----------
    rho : ndarray
        Correlation of the cause and its estimate from the effect.
    partial : ndarray
        The same, given the estimates through all of ``given``.
    through : list of ndarray (n_targets, n_given)
        Of each link: correlation of the cause and its estimate through each of ``given``.
    """

    rho: Doubles
    partial: Doubles
    through: list[Doubles]


@dataclass(frozen=True)
class LinkedSeries:
    """Series between which links are, and how their states are made.

    Attributes
    ----------
    values : ndarray (n_steps, n_series)
        NaN for gaps.
    E : ndarray of int (n_series,)
        Dimension of the states of each series.
    options : PairOptions
    there : ndarray of bool (n_steps,), optional
        Rows of the data, where groups have gaps between them: no estimate stands elsewhere, so that no state of an
        estimate reaches over a gap.
    """

    values: NDArray[Any]
    E: NDArray[np.int_]
    options: PairOptions
    there: NDArray[np.bool_] | None = None


def partial_skill(
    runner: Runner, series: LinkedSeries, links: Sequence[PartialLink], surrogates: dict[int, Doubles]
) -> tuple[PartialSkill, Record]:
    """Partial cross mapping of some links.

    Parameters
    ----------
    runner : Runner
    series : LinkedSeries
    links : sequence of PartialLink
    surrogates : dict
        Of causes: surrogates (n, n_steps), as many of each, which take the place of the cause; may be empty.
    """
    values, E = series.values, series.E
    targets, columns_of = _with_surrogates(values, surrogates)
    first = _Pairs()
    direct, between = [], []
    for link in links:
        dim = int(E[link.effect])
        direct.append([first.add(link.effect, column, dim, link.Tp) for column in columns_of(link.cause)])
        between.append([first.add(link.effect, z, dim, Tp) for z, Tp, _ in link.steps])
    estimates, record = predict_pairs(runner, values, targets, first.array(), series.options)
    if series.there is not None:
        estimates[:, ~series.there] = np.nan
    used = sorted({place for places in between for place in places})
    through = _Pairs()
    via = [
        [
            [through.add(used.index(place), column, int(E[z]), Tp) for column in columns_of(link.cause)]
            for place, (z, _, Tp) in zip(places, link.steps, strict=True)
        ]
        for link, places in zip(links, between, strict=True)
    ]
    indirect, new_record = (
        predict_pairs(runner, np.ascontiguousarray(estimates[used].T), targets, through.array(), series.options)
        if used else (np.empty((0, len(values))), Record())
    )  # fmt: skip
    rho, partial = np.full((2, len(links), 1 + len(next(iter(surrogates.values()), ()))), np.nan)
    skills: list[Doubles] = []
    for number, link in enumerate(links):
        skills.append(np.full((rho.shape[1], len(link.given)), np.nan))
        for t, column in enumerate(columns_of(link.cause)):
            target_values, estimate = targets[:, column], estimates[direct[number][t]]
            indirect_estimates = [indirect[places[t]] for places in via[number]]
            rho[number, t] = pearson(estimate, target_values)
            partial[number, t] = partial_correlation(target_values, estimate, indirect_estimates)
            skills[number][t] = [pearson(other, target_values) for other in indirect_estimates]
    return PartialSkill(rho, partial, skills), record.joined(new_record)


class _Pairs:
    """Pairs to be predicted, each once."""

    def __init__(self) -> None:
        self._place: dict[tuple[int, int, int, int], int] = {}

    def add(self, library: int, target: int, E: int, Tp: int) -> int:
        """The row of a pair."""
        return self._place.setdefault((library, target, E, Tp), len(self._place))

    def array(self) -> NDArray[np.int_]:
        return np.array(list(self._place), int).reshape(-1, 4)


def _with_surrogates(values: NDArray[Any], surrogates: dict[int, Doubles]) -> tuple[NDArray[Any], Any]:
    """Series and surrogates as columns, and a function from a cause to its columns, its own first."""
    begin, place = values.shape[1], {}
    for cause, drawn in surrogates.items():
        place[cause] = range(begin, begin + len(drawn))
        begin += len(drawn)
    together = np.concatenate([values.astype(np.float64), *(drawn.T for drawn in surrogates.values())], axis=1)
    return together, lambda cause: [cause, *place.get(cause, ())]


def partial_correlation(a: Doubles, b: Doubles, given: Sequence[Doubles]) -> float:
    """Pearson's correlation of what linear fits of ``given`` leave of a and of b, over rows where all have a value.

    NaN with fewer than 3 rows more than there are ``given``, or where nothing is left.
    """
    present = np.isfinite(a) & np.isfinite(b)
    for one in given:
        present &= np.isfinite(one)
    if present.sum() < 3 + len(given):
        return float("nan")
    regressors = np.column_stack([np.ones(int(present.sum())), *(standardised(one[present]) for one in given)])
    pair = np.column_stack([standardised(a[present]), standardised(b[present])])
    fit, *_ = np.linalg.lstsq(regressors, pair, rcond=None)
    left = pair - regressors @ fit
    if (left.std(axis=0) < 1e-6).any():
        return float("nan")
    return float(pearson(left[:, 0], left[:, 1]))
