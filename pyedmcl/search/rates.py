"""What searches cost on a machine and device: rates, and how they follow from timings."""

from __future__ import annotations

import functools
import importlib.util
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..device.info import DeviceKey, device_key
from ..device.quirks import quirks_for
from ..tuning.parameters import source
from ..tuning.records import Entry, finite, model_key, relation
from .tables import HostStates

if TYPE_CHECKING:
    from ..device.info import DeviceInfo
    from ..tuning.knowledge import Knowledge


# The axes that the pruned search orders states along.


# Axes of boxes: data that are wide along more than these have hardly any near neighbours, and each axis costs. Boxes
# of a very smooth series are cut along its narrow axes, too, once they are small.
_AXES_LEAST, AXES_MOST = 3, 4
_NARROW = 0.03  # of the widest axis
_SAMPLE = 2048


@dataclass(frozen=True)
class PrincipalAxes:
    """Axes of the states of one embedding."""

    # ndarray (n_axes, E). Orthonormal but for rounding, the widest first.
    axes: NDArray[Any]
    # Taken from each value before it is projected.
    centre: float
    # A coordinate is off by at most this times the sum of ``|x - centre|`` over the lags.
    rounding: float

    @property
    def n_axes(self) -> int:
        return len(self.axes)


def principal_axes(states: HostStates) -> PrincipalAxes:
    """Principal axes of a sample of the states; any orthonormal ones would do, these prune best.

    For E = 1 the value itself, to the last bit.
    """
    E, dtype = states.E, states.series.values.dtype
    if E == 1:
        return PrincipalAxes(np.ones((1, 1), dtype), 0.0, 0.0)
    rows = states.rows
    if len(rows) > _SAMPLE:
        rows = rows[np.random.default_rng(0).integers(0, len(rows), _SAMPLE)]
    points = states.points(rows).astype(np.float64)
    # The kernel takes the centre in the precision it computes in. A few wild values must not decide: far from the
    # centre coordinates lose their digits, and with them boxes their use.
    centre = float(dtype.type(np.median(points[:, 0])))
    low, high = np.quantile(points[:, 0], (0.01, 0.99))
    points = np.clip(points, 2 * low - high, 2 * high - low)
    points -= points.mean(axis=0)
    # Not points.T @ points: threads of a BLAS library wait for more work for a while after a product, without sleeping,
    # and take the cores of a processor from the kernels that come next (1.6 times as long on two cores).
    squares, vectors = np.linalg.eigh(np.einsum("ni,nj->ij", points, points))
    wide = int((squares > _NARROW**2 * squares[-1]).sum())
    axes = np.ascontiguousarray(vectors[:, ::-1][:, : min(max(wide, _AXES_LEAST), AXES_MOST)].T, dtype)
    half = float(np.finfo(dtype).eps) / 2
    return PrincipalAxes(axes, centre, (E + 8) * half)


# The exhaustive search compares all pairs. The pruned one puts its states in order and walks: what it compares is a
# share of the pairs that a probe finds out, and each query changes its list of k neighbours some k log(visited / k)
# times (the records of a sequence in random order). A k-d tree is built in n log n and looks at cells around each
# query.


NAME = "neighbors"
# Queries that a probe looks at: of short series a share, since where nothing can be pruned each costs a whole row.
_PROBED_LEAST, _PROBED_MOST, _PROBED_SHARE = 256, 4096, 32
_LEAST_VISITED = 32  # states that the pruned search looks at for a query where states lie best, beside 2 k
_TREE_LEAF = 16.0
# Of a GPU: a probe of white noise (E = 20) on an H200 took 24 ms with 2^18 states and 69 ms with 2^20, which is half a
# microsecond for each state that a query visits, however few queries there are.
_WALKS_PER_UNIT = 256
DEFAULT = "default"  # where rates come from if nobody measured the device or one like it
# Where others come from, by the grade of parameters.
_SOURCES = {
    "exact": "measured", "other driver": "measured with another driver", "shipped": "shipped",
    "same architecture": "measured on a similar device",
}  # fmt: skip


