"""Surrogate series: what a series could have been if it knew nothing of the others."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.condition import far_exponent
from ...data.group_labels import take_groups
from ...data.groups import Groups, Layout
from ...data.regular import regular_times
from ...data.series import Series, build_series, check_embedding
from ...errors import InputError, warn
from ..shared import arguments
from .group_surrogates import grouped, parts_of, said_together
from .method_choices import AnyChoice, choices_of
from .surrogate_draws import Drawer, draw
from .surrogate_makers import Maker, adjusted, one_by_one, phases, placed, seasonal
from .twins import twin_groups, twin_path

METHODS = ("shuffle", "phase", "iaaft", "twin", "seasonal", "auto")
Doubles = NDArray[np.float64]
_LEAST = 4  # values of a series


@regular_times
def surrogate(
    x: Any,
    method: str = "phase",
    *,
    n: int = 100,
    seed: int | None = None,
    period: float | None = None,
    E: int = 2,
    tau: int = 1,
    recurrence: float = 0.1,
    groups: Any = None,
    regular: str | None = None,
) -> Doubles:
    """Surrogates of a series: random series that share some of its properties and nothing else.

    A skill that series reach as well from surrogates of a target is owed to what the surrogates kept.

    Parameters
    ----------
    x : array_like (n_steps,)
        Gaps (NaN) stay where they are; "twin" takes none. "phase" and "iaaft" draw each stretch of 30 rows or more
        without gaps by itself, and shuffle values within shorter ones.
    method : {"shuffle", "phase", "iaaft", "twin", "seasonal", "auto"}
        What is kept.

        - "shuffle": the values, in random order.
        - "phase": the power spectrum, hence the autocorrelation, with random phases (Ebisuzaki, J. Climate 10, 2147,
          1997).
        - "iaaft": the values and, nearly, the spectrum, by turns (Schreiber and Schmitz, Phys. Rev. Lett. 77, 635,
          1996).
        - "twin": the recurrences: the path goes on from any row whose recurrences are the same (Thiel et al.,
          Europhys. Lett. 75, 535, 2006).
        - "seasonal": the mean cycle of length ``period``; deviations from it are shuffled.
        - "auto": what the series itself suggests: seasons of any length, also drifting ones (in a table those that
          others share); slow change and steps of its level; how its spread changes; its values, if they are far from
          normal; and the power spectrum of what is left, or of the steps from row to row if the series wanders without
          returning to a mean. The result of a test says what was taken.
    n : int
        How many.
    seed : int, optional
        The same seed gives the same surrogates, the first of them whatever ``n``; by default a fresh one.
    period : float, optional
        Rows of a cycle, 12.42 as well as 12, for "seasonal" and "auto". If this is not given the cycle is looked
        for in the series, and for "seasonal" a warning says what was found.
    E, tau : int
        Embedding of "twin".
    recurrence : float
        Share of pairs of states that count as recurrent in "twin"; in (0, 1).
    groups : str, sequence of str, or labels (n_steps,), optional
        Recordings that stand one below the other, as for :func:`pyedmcl.simplex`: each has surrogates of its own.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows are not regular, as for :func:`pyedmcl.xmap`.

    Returns
    -------
    ndarray of float64 (n, n_steps)

    Raises
    ------
    InputError
        An argument cannot be used.

    See Also
    --------
    ccm_significance : uses these.

    Notes
    -----
    Cost: n Fourier transforms of the series ("phase"), some hundred times as many for "iaaft"; "twin" compares all
    pairs of states.

    Examples
    --------
    >>> import numpy as np
    >>> import pyedmcl
    >>> x = np.sin(np.arange(500) * 0.2)
    >>> pyedmcl.surrogate(x, "phase", n=3, seed=1).shape
    (3, 500)
    """
    x, of = take_groups(x, groups, "x")
    series = arguments.one_series(x, "x")
    count = arguments.draws("n", n)
    if of is not None:
        options = {"period": period, "E": E, "tau": tau, "recurrence": recurrence}
        return _of_groups(series, of, method, count, arguments.stream(seed), options)
    check_method(method)
    choices = choices_of([series], method, period)
    _say(method, choices)
    make = maker(
        series, method, period=period, E=E, tau=tau, recurrence=recurrence, choice=choices[0][0] if choices[0] else None
    )
    return draw(make, count, arguments.stream(seed), 0, series.n_steps)


def _of_groups(
    series: Series, groups: Groups, method: str, n: int, seed: int, options: dict[str, Any]
) -> Doubles:
    """Surrogates (n, n_steps) of each group by itself; a group of its own is series number 0, 1, ... of the seed."""
    groups.require(series.n_steps, "x")
    check_method(method)
    parts = [
        build_series(series.values[groups.codes == number, 0], series.names) for number in range(len(groups.names))
    ]
    choices = choices_of(parts, method, options["period"])
    _say(method, choices)
    makers = [
        maker(part, method, what=f"x, group {name}", choice=own[0] if own else None, **options)
        for part, name, own in zip(parts, groups.names.tolist(), choices, strict=True)
    ]
    return draw(grouped(groups.codes, makers), n, seed, 0, series.n_steps)


def _say(method: str, found: tuple[tuple[AnyChoice, ...], ...]) -> None:
    """Warn of the cycle that was looked for, and of gaps, since nothing but numbers is returned."""
    if method != "auto" and found[0]:
        text = f"a surrogate {said_together([own[0].reason for own in found])}"
        warn(f"period=None: {text}; period= names another" if method == "seasonal" else text)


def check_method(method: Any, name: str = "method") -> str:
    """``method`` if it is one."""
    return arguments.choice(name, method, METHODS)


def maker(
    series: Series, method: str, *, period: float | None = None, E: int = 2, tau: int = 1, recurrence: float = 0.1,
    what: str = "x", name: str = "method", choice: AnyChoice | None = None,
) -> Maker:  # fmt: skip
    """What makes surrogates of a single series from random streams; see :func:`surrogate`.

    ``what`` and ``name`` are what messages call the data and the method; ``choice`` is what :func:`choices_of`
    finds, if that is known.
    """
    check_method(method, name)
    E, tau = check_embedding(E, tau)
    recurrence = arguments.real("recurrence", recurrence, "a number between 0 and 1", lambda share: 0 < share < 1)
    if period is not None:
        arguments.real("period", period, "a number of rows, at least 2", lambda rows: rows >= 2)
    values = series.values[:, 0].astype(np.float64)
    exponent = far_exponent(values)
    if exponent:  # sums and spectra are those of numbers near 1
        near_one = build_series(np.ldexp(values, -exponent), series.names)
        make = maker(
            near_one, method, period=period, E=E, tau=tau, recurrence=recurrence, what=what, name=name, choice=choice
        )
        return lambda streams: np.ldexp(make(streams), exponent)
    present = np.isfinite(values)
    if not present.all() and method == "twin":
        raise InputError(
            f"{what}: {name}={method!r}: series {series.names[0]!r} has a gap in row {int(np.argmin(present))}; fill "
            "gaps first, or take another kind, such as 'auto'"
        )
    if present.sum() < _LEAST:
        raise InputError(
            f"{what}: series {series.names[0]!r} has {int(present.sum())} values; surrogates need at least {_LEAST}"
        )
    if method == "shuffle":
        return one_by_one(lambda rng: placed(rng.permutation(values[present]), present))
    if method == "phase" and present.all():
        return phases(values)
    if method == "iaaft" and present.all():
        return adjusted(values)
    if method == "seasonal" and period is not None:
        return seasonal(values, present, period)
    if method != "twin":
        return (choice or choices_of([series], method, period)[0][0]).maker(values)
    if len(values) < (E - 1) * tau + _LEAST:
        raise InputError(
            f"{what}: E={E}, tau={tau} needs at least {(E - 1) * tau + _LEAST} rows, there are {len(values)}"
        )
    group = twin_groups(values, E, tau, float(recurrence))
    return one_by_one(lambda rng: values[(E - 1) * tau :][twin_path(group, len(values), rng)])


@dataclass(frozen=True, eq=False)
class SeriesMakers:
    """What makes surrogates of each series of a table: found once, and shared by all rounds of a job.

    Attributes
    ----------
    series : Series
    method : str
    tau : int
    period, recurrence
        As for :func:`surrogate`.
    known : tuple of tuple, optional
        What :func:`choices_of` finds for each series of each group, where that is known.
    layout : Layout, optional
        How groups lie among the rows; a single one by default.
    what : str
        How messages call the data.
    """

    series: Series
    method: str
    tau: int
    period: Any
    recurrence: Any
    known: tuple[tuple[AnyChoice, ...], ...] | None = None
    layout: Layout | None = None
    what: str = "data"

    @cached_property
    def choices(self) -> tuple[tuple[AnyChoice, ...], ...]:
        """What is taken for each series of each group; nothing where the method says it all."""
        if self.known is not None:
            return self.known
        return choices_of([part for _, part in self._parts], self.method, self.period)

    @property
    def reasons(self) -> tuple[str, ...]:
        """What is taken for each series, and why, in words; nothing where the method says it all."""
        return tuple(said_together([choice.reason for choice in own]) for own in zip(*self.choices, strict=True))

    def of(self, number: int, E: int) -> Maker:
        """That of a series, of which "twin" embeds E values."""
        if (number, E) not in self._made:
            makers = [
                self._of_part(what, part, number, E, own[number] if own else None)
                for (what, part), own in zip(self._parts, self.choices, strict=True)
            ]
            self._made[number, E] = makers[0] if self.layout is None else grouped(self.layout.code, makers)
        return self._made[number, E]

    def _of_part(self, what: str, part: Series, number: int, E: int, choice: AnyChoice | None) -> Maker:
        values = part.values[:, number].astype(np.float64)
        present = np.isfinite(values)
        if self.layout is not None and present.sum() < _LEAST:  # such a group holds a state or two, if any
            return one_by_one(lambda rng: placed(rng.permutation(values[present]), present))
        return maker(
            part.part(number), self.method, period=self.period, E=E, tau=self.tau,
            recurrence=self.recurrence, what=what, name="surrogate", choice=choice,
        )  # fmt: skip

    @cached_property
    def drawer(self) -> Drawer:
        """What draws the surrogates."""
        return Drawer()

    @cached_property
    def _parts(self) -> list[tuple[str, Series]]:
        """The rows of each group, and how messages call them."""
        return parts_of(self.series, self.layout, self.what)

    @cached_property
    def _made(self) -> dict[tuple[int, int], Maker]:
        return {}

    def __reduce__(self) -> tuple[Any, ...]:  # what was made stays here; what "auto" takes goes along
        return SeriesMakers, (
            self.series, self.method, self.tau, self.period, self.recurrence, self.choices, self.layout,
            self.what,
        )  # fmt: skip
