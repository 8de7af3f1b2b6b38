"""kEDM's functions: simplex projection, S-map and cross mapping with its arguments, random sub-libraries and returns.
"""

from __future__ import annotations

import operator
import secrets
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arguments import LARGEST, real, room
from ...crossmap.xmap import xmap as cross_map
from ...device.select import open_device
from ...embedding.dimension import embed_dimension
from ...engines.ccm import CcmPair, SampledSkill
from ...engines.smap import LocalFits
from ...errors import InputError, shown
from ...forecast.simplex import Projection, laid_out
from ...functions import MOST_NEIGHBOURS
from ...reference.edm import nearest_first
from ...search.searches import ExhaustiveSearcher
from ...series.arrays import to_array
from ...series.reading import tell_of_numbers
from ...states.arguments import draws, pearson, theta_of_fit
from ...states.states import delay_states, embed, future

# What takes the place of Kokkos.


def get_kokkos_config() -> str:
    """What computes here: a text of several lines.

    Returns
    -------
    str
        There is no Kokkos; the lines name the OpenCL device and its runtime.
    """
    info = open_device(None).info
    return (
        "pyedmcl (OpenCL; no Kokkos)\n"
        f"  Device: {info.name}\n"
        f"  Platform: {info.platform}\n"
        f"  Driver: {info.driver}\n"
        f"  Compute units: {info.compute_units}\n"
    )


# kEDM's arguments, checked: each error begins with the words that kEDM has for it.


Floats = NDArray[np.float32]


def numbers(value: Any, name: str, function: str) -> Floats:
    """An array in single precision, which is what kEDM takes.

    Raises
    ------
    InputError
        It is none, or holds infinite values.
    """
    given = to_array(value, f"{function}: {name}")
    try:
        if np.iscomplexobj(given):
            raise TypeError("complex numbers")
        array = given.astype(np.float32)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{function}: {name} is no array of real numbers ({error})") from None
    if np.isinf(array).any():
        where = np.argwhere(np.isinf(array))[0].tolist()
        raise InputError(f"{function}: {name} is infinite at {where}; finite values, or NaN for gaps, are needed")
    if array.ndim in (1, 2):
        columns = np.atleast_2d(given.T)
        tell_of_numbers(columns.astype(np.float64), columns, [f"{function}: {name}"] * len(columns))
    return array


def whole(value: Any, name: str, function: str) -> int:
    """An integer of at most 62 bits, which no later step has to fear."""
    try:
        number = operator.index(value)
    except TypeError:
        raise InputError(f"{function}: {name}={shown(value)}; an integer is needed") from None
    if abs(number) > LARGEST:
        raise InputError(f"{function}: {name}={shown(value)}; an integer between -2^62 and 2^62 is needed")
    return number


def whole_numbers(value: Any, name: str, function: str) -> list[int]:
    """A sequence of integers."""
    try:
        items = list(value)
    except TypeError:
        raise InputError(f"{function}: {name}={shown(value)}; a sequence of integers is needed") from None
    return [whole(one, f"{name}[{i}]", function) for i, one in enumerate(items)]


def embedding(E: Any, tau: Any, Tp: Any, function: str) -> tuple[int, int, int]:
    """E and tau above zero, Tp not below."""
    E, tau, Tp = whole(E, "E", function), whole(tau, "tau", function), whole(Tp, "Tp", function)
    if E < 1:
        raise InputError(f"E must be greater than zero: {function} got E={E}")
    if tau < 1:
        raise InputError(f"tau must be greater than zero: {function} got tau={tau}")
    if Tp < 0:
        raise InputError(f"Tp must be greater or equal to zero: {function} got Tp={Tp}")
    if E >= MOST_NEIGHBOURS:
        raise InputError(f"{function}: E={E}; at most {MOST_NEIGHBOURS - 1:,} is supported")
    return E, tau, Tp