@dataclass(frozen=True)
class Rates:
    """Seconds of one machine and device."""

    # exact_call, exact_change, exact_pair, exact_lag: Of the exhaustive search: fixed, for a change of a query's list
    # of neighbours, for a pair of states, and for each lag of it.
    exact_call: float
    exact_change: float
    exact_pair: float
    exact_lag: float
    # shared_change, shared_lag: Of the exhaustive search that shares sums along diagonals, where that one is taken: for
    # a change of a list, and for a pair's lag.
    shared_change: float
    shared_lag: float
    # order_call, order_lag: Of putting states in order: for each axis, and for a state's lag.
    order_call: float
    order_lag: float
    # walk_call, walk_change, walk_lag: Of the pruned search without the order: fixed, for a change of a list of
    # neighbours, and for a visited pair's lag.
    walk_call: float
    walk_change: float
    walk_lag: float
    # tree_build, tree_neighbor, tree_visit: Of a k-d tree: for a state and level, for a neighbour of a query, and for a
    # visited state's lag.
    tree_build: float
    tree_neighbor: float
    tree_visit: float

    def exact(self, n: int, queries: int, E: int, k: int, shared: bool = False) -> float:
        """Seconds of the exhaustive search for ``queries`` among ``n`` states; ``shared``: sums along diagonals."""
        if shared:
            return self.exact_call + queries * (self.shared_change * changes(n, k, 1.0) + self.shared_lag * n * E)
        return self.exact_call + queries * (
            self.exact_change * changes(n, k, 1.0) + n * (self.exact_pair + self.exact_lag * E)
        )

    def sweep(self, n: int, queries: int, dims: Sequence[int], ks: Sequence[int]) -> float:
        """Seconds of the exhaustive search in several dimensions at once, which share their lags."""
        changed = sum(self.exact_change * changes(n, k, 1.0) for k in ks)
        return self.exact_call + queries * (changed + n * (self.exact_pair * len(dims) + self.exact_lag * max(dims)))

    def order(self, n: int, E: int) -> float:
        """Seconds to put ``n`` states in order."""
        return self.order_call * min(E, AXES_MOST) + self.order_lag * n * E

    def walk(self, n: int, queries: int, E: int, k: int, share: float) -> float:
        """Seconds of the pruned search once there is an order, if it computes a ``share`` of all pairs."""
        return self.walk_call + self.walk_change * queries * changes(n, k, share) + self.walk_lag * (
            queries * visited_lags(n, E, share)
        )

    def probe(self, n: int, queries: int, E: int, k: int, share: float, at_once: int = 1) -> float:
        """Seconds of a probe once there is an order; fewer queries than ``at_once`` take no less time."""
        return self.walk(n, max(probed(queries), at_once), E, k, share) - self.walk_call

    def tree(self, n: int, queries: int, E: int, k: int, dimension: float) -> float:
        """Seconds of a k-d tree, built and asked, for states of an intrinsic dimension."""
        return self.tree_build * n * math.log2(max(n, 2)) + queries * (
            self.tree_neighbor * (k + 1) + self.tree_visit * E * tree_visited(n, k + 1, dimension)
        )

    def scaled(self, factor: float, host: bool) -> Rates:
        """Rates of a relative with ``1 / factor`` times the compute units; ``host``: the device is the host."""
        device = (
            "exact_change", "exact_pair", "exact_lag", "shared_change", "shared_lag", "order_lag",
            "walk_change", "walk_lag",
        )  # fmt: skip
        names = (*device, "tree_neighbor", "tree_visit") if host else device
        return replace(self, **{name: getattr(self, name) * factor for name in names})

    def as_dict(self) -> dict[str, float]:
        return asdict(self)


@dataclass(frozen=True)
class KnownRates:
    """Rates of a device, and how well they are known."""

    rates: Rates
    # "measured", "imported", "measured with another driver", "shipped", "measured on a similar device", "shipped for a
    # similar device", or "default".
    source: str
    # Queries that the device walks with at once.
    at_once: int = 1


# With the compute units they belong to. Processors: `pyedmcl tune neighbors` on two cores of an AMD EPYC (Intel
# runtime, SciPy 1.17). GPUs: the same on an H200 beside 16 cores.
DEFAULTS: dict[str, tuple[int, Rates]] = {
    "cpu": (2, Rates(
        exact_call=1.0e-4, exact_change=2.0e-9, exact_pair=5.0e-12, exact_lag=9.4e-12, shared_change=2.0e-9,
        shared_lag=9.4e-12, order_call=3.7e-4, order_lag=8.8e-9, walk_call=2.7e-4, walk_change=7.2e-9,
        walk_lag=7.1e-12, tree_build=9.5e-9, tree_neighbor=2.3e-7, tree_visit=4.0e-10,
    )),
    "gpu": (132, Rates(
        exact_call=2.4e-4, exact_change=2.8e-10, exact_pair=1.6e-13, exact_lag=6.2e-14, shared_change=1.8e-9,
        shared_lag=2.4e-14, order_call=6.9e-4, order_lag=6.4e-10, walk_call=5.8e-4, walk_change=1.9e-9,
        walk_lag=3.5e-13, tree_build=1.1e-8, tree_neighbor=8.0e-8, tree_visit=9.6e-11,
    )),
}  # fmt: skip


# By device, with what they were read from.
_read: dict[DeviceInfo, tuple[Knowledge, int, KnownRates]] = {}


