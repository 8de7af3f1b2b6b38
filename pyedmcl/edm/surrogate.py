"""Surrogate series: what a series could have been if it knew nothing of the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.condition import far_exponent
from ..data.series import Series, build_series, check_embedding
from ..errors import InputError
from . import arguments
from .twins import twin_groups, twin_path

METHODS = ("shuffle", "phase", "iaaft", "twin", "seasonal")
Doubles = NDArray[np.float64]
Maker = Callable[[np.random.Generator], Doubles]
_MOST_ROUNDS = 1000


def surrogate(
    x: Any,
    method: str = "phase",
    *,
    n: int = 100,
    seed: int | None = None,
    period: int | None = None,
    E: int = 2,
    tau: int = 1,
    recurrence: float = 0.1,
) -> Doubles:
    """Surrogates of a series: random series that share some of its properties and nothing else.

    A skill that series reach as well from surrogates of a target is owed to what the surrogates kept.

    Parameters
    ----------
    x : array_like (n_steps,)
        Finite; "shuffle" and "seasonal" also take gaps (NaN), which stay where they are.
    method : {"shuffle", "phase", "iaaft", "twin", "seasonal"}
        What is kept.

        - "shuffle": the values, in random order.
        - "phase": the power spectrum, hence the autocorrelation, with random phases (Ebisuzaki, J. Climate 10, 2147,
          1997).
        - "iaaft": the values and, nearly, the spectrum, by turns (Schreiber and Schmitz, Phys. Rev. Lett. 77, 635,
          1996).
        - "twin": the recurrences: the path goes on from any row whose recurrences are the same (Thiel et al.,
          Europhys. Lett. 75, 535, 2006).
        - "seasonal": the mean cycle of length ``period``; deviations from it are shuffled.
    n : int
        How many.
    seed : int, optional
        The same seed gives the same surrogates, the first of them whatever ``n``; by default a fresh one.
    period : int, optional
        Steps of a cycle, for "seasonal".
    E, tau : int
        Embedding of "twin".
    recurrence : float
        Share of pairs of states that count as recurrent in "twin"; in (0, 1).

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
    series = arguments.one_series(x, "x")
    count = arguments.draws("n", n)
    make = maker(series, method, period=period, E=E, tau=tau, recurrence=recurrence)
    return draw(make, count, arguments.stream(seed), 0, series.n_steps)


def draw(make: Maker, n: int, seed: int, number: int, n_steps: int) -> Doubles:
    """n surrogates (n, n_steps) of series ``number``, each from a random stream of its own."""
    out = arguments.room("n", (n, n_steps))
    for i in range(n):
        sequence = np.random.SeedSequence(entropy=seed, spawn_key=(number, i))
        out[i] = make(np.random.Generator(np.random.Philox(sequence)))
    return out


def check_method(method: Any, name: str = "method") -> str:
    """``method`` if it is one."""
    return arguments.choice(name, method, METHODS)


def maker(
    series: Series, method: str, *, period: int | None = None, E: int = 2, tau: int = 1, recurrence: float = 0.1,
    what: str = "x", name: str = "method",
) -> Maker:  # fmt: skip
    """What makes a surrogate of a single series from a random generator; see :func:`surrogate`.

    ``what`` and ``name`` are what messages call the data and the method.
    """
    check_method(method, name)
    E, tau = check_embedding(E, tau)
    recurrence = arguments.real("recurrence", recurrence, "a number between 0 and 1", lambda share: 0 < share < 1)
    if period is not None:
        arguments.integer("period", period, 2)
    values = series.values[:, 0].astype(np.float64)
    exponent = far_exponent(values)
    if exponent:  # sums and spectra are those of numbers near 1
        near_one = build_series(np.ldexp(values, -exponent), series.names)
        make = maker(near_one, method, period=period, E=E, tau=tau, recurrence=recurrence, what=what, name=name)
        return lambda rng: np.ldexp(make(rng), exponent)
    there = np.isfinite(values)
    if not there.all() and method not in ("shuffle", "seasonal"):
        raise InputError(
            f"{what}: {name}={method!r}: series {series.names[0]!r} has a gap in row {int(np.argmin(there))}; fill "
            "gaps first, or take 'shuffle' or 'seasonal'"
        )
    least = 4
    if there.sum() < least:
        raise InputError(
            f"{what}: series {series.names[0]!r} has {int(there.sum())} values; surrogates need at least {least}"
        )
    if method == "shuffle":
        return lambda rng: _placed(rng.permutation(values[there]), there)
    if method == "phase":
        return _phases(values)
    if method == "iaaft":
        return _adjusted(values)
    if method == "seasonal":
        return _seasonal(values, there, period)
    if len(values) < (E - 1) * tau + least:
        raise InputError(
            f"{what}: E={E}, tau={tau} needs at least {(E - 1) * tau + least} rows, there are {len(values)}"
        )
    group = twin_groups(values, E, tau, float(recurrence))
    return lambda rng: values[(E - 1) * tau :][twin_path(group, len(values), rng)]


def _placed(values: Doubles, there: NDArray[np.bool_]) -> Doubles:
    out = np.full(len(there), np.nan)
    out[there] = values
    return out


def _phases(values: Doubles) -> Maker:
    n, mean = len(values), values.mean()
    spectrum = np.abs(np.fft.rfft(values - mean))

    def make(rng: np.random.Generator) -> Doubles:
        turned = spectrum * np.exp(2j * np.pi * rng.random(len(spectrum)))
        turned[0] = 0.0
        if n % 2 == 0:  # the highest frequency is real: its variance is kept on average
            turned[-1] = np.sqrt(2.0) * turned[-1].real
        out: Doubles = np.fft.irfft(turned, n) + mean
        return out

    return make


def _adjusted(values: Doubles) -> Maker:
    ordered, spectrum = np.sort(values), np.abs(np.fft.rfft(values))

    def make(rng: np.random.Generator) -> Doubles:
        out = rng.permutation(values)
        before = np.empty(0, np.intp)
        for _ in range(_MOST_ROUNDS):
            turned = np.fft.rfft(out)
            size = np.abs(turned)
            turned = np.where(size > 0, turned / np.where(size > 0, size, 1.0), 1.0) * spectrum
            order = np.argsort(np.fft.irfft(turned, len(values)), kind="stable")
            out = np.empty_like(values)
            out[order] = ordered
            if np.array_equal(order, before):
                break
            before = order
        return out

    return make


def _seasonal(values: Doubles, there: NDArray[np.bool_], period: int | None) -> Maker:
    if period is None:
        raise InputError("period=None: 'seasonal' needs the steps of a cycle, such as 12 for months")
    length = arguments.integer("period", period, 2)
    if length * 2 > len(values):
        raise InputError(f"period={period!r}: two cycles are needed at least, and there are {len(values)} rows")
    phase = np.arange(len(values)) % length
    counts = np.bincount(phase[there], minlength=length)
    cycle = np.bincount(phase[there], values[there], length) / np.maximum(counts, 1)
    rest = values[there] - cycle[phase[there]]
    return lambda rng: _placed(cycle[phase[there]] + rng.permutation(rest), there)