def check_rows(n_lib: int, n_pred: int, E: int, tau: int, Tp: int, least: int) -> None:
    """Enough steps for ``least`` library rows with a target and for one prediction."""
    reach = (E - 1) * tau
    if n_lib - reach - Tp < least:
        raise InputError(
            f"lib size is too small: E={E}, tau={tau} and Tp={Tp} need at least {reach + Tp + least} steps, there are "
            f"{n_lib}"
        )
    if n_pred <= reach:
        raise InputError(
            f"pred size is too small: E={E} and tau={tau} need at least {reach + 1} steps, there are {n_pred}"
        )


# The random sub-libraries that kEDM draws for a seed.
#
# The generator is PCG-XSH-RR 64/32 with its default stream (M. E. O'Neill, PCG: A Family of Simple Fast Space-Efficient
# Statistically Good Algorithms for Random Number Generation, HMC-CS-2014-0905, 2014); the sampling without replacement
# is Floyd's (Bentley and Floyd, Commun. ACM 30, 754, 1987), with a bound that is one lower than his.


_MULTIPLIER, _INCREMENT = 6364136223846793005, 1442695040888963407
_WORD = (1 << 64) - 1
_CELLS = 1 << 22


class Generator:
    """The 32-bit numbers of one seed; 0 stands for a fresh one."""

    def __init__(self, seed: int) -> None:
        start = seed & _WORD if seed else secrets.randbits(64)
        self._state = ((start + _INCREMENT) * _MULTIPLIER + _INCREMENT) & _WORD
        self._ready = np.empty(0, np.uint32)

    def _more(self, n: int) -> None:
        """Have n numbers ready: the states of a run follow from those of its first half at once."""
        states = np.array([self._state], np.uint64)
        factor, term = _MULTIPLIER, _INCREMENT
        while len(states) < n:
            states = np.concatenate([states, states * np.uint64(factor) + np.uint64(term)])
            factor, term = factor * factor & _WORD, (factor + 1) * term & _WORD
        self._state = (int(states[-1]) * _MULTIPLIER + _INCREMENT) & _WORD
        mixed = (((states >> np.uint64(18)) ^ states) >> np.uint64(27)).astype(np.uint32)
        turn = (states >> np.uint64(59)).astype(np.uint32)
        back = (np.uint32(32) - turn) & np.uint32(31)
        self._ready = np.concatenate([self._ready, (mixed >> turn) | (mixed << back)])

    def below(self, bounds: NDArray[np.int64]) -> NDArray[np.int64]:
        """One number from 0 to less than each bound, without bias: too small ones of a round are passed over."""
        out = np.empty(len(bounds), np.int64)
        place = 0
        while place < len(bounds):
            left = bounds[place:].astype(np.uint32)
            if len(self._ready) < len(left):
                self._more(len(left) - len(self._ready))
            words = self._ready[: len(left)]
            refused = np.flatnonzero(words < (np.uint32(0) - left) % left)  # 2^32 modulo the bound
            taken = int(refused[0]) if len(refused) else len(left)
            out[place : place + taken] = words[:taken] % left[:taken]
            self._ready = self._ready[taken + (1 if len(refused) else 0) :]
            place += taken
        return out

    def samples(self, n: int, size: int, count: int) -> NDArray[np.bool_]:
        """Which of n are in each of some sub-libraries of ``size`` (count, n); all if there are not more.

        One by one, each number drawn is taken, or, if it is a member already, the largest that could have been drawn
        plus one. So it is a member if it was drawn before, or if it has taken the place of such a one.
        """
        if size >= n:
            return np.ones((count, n), bool)
        mask = np.zeros((count, n), bool)
        at_once = max(_CELLS // size, 1)
        for begin in range(0, count, at_once):
            part = mask[begin : begin + at_once]
            steps = np.arange(len(part) * size)
            first = n - size
            drawn = self.below(first + steps % size)
            sample = steps // size
            member = drawn + sample * n
            earliest = np.empty(part.size, np.int64)
            earliest[member[::-1]] = steps[::-1]  # of equal indices the last assignment holds
            again = earliest[member] != steps
            stood_in = np.flatnonzero(drawn >= first)  # numbers that may have taken a place: whose, and
            whose = drawn[stood_in] - first + sample[stood_in] * size
            while True:
                also = again[whose] & ~again[stood_in]
                if not also.any():
                    break
                again[stood_in[also]] = True
            part.reshape(-1)[np.where(again, first + steps % size + sample * n, member)] = True
        return mask


# Neighbours as kEDM has them: rows at distance zero are the row itself where library and prediction differ.


Doubles = NDArray[np.float64]
Rows = NDArray[np.int64]
_NEAREST_CELLS = 1 << 20
_FEW = 2  # neighbours beyond those asked for: most rows have one twin at most


def same(lib: Floats, pred: Floats) -> bool:
    """Whether both are the same series, so that a row is its own neighbour."""
    return lib is pred or (lib.shape == pred.shape and np.array_equal(lib, pred, equal_nan=True))


def nearest(
    lib: Floats, pred: Floats, target_values: Doubles, E: int, tau: int, Tp: int, own: bool
) -> tuple[Rows, Doubles]:
    """The E + 1 nearest library rows of each embedded row of ``pred``.

    Parameters
    ----------
    lib, pred : ndarray (n, columns), (m, columns)
    target_values : ndarray (n,)
        What is predicted; rows that lead to a gap are no neighbours.
    E, tau, Tp : int
    own : bool
        Whether both are one series: then each row is left out of its own neighbours; else those at distance zero are.

    Returns
    -------
    rows, distances : ndarray (m - (E-1) tau, E + 1)
        Infinite distances where there are fewer.
    """
    k, first = E + 1, (E - 1) * tau
    has_target = np.zeros(len(lib), bool)
    has_target[: len(lib) - Tp] = np.isfinite(target_values[Tp : len(lib)])
    enough = min(k if own else k + _FEW, MOST_NEIGHBOURS)
    problem = Projection(
        library=lib, query=lib if own else pred, target_values=target_values, lags=E, tau=tau, Tp=Tp, k=enough,
        exclusion_radius=0 if own else -1, library_mask=None, rows=np.empty(0, np.int64), observed=np.empty(0),
    )  # fmt: skip
    rows, distance = _search(problem, has_target)
    rows, distance = rows[first:], distance[first:]
    if own:
        return rows, distance
    states, query_states = embed(lib.astype(np.float64), E, tau), embed(pred.astype(np.float64), E, tau)[first:]
    near = np.argwhere(distance == 0)
    if len(near):
        apart = np.abs(states[rows[near[:, 0], near[:, 1]]] - query_states[near[:, 0]]).max(axis=1)
        distance[near[:, 0], near[:, 1]] = np.where(apart > 0, np.finfo(np.float32).tiny, np.inf)
    order = nearest_first(distance)
    short = np.isinf(distance).sum(axis=1) > _FEW  # more twins than were allowed for, or few rows at all
    rows, distance = np.take_along_axis(rows, order, 1)[:, :k], np.take_along_axis(distance, order, 1)[:, :k]
    library_rows = np.flatnonzero(has_target & np.isfinite(states).all(axis=1))
    _on_host(states, query_states, library_rows, np.flatnonzero(short), rows, distance)
    return rows, distance


def _search(problem: Projection, known: NDArray[np.bool_]) -> tuple[Rows, Doubles]:
    executor = open_device(None)
    search, library, query = laid_out(problem, "float32")
    searcher = ExhaustiveSearcher(executor, search, "neighbours")
    try:
        mask = None if known[: len(known) - problem.Tp].all() else known
        tables = next(searcher.tables(searcher.load_layouts(library, query), mask))
        rows_of, squared = tables.read(executor, search.dims[0], 1)
    finally:
        searcher.release()
    rows = rows_of[0].astype(np.int64)
    distance = np.where(rows >= 0, np.sqrt(squared[0].astype(np.float64)), np.inf)
    return np.maximum(rows, 0), distance


def _on_host(states: Doubles, asked: Doubles, library_rows: Rows, which: Rows, rows: Rows, distance: Doubles) -> None:
    """Order the whole library for some of the rows asked for."""
    k = rows.shape[1]
    step = max(_NEAREST_CELLS // (len(library_rows) * states.shape[1] + 1), 1)
    for a in range(0, len(which), step):
        queries = which[a : a + step]
        far = np.sqrt(((asked[queries][:, None] - states[library_rows]) ** 2).sum(axis=2))
        far[~(far > 0)] = np.inf
        order = nearest_first(far, k)
        rows[queries, : order.shape[1]] = library_rows[order]
        distance[queries] = np.inf
        distance[queries, : order.shape[1]] = np.take_along_axis(far, order, 1)


# Simplex projection with kEDM's arguments and returns.


_FLOOR = 1e-6  # of the weights


def simplex(lib: Any, pred: Any, *, target: Any = None, E: int = 1, tau: int = 1, Tp: int = 1) -> Floats:
    """Predict a series from another by nearest neighbours.

    Parameters
    ----------
    lib, pred : array_like (n,) and (m,), or (n, columns) and (m, columns)
        Library and prediction series; of several columns each is embedded.
    target : array_like (n,), optional
        What is predicted; ``lib`` by default, needed where that has several columns.
    E, tau, Tp : int
        Embedding dimension and lag of at least 1; steps ahead of at least 0.

    Returns
    -------
    ndarray (m - (E-1) tau,) of float32
        The value Tp steps after each embedded row of ``pred``.

    Raises
    ------
    InputError
        An argument cannot be used.
    """
    library, query = numbers(lib, "lib", "simplex"), numbers(pred, "pred", "simplex")
    if library.ndim != query.ndim:
        raise InputError(
            f"lib and pred must have same dimensionality: simplex got shapes {library.shape} and {query.shape}"
        )
    if library.ndim not in (1, 2):
        raise InputError(f"lib and pred must be 1D or 2D arrays: simplex got shape {library.shape}")
    E, tau, Tp = embedding(E, tau, Tp, "simplex")
    if target is None and library.ndim == 2:
        raise InputError(f"simplex: target=None; lib has shape {library.shape}, so the series to predict must be given")
    target_values = library if target is None else check_target(target, len(library), "simplex")
    return predict(library, query, target_values, E, tau, Tp).astype(np.float32)


def check_target(target: Any, least: int, function: str) -> Floats:
    """A series at least as long as the library."""
    target_values = numbers(target, "target", function)
    if target_values.ndim != 1:
        raise InputError(f"target must be a 1D array: {function} got shape {target_values.shape}")
    if len(target_values) < least:
        raise InputError(
            f"lib must have no more time steps than target: {function} got {least} and {len(target_values)}"
        )
    return target_values


def predict(lib: Floats, pred: Floats, target: Floats, E: int, tau: int, Tp: int) -> Doubles:
    """Predictions of checked arguments; NaN where a row touches a gap."""
    check_rows(len(lib), len(pred), E, tau, Tp, E + 1)
    if lib.ndim == 2 and lib.shape[1] != pred.shape[1]:
        raise InputError(f"simplex: lib has {lib.shape[1]} columns and pred {pred.shape[1]}; they must be the same")
    same_series = same(lib, pred)
    target_values = target.astype(np.float64)
    library, query = lib.reshape(len(lib), -1), pred.reshape(len(pred), -1)
    rows, distance = nearest(library, query, target_values, E, tau, Tp, same_series)
    present = np.isfinite(distance)
    shortest = np.where(present, distance, np.inf).min(axis=1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio = np.where(shortest > 0, distance / shortest, np.where(distance > 0, np.inf, 0.0))
    weight = np.where(present, np.maximum(np.exp(-ratio), _FLOOR), 0.0)
    with np.errstate(invalid="ignore"):
        # A target may be long, and its gaps are no neighbours' affair.
        out: Doubles = (weight * np.where(present, target_values[rows + Tp], 0.0)).sum(axis=1) / weight.sum(axis=1)
    return out


def skill(predicted: Doubles, observed: Floats, E: int, tau: int, Tp: int) -> float:
    """rho over the steps that both have."""
    seen = observed[(E - 1) * tau + Tp :].astype(np.float64)
    n = min(len(seen), len(predicted))
    return float(pearson(predicted[:n], seen[:n]))


def check_flat(*arrays: Floats, function: str) -> None:
    """Refuse tables where a series is needed."""
    if any(array.ndim != 1 for array in arrays):
        raise InputError(
            f"lib and pred must be 1D arrays: {function} got shapes {', '.join(str(array.shape) for array in arrays)}"
        )


def eval_simplex(lib: Any, pred: Any, *, target: Any = None, E: int = 1, tau: int = 1, Tp: int = 1) -> float:
    """Skill of :func:`simplex`: Pearson's rho of predictions and ``target``, or ``pred`` where that is not given.

    Parameters
    ----------
    lib, pred : array_like (n,), (m,)
    target, E, tau, Tp
        As for :func:`simplex`.

    Returns
    -------
    float

    Raises
    ------
    InputError
        An argument cannot be used.
    """
    name = "eval_simplex"
    library, query = numbers(lib, "lib", name), numbers(pred, "pred", name)
    check_flat(library, query, function=name)
    E, tau, Tp = embedding(E, tau, Tp, name)
    target_values = library if target is None else check_target(target, len(library), name)
    predicted = predict(library, query, target_values, E, tau, Tp)
    return skill(predicted, query if target is None else target_values, E, tau, Tp)


def edim(timeseries: Any, E_max: int = 20, tau: int = 1, Tp: int = 1) -> int:
    """The embedding dimension with which a series predicts itself best, each row from all others.

    Parameters
    ----------
    timeseries : array_like (n,)
    E_max : int
        Dimensions 1 to E_max are tried.
    tau, Tp : int

    Returns
    -------
    int

    Raises
    ------
    InputError
        An argument cannot be used; E_max needs more steps than there are.
    """
    series = numbers(timeseries, "timeseries", "edim")
    if series.ndim != 1:
        raise InputError(f"Expected a 1D array: edim got shape {series.shape}")
    most = whole(E_max, "E_max", "edim")
    if most < 1:
        raise InputError(f"E_max must be greater than zero: edim got E_max={most}")
    _, tau, Tp = embedding(1, tau, Tp, "edim")
    check_rows(len(series), len(series), most, tau, Tp, most + 1)
    return int(embed_dimension(series, E_max=most, tau=tau, Tp=Tp).E)


# S-map with kEDM's arguments and returns.


def smap(
    lib: Any, pred: Any, *, target: Any = None, E: int = 1, tau: int = 1, Tp: int = 1, theta: float = 1.0
) -> Floats:
    """Predict a series from another by linear fits that are weighted by nearness.

    Parameters
    ----------
    lib, pred : array_like (n,), (m,)
        Library and prediction series.
    target : array_like (n,), optional
        What is predicted; ``lib`` by default.
    E, tau, Tp : int
        Embedding dimension and lag of at least 1; steps ahead of at least 0.
    theta : float
        Localisation, at least 0. Weights are exp(-theta d / d_mean), where the sum of distances to the library rows
        is divided by their number, a row's own counted.

    Returns
    -------
    ndarray (m - (E-1) tau,) of float32

    Raises
    ------
    InputError
        An argument cannot be used.
    """
    library, query, target_values, E, tau, Tp = _checked(lib, pred, target, E, tau, Tp, "smap")
    return fit(library, query, target_values, E, tau, Tp, theta, "smap").astype(np.float32)


def eval_smap(
    lib: Any, pred: Any, *, target: Any = None, E: int = 1, tau: int = 1, Tp: int = 1, theta: float = 1.0
) -> float:
    """Skill of :func:`smap`: Pearson's rho of predictions and ``target``, or ``pred`` where that is not given.

    Parameters
    ----------
    lib, pred, target, E, tau, Tp, theta
        As for :func:`smap`.

    Returns
    -------
    float

    Raises
    ------
    InputError
        An argument cannot be used.
    """
    library, query, target_values, E, tau, Tp = _checked(lib, pred, target, E, tau, Tp, "eval_smap")
    predicted = fit(library, query, target_values, E, tau, Tp, theta, "eval_smap")
    return skill(predicted, query if target is None else target_values, E, tau, Tp)


def _checked(
    lib: Any, pred: Any, target: Any, E: Any, tau: Any, Tp: Any, name: str
) -> tuple[Floats, Floats, Floats, int, int, int]:
    library, query = numbers(lib, "lib", name), numbers(pred, "pred", name)
    check_flat(library, query, function=name)
    E, tau, Tp = embedding(E, tau, Tp, name)
    check_rows(len(library), len(query), E, tau, Tp, E + 1)
    if target is None:
        return library, query, library, E, tau, Tp
    target_values = numbers(target, "target", name)
    if target_values.ndim != 1:
        raise InputError(f"target must be a 1D array: {name} got shape {target_values.shape}")
    if len(target_values) != len(library):
        raise InputError(
            f"lib and target must have same number of time steps: {name} got {len(library)} and {len(target_values)}"
        )
    return library, query, target_values, E, tau, Tp


def fit(lib: Floats, pred: Floats, target: Floats, E: int, tau: int, Tp: int, theta: Any, name: str) -> Doubles:
    """Predictions of checked series; NaN where a row touches a gap."""
    local = theta_of_fit(f"{name}: theta", theta)
    executor = open_device(None)
    if not executor.info.fp64:
        raise InputError(f"{name}: {executor.info.name} lacks double precision, which sums of products need")
    first, n = (E - 1) * tau, len(lib)
    states = embed(lib.reshape(-1, 1).astype(np.float64), E, tau)[first : n - Tp]
    query_states = embed(pred.reshape(-1, 1).astype(np.float64), E, tau)[first:]
    target_values = target[first + Tp :].astype(np.float64)
    present = np.isfinite(states).all(axis=1) & np.isfinite(target_values)
    if present.sum() < 1:
        raise InputError(f"{name}: every library row touches a gap; fill gaps or take a longer lib")
    kept = np.flatnonzero(present)
    twins = _twins(states, query_states, present, same(lib, pred))
    predicted = np.full(len(query_states), np.nan)
    whole = np.isfinite(query_states).all(axis=1)
    groups: dict[tuple[int, ...], list[int]] = {}
    for row in np.flatnonzero(whole):
        several = twins[row] if len(twins[row]) > 1 else ()
        groups.setdefault(tuple(several), []).append(int(row))
    for barred, members in groups.items():
        rows = np.setdiff1d(kept, barred)
        if not len(rows):
            continue
        engine = LocalFits(executor, states[rows], target_values[rows], rows, exclusion_radius=0, dtype="float32")
        try:
            # The mean is over all rows in kEDM, over the neighbours in the engine, which theta can make up for.
            for count in (0, 1) if not barred else (len(barred),):
                rows_alike = [row for row in members if len(twins[row]) == count]
                if not rows_alike:
                    continue
                left_out = np.array([twins[row][0] if count == 1 else -(n + 2) for row in rows_alike], np.int64)
                left = len(kept) - count
                if left:
                    used = np.array([local * len(kept) / left])
                    predicted[rows_alike] = engine.fit(query_states[rows_alike], left_out, used).predicted[0]
        finally:
            engine.release()
    return predicted


def _twins(states: Doubles, asked: Doubles, there: NDArray[np.bool_], own: bool) -> list[list[int]]:
    """Library rows that are left out of each prediction: the row itself, or those at distance zero."""
    if own:
        return [[row] if row < len(states) and there[row] else [] for row in range(len(asked))]
    at: dict[bytes, list[int]] = {}
    library, queries = states + 0.0, np.ascontiguousarray(asked + 0.0)  # no negative zeros
    for row in np.flatnonzero(there):
        at.setdefault(library[row].tobytes(), []).append(int(row))
    return [at.get(queries[row].tobytes(), []) for row in range(len(asked))]


# All-pairs cross mapping with kEDM's arguments and returns.


def xmap(dataset: Any, edims: Sequence[int], tau: int = 1, Tp: int = 0) -> Floats:
    """Cross map every series onto every other, with all rows as the library.

    Parameters
    ----------
    dataset : array_like (n, n_series)
    edims : sequence of int
        Embedding dimension of each series, which is that of its predictions: of the target.
    tau, Tp : int
        Lag of at least 1; steps between state and target, at least 0.

    Returns
    -------
    ndarray (n_series, n_series) of float32
        rho[i, j]: series i as library predicts series j.

    Raises
    ------
    InputError
        An argument cannot be used.
    """
    data = numbers(dataset, "dataset", "xmap")
    if data.ndim != 2:
        raise InputError(f"Expected a 2D array: xmap got shape {data.shape}")
    dims = whole_numbers(edims, "edims", "xmap")
    if len(dims) != data.shape[1]:
        raise InputError(
            "Number of time series must match the number of embedding dimensions: xmap got "
            f"{data.shape[1]} and {len(dims)}"
        )
    if not dims or min(dims) < 1:
        raise InputError(f"All embedding dimensions must be larger than zero: xmap got {dims}")
    most, tau, Tp = embedding(max(dims), tau, Tp, "xmap")
    check_rows(len(data), len(data), most, tau, Tp, most + 1)
    out: Floats = cross_map(data, E=dims, tau=tau, Tp=Tp).rho.astype(np.float32)
    return out


# Convergent cross mapping with kEDM's arguments, its own random sub-libraries, and returns.


Mask = NDArray[np.bool_]
_LANES = 16  # samples that the kernels take at a time


def ccm(
    lib: Any, target: Any, *, lib_sizes: Sequence[int] = (), sample: int = 1, E: int = 1, tau: int = 1, Tp: int = 0,
    seed: int = 0, accuracy: float = 1.0,
) -> list[float]:  # fmt: skip
    """Mean cross-map skill for several library sizes: how well ``lib``'s states predict ``target``.

    The sub-libraries are those that kEDM draws for the same seed: of all time steps, of which only those that are a
    target's step of an embedded row count.

    Parameters
    ----------
    lib, target : array_like (n,)
    lib_sizes : sequence of int
        At most n.
    sample : int
        Sub-libraries of each size.
    E, tau, Tp : int
    seed : int
        0 for a fresh one.
    accuracy : float
        Above 0, at most 1; without effect: neighbours are exact.

    Returns
    -------
    list of float
        rho of each library size, the mean over its samples.

    Raises
    ------
    InputError
        An argument cannot be used.
    """
    series, target_values, sizes, samples, number = _ccm_checked(lib, target, lib_sizes, sample, seed, "ccm")
    real("accuracy must be between zero and one: accuracy", accuracy, "a number in (0, 1]", lambda a: 0 < a <= 1)
    E, tau, Tp = embedding(E, tau, Tp, "ccm")
    check_rows(len(series), len(series), E, tau, Tp, E + 1)
    generator, n = Generator(number), len(series)
    members = np.zeros((len(sizes), samples, n), bool)
    for place, size in enumerate(sizes):
        # kEDM marks the steps of targets; a row is the step of its state.
        members[place, :, : n - Tp] = generator.samples(n, size, samples)[:, Tp:]
    return _means(series, target_values, members, E, tau, Tp)


def ccm_naive(
    lib: Any, target: Any, *, lib_sizes: Sequence[int] = (), sample: int = 1, E: int = 1, tau: int = 1, Tp: int = 0,
    seed: int = 0,
) -> list[float]:  # fmt: skip
    """:func:`ccm` of sub-libraries that are drawn among the embedded rows that lead to a target.

    Sizes beyond their number stand for all of them. It is no slower than :func:`ccm`: both use the same kernels.

    Parameters
    ----------
    lib, target, lib_sizes, sample, E, tau, Tp, seed
        As for :func:`ccm`.

    Returns
    -------
    list of float

    Raises
    ------
    InputError
        An argument cannot be used.
    """
    series, target_values, sizes, samples, number = _ccm_checked(lib, target, lib_sizes, sample, seed, "ccm_naive")
    E, tau, Tp = embedding(E, tau, Tp, "ccm_naive")
    check_rows(len(series), len(series), E, tau, Tp, E + 1)
    generator, n, first = Generator(number), len(series), (E - 1) * tau
    rows = n - first - Tp
    members = np.zeros((len(sizes), samples, n), bool)
    for place, size in enumerate(sizes):
        members[place, :, first : first + rows] = generator.samples(rows, size, samples)
    return _means(series, target_values, members, E, tau, Tp)


def _ccm_checked(
    lib: Any, target: Any, lib_sizes: Any, sample: Any, seed: Any, name: str
) -> tuple[Floats, Floats, list[int], int, int]:
    series, target_values = numbers(lib, "lib", name), numbers(target, "target", name)
    if series.ndim != 1 or target_values.ndim != 1:
        raise InputError(
            f"lib and target must be 1D arrays: {name} got shapes {series.shape} and {target_values.shape}"
        )
    if len(series) != len(target_values):
        raise InputError(
            f"lib and target must have same number of time steps: {name} got {len(series)} and {len(target_values)}"
        )
    sizes = whole_numbers(lib_sizes, "lib_sizes", name)
    if any(size < 1 for size in sizes):
        raise InputError(f"All lib_sizes must be larger than zero: {name} got {min(sizes)}")
    if any(size > len(series) for size in sizes):
        raise InputError(f"All lib_sizes must not exceed lib size: {name} got {max(sizes)}, there are {len(series)}")
    samples = whole(sample, "sample", name)
    if samples < 1:
        raise InputError(f"sample must be larger than zero: {name} got sample={samples}")
    samples = draws(f"{name}: sample", samples)
    # The masks of sub-libraries, and copies of them on their way to the device.
    room(f"{name}: sample", (len(sizes), samples, len(series)), np.float32)
    return series, target_values, sizes, samples, whole(seed, "seed", name)


def _means(lib: Floats, target: Floats, members: Mask, E: int, tau: int, Tp: int) -> list[float]:
    """Mean skill (n_sizes,) of sub-libraries (n_sizes, samples, n) of states' steps."""
    if not members.size:
        return []
    executor = open_device(None)
    states = delay_states(lib.reshape(-1, 1), E, tau, k=E + 1, Tp=Tp, exclusion_radius=0, dtype="float32")
    engine = SampledSkill(executor, states, future(target, Tp)[None])
    pair = CcmPair(0, 0, (0, 0))
    flat = (members & engine.library_mask(pair)).reshape(-1, len(lib))
    rho = np.full(len(flat), np.nan)
    counts = flat.sum(axis=1)
    # One search serves several sizes if they have equally many samples, in steps of what the kernels take at a time.
    alike: dict[int, list[NDArray[np.int64]]] = {}
    for count in np.unique(counts[counts > 0]):
        which = np.flatnonzero(counts == count)
        alike.setdefault(-(-len(which) // _LANES), []).append(which)
    try:
        for blocks, groups in alike.items():
            width = blocks * _LANES
            padded = np.array([np.resize(which, width) for which in groups])
            sizes = [int(counts[which[0]]) for which in groups]
            means = engine.skill([pair], sizes, width, 0, flat[padded][None])[0]
            rho[padded] = means
    finally:
        engine.release()
    return [float(value) for value in rho.reshape(members.shape[:2]).mean(axis=1)]