def rates_of(info: DeviceInfo) -> KnownRates:
    """Rates of a device: of the tuning database, else shipped for it or a relative, else the defaults of its class."""
    knowledge = source.knowledge
    knowledge.refresh(recently=True)
    read = _read.get(info)
    if read is None or read[0] is not knowledge or read[1] != knowledge.version:
        read = _read[info] = (knowledge, knowledge.version, _rates_of(info))
    return read[2]


def _rates_of(info: DeviceInfo) -> KnownRates:
    key = device_key(info)
    quirks = quirks_for(info)
    at_once = info.compute_units * (_WALKS_PER_UNIT if quirks.scalar_work_items else 1)
    for grade, entry in source.knowledge.suitable(model_key(NAME, key)):
        rates = from_values(entry.parameters)
        if rates is not None:
            scaled = _for_units(rates, entry.key.device.compute_units, info, quirks.on_host)
            return KnownRates(scaled, _source(grade, entry, key), at_once)
    units, rates = DEFAULTS[quirks.defaults_for]
    return KnownRates(_for_units(rates, units, info, quirks.on_host), DEFAULT, at_once)


def _source(grade: str, entry: Entry, device: DeviceKey) -> str:
    if grade == "shipped" and relation(entry.key.device, device) == "relative":
        return "shipped for a similar device"
    return "imported" if grade == "exact" and entry.imported else _SOURCES[grade]


def from_values(values: Mapping[str, Any]) -> Rates | None:
    """Rates from names and numbers; None where one is missing or is no time. Names of no rate are ignored."""
    needed = "a number of at least 0 is"
    try:
        return Rates(**{f.name: finite(values[f.name], f.name, needed, zero=True) for f in fields(Rates)})
    except (KeyError, ValueError):
        return None


def _for_units(rates: Rates, units: int, info: DeviceInfo, host: bool) -> Rates:
    return rates.scaled(units / info.compute_units, host) if units > 0 and info.compute_units > 0 else rates


