"""What the searches for neighbours cost on a machine and device: a formula of a few numbers, and where these come from.

The exhaustive search compares all pairs. The pruned one puts its states in order and walks: what it compares is a share
of the pairs that a probe finds out, and each query changes its list of k neighbours some k log(visited / k) times (the
records of a sequence in random order). A k-d tree is built in n log n and looks at cells around each query.
"""

from __future__ import annotations

import functools
import importlib.util
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from ..device.fingerprint import DeviceKey, device_key
from ..device.quirks import quirks_for
from ..tuning.grades import Entry, relation
from ..tuning.key import finite, model_key
from ..tuning.parameters import source
from .pruned_axes import AXES_MOST

if TYPE_CHECKING:
    from ..device.info import DeviceInfo
    from ..tuning.knowledge import Knowledge

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
    """Seconds of one machine and device.

    Attributes
    ----------
    exact_call, exact_change, exact_pair, exact_lag : float
        Of the exhaustive search: fixed, for a change of a query's list of neighbours, for a pair of states, and for
        each lag of it.
    shared_change, shared_lag : float
        Of the exhaustive search that shares sums along diagonals, where that one is taken: for a change of a list, and
        for a pair's lag.
    order_call, order_lag : float
        Of putting states in order: for each axis, and for a state's lag.
    walk_call, walk_change, walk_lag : float
        Of the pruned search without the order: fixed, for a change of a list of neighbours, and for a visited pair's
        lag.
    tree_build, tree_neighbor, tree_visit : float
        Of a k-d tree: for a state and level, for a neighbour of a query, and for a visited state's lag.
    """

    exact_call: float
    exact_change: float
    exact_pair: float
    exact_lag: float
    shared_change: float
    shared_lag: float
    order_call: float
    order_lag: float
    walk_call: float
    walk_change: float
    walk_lag: float
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
    """Rates of a device, and how well they are known.

    Attributes
    ----------
    rates : Rates
    source : str
        "measured", "imported", "measured with another driver", "shipped", "measured on a similar device", "shipped for
        a similar device", or "default".
    at_once : int
        Queries that the device walks with at once.
    """

    rates: Rates
    source: str
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