def probed(queries: int) -> int:
    """Queries that a probe looks at, about."""
    return min(max(min(queries // _PROBED_SHARE, _PROBED_MOST), _PROBED_LEAST), queries)


def least_share(n: int, k: int) -> float:
    """Share of pairs that the pruned search computes at least, about."""
    return min((_LEAST_VISITED + 2.0 * k) / max(n, 1), 1.0)


def changes(n: int, k: int, share: float) -> float:
    """How often a query changes its list of k neighbours, about."""
    return k * math.log1p(share * n / k)


def visited_lags(n: int, E: int, share: float) -> float:
    """Lags of the states that a query visits; one more for each of them stands for what does not depend on E."""
    return share * n * (E + 1)


def tree_visited(n: int, k: int, dimension: float) -> float:
    """States that a k-d tree looks at for a query, about: a ball that holds k, and the cells around it.

    After Friedman, Bentley & Finkel, ACM TOMS 3, 209 (1977): ((k / b)^(1/D) + 1)^D cells of b states.
    """
    d = min(max(dimension, 0.5), 64.0)
    return float(min(_TREE_LEAF * ((k / _TREE_LEAF) ** (1 / d) + 1) ** d, n))


@functools.cache
def has_tree() -> bool:
    """Whether the k-d tree's package is installed."""
    return importlib.util.find_spec("scipy") is not None


# Rates from timed problems: least squares of ratios, no rate below zero.


_ROUNDS = 100  # more than any of these fits needs
_WEIGHINGS = 12
_WORTH = 0.2  # power of its seconds by which a timing counts: to be wrong about a long search costs more


@dataclass(frozen=True)
class Timing:
    """One problem, all states of a series among themselves, and the seconds of what was timed; None where it was not.
    """

    series: str
    n: int
    E: int
    k: int
    # Of the pairs, that the pruned search computed; 0 where it was not timed.
    share: float = 0.0
    # Intrinsic, of the states; see :func:`pyedmcl.search.choose.intrinsic_dimension`.
    dimension: float = 0.0
    # Whether the exhaustive search shared sums along diagonals.
    shared: bool = False
    # exact, order, pruned, build, tree: ``pruned`` holds the order, ``tree`` its building.
    exact: float | None = None
    order: float | None = None
    pruned: float | None = None
    build: float | None = None
    tree: float | None = None

    def predicted(self, rates: Rates) -> dict[str, float]:
        """Estimated seconds of what was timed."""
        n, E, k = self.n, self.E, self.k
        every = {
            "exact": rates.exact(n, n, E, k, self.shared), "order": rates.order(n, E),
            "pruned": rates.order(n, E) + rates.walk(n, n, E, k, self.share),
            "build": rates.tree(n, 0, E, k, self.dimension), "tree": rates.tree(n, n, E, k, self.dimension),
        }  # fmt: skip
        return {name: seconds for name, seconds in every.items() if getattr(self, name) is not None}

    def record(self, rates: Rates) -> dict[str, Any]:
        """The problem with measured and predicted seconds, as it is stored."""
        plain = {name: value for name, value in asdict(self).items() if value is not None}
        return {**plain, "predicted": self.predicted(rates)}


# What was timed, in the order in which rates are found, since later formulas hold what earlier timings tell: its name,
# whether sums were shared (None: that is no matter), and the rates that it tells.
_TOLD = (
    ("exact", False, ("exact_call", "exact_change", "exact_pair", "exact_lag")),
    ("exact", True, ("shared_change", "shared_lag")),
    ("order", None, ("order_call", "order_lag")),
    ("pruned", None, ("walk_call", "walk_change", "walk_lag")),
    ("build", None, ("tree_build",)),
    ("tree", None, ("tree_neighbor", "tree_visit")),
)


def fit(timings: Sequence[Timing], before: Rates) -> Rates:
    """Rates that predict timings best; those that the timings say nothing about stay as they were.

    Parameters
    ----------
    before : Rates
        Known so far.
    """
    rates = before
    for what, shared, names in _TOLD:
        timed = [t for t in timings if getattr(t, what) and shared in (None, t.shared)]
        if len(timed) >= len(names):
            rates = _fitted(timed, what, names, rates)
    return rates


def _fitted(timings: Sequence[Timing], what: str, names: Sequence[str], rates: Rates) -> Rates:
    """Rates with those of ``names`` as the timings tell them."""
    nothing = dict.fromkeys(rates.as_dict(), 0.0)
    # Estimates are sums of rates times numbers: such a number is the estimate where its rate is 1 and others are 0.
    units = [Rates(**{**nothing, name: 1.0}) for name in names]
    others = replace(rates, **dict.fromkeys(names, 0.0))
    a = np.array([[t.predicted(unit)[what] for unit in units] for t in timings])
    offset = np.array([t.predicted(others)[what] for t in timings])
    y = np.array([getattr(t, what) for t in timings], np.float64)
    worth = y**_WORTH
    weight = worth / y
    for _ in range(_WEIGHINGS):
        x = not_negative(a * weight[:, None], (y - offset) * weight)
        # (p - y) / sqrt(p y) is 2 sinh(log(p / y) / 2): too much counts as too little does.
        weight = worth / np.sqrt(y * np.maximum(a @ x + offset, 1e-3 * y))
    return replace(rates, **dict(zip(names, map(float, x), strict=True)))


def suffices(timings: Sequence[Timing]) -> bool:
    """Whether timings tell what the exhaustive and the pruned search cost, so that they can be compared.

    Of a single E they would not tell what a lag costs, and the fit would make it nothing.
    """
    exact, pruned = ([t.E for t in timings if getattr(t, name) is not None] for name in ("exact", "pruned"))
    return len(exact) >= 4 and len(pruned) >= 3 and len(set(exact)) > 1 and len(set(pruned)) > 1


def errors(timings: Sequence[Timing], rates: Rates) -> list[float]:
    """Measured through predicted seconds of everything that was timed, or the reverse where that is more."""
    ratios = []
    for timing in timings:
        for name, predicted in timing.predicted(rates).items():
            measured = getattr(timing, name)
            ratios.append(max(measured / predicted, predicted / measured) if predicted > 0 else math.inf)
    return ratios


def not_negative(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """x >= 0 that minimises |a x - b|, by active sets (Lawson & Hanson, Solving Least Squares Problems, 1974, ch. 23).

    Parameters
    ----------
    a : ndarray (m, n)
        Columns may differ in size by many orders.
    b : ndarray (m,)
    """
    size = np.sqrt((a * a).sum(axis=0))
    a = a / np.where(size > 0, size, 1.0)
    x, free = np.zeros(a.shape[1]), np.zeros(a.shape[1], np.bool_)
    for _ in range(_ROUNDS):
        gradient = a.T @ (b - a @ x)
        gradient[free] = -np.inf
        best = int(np.argmax(gradient))
        if gradient[best] <= 1e-10 * len(b):
            break
        free[best] = True
        while True:
            trial = np.zeros_like(x)
            trial[free] = np.linalg.lstsq(a[:, free], b, rcond=None)[0]
            down = free & (trial <= 0)
            if not down.any():
                break
            step = float((x[down] / np.maximum(x[down] - trial[down], 1e-300)).min())
            x = x + step * (trial - x)
            free &= x > 1e-15
        x = trial
    return x / np.where(size > 0, size, 1.0)
