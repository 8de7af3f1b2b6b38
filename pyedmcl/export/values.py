"""Specialisation and parameters of a kernel for a device, as the engines would choose them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..codegen.build import noting
from ..codegen.spec import KernelSpec
from ..device.info import DeviceInfo
from ..errors import InputError, shown
from ..kernels import compact, spec, waves
from ..neighbors.plan import KnnPass, SearchProblem, with_enough_groups
from ..recurrence.metrics import metric_named
from ..recurrence.sweep import staging_fits
from ..tuner.problem import TuningCase
from ..tuner.problems import names, problem
from ..tuning.parameters import parameters, source
from .dry import DryExecutor

Given = dict[str, Any]
_MOST = 1_000_000
# Kernels that ask for parameters before they run, and are then launched until something is found, which takes long on a
# device that finds nothing; with the values that they decide while they run.
_ASKED_FIRST: Mapping[str, Mapping[str, Any]] = {"recurrence_ranks": {"per_column": False}}
# What is unrolled in a text must not make it endless.
_LARGEST = {"E": 100, "k": 1000, "m": 100, "n_radii": 1000}
#: Kernels of which nothing is tuned, and that no tuning problem launches.
UNTUNED: Mapping[str, Mapping[str, Any]] = {
    "compact": compact.VALUES,
    "deliver": {"dtype": "float32"},
    "highest": {"dtype": "float32"},
    "recurrence_finish": {"wg": 128},
    "recurrence_batch": {
        "m": 3, "metric": "euclidean", "dtype": "float32", "strict": True, "corridor": False, "symmetric": True,
        "screened": False, "embedded": False, "lanes": 1, "wg": 128,
    },
    "waves": waves.VALUES,
    "window_knn": {"E": 3, "tau": 1, "k": 4, "lanes": 1, "dtype": "float32"},
}  # fmt: skip


def values_for(kernel: str, given: Mapping[str, Any], info: DeviceInfo) -> dict[str, Any]:
    """All values of a kernel's text.

    Parameters
    ----------
    kernel : str
    given : mapping
        What the caller wants; the rest is as the engines have it for a usual problem.
    info : DeviceInfo

    Raises
    ------
    InputError
        A name that the kernel does not know, or values that contradict each other.
    """
    maker = _MAKERS.get(kernel)
    if maker is not None:
        return maker(info, dict(given))
    values = dict(usual_values(info, kernel)[kernel])
    _take(kernel, values, dict(given))
    return values


def usual_values(info: DeviceInfo, *kernels: str) -> dict[str, dict[str, Any]]:
    """Kernel to the values of a usual problem, for some kernels or all.

    Engines run these problems on an executor that computes nothing, which shows what they build. Of what several
    problems build, the first counts.
    """
    values_of: dict[str, dict[str, Any]] = {}
    for name in names():
        if kernels and set(kernels) <= set(values_of):
            break
        with noting() as noted, source.watching() as questions:
            for case in problem(name).cases("rapid", info)[:1]:
                _run(name, DryExecutor(info), case)
        if name in _ASKED_FIRST:
            noted += [(q.spec, {**_ASKED_FIRST[name], **q.specialisation, **q.choice.parameters})
                      for q in questions.values()]  # fmt: skip
        for built, values in noted:
            if built.name == name:  # what the kernel's own problem asks for comes before what others need of it
                values_of[name] = values
                break
        for built, values in noted:
            values_of.setdefault(built.name, values)
    for name, fixed in UNTUNED.items():
        values_of.setdefault(name, dict(fixed))
    lacking = sorted(set(kernels) - set(values_of))
    if lacking:
        raise InputError(f"kernel={shown(lacking[0])}: one of {', '.join(sorted(values_of))} is needed")
    return values_of


def _run(name: str, executor: DryExecutor, case: TuningCase) -> None:
    with problem(name).open(executor, case) as go:
        if name not in _ASKED_FIRST:
            go()


def _take(kernel: str, values: Given, given: Given) -> None:
    """Put what is given in the place of usual values; of a name that there is none of, InputError."""
    unknown = [name for name in given if name not in values]
    if unknown:
        raise InputError(f"{unknown[0]}={shown(given[unknown[0]])}: kernel {kernel} has no such value; "
                         f"there are {', '.join(values)}")  # fmt: skip
    tried = {tunable.name: tunable.values for tunable in spec(kernel).tunables}
    for name, value in given.items():
        usual = values[name]
        if type(value) is not type(usual):
            raise InputError(f"{name}={shown(value)}: kernel {kernel} needs a value like {usual!r}")
        if name in tried and value not in tried[name]:
            raise InputError(f"{name}={shown(value)}: kernel {kernel} knows {', '.join(map(str, tried[name]))}")
        if name in _LARGEST:
            _whole(name, value)
        if isinstance(value, int) and not -1 <= value <= _MOST:
            raise InputError(f"{name}={shown(value)}: kernel {kernel} needs a number up to {_MOST:,}")
        values[name] = value


def _chosen(
    kernel: KernelSpec, specialisation: Given, info: DeviceInfo, given: Given, sizes: Mapping[str, int]
) -> Given:
    """Tuned parameters, less those that are given."""
    chosen = dict(parameters(kernel, specialisation, info, sizes).parameters)
    mine = {name: given.pop(name) for name in list(given) if name in chosen}
    _take(kernel.name, chosen, mine)
    return chosen


def _knn(info: DeviceInfo, given: Given) -> Given:
    E = given.pop("E", 3)
    dims = tuple(sorted({_whole("E", each) for each in (E if isinstance(E, (list, tuple)) else [E])}))
    if not dims:
        raise InputError(f"E={shown(E)}: at least one dimension is needed")
    k = given.pop("k", None)
    counts = tuple(dim + 1 if k is None else _whole("k", k) for dim in dims)
    tau, dtype = _whole("tau", given.pop("tau", 1)), _dtype(given, info)
    rows = _whole("rows", given.pop("rows", 2000))
    emit, masked = given.pop("emit", "neighbours"), given.pop("masked", False)
    if not isinstance(emit, str) or emit not in ("neighbours", "weights"):
        raise InputError(f"emit={shown(emit)}: neighbours or weights is needed")
    search = SearchProblem(dims, counts, tau, 0, 0, rows, rows, dtype)
    specialisation = {"dtype": dtype, "dims": dims, "tau": tau, "simplexes": search.simplexes}
    chosen = _chosen(spec("knn"), specialisation, info, given, {"rows": rows, "library": rows})
    values = KnnPass(search, emit, with_enough_groups(chosen, search)).values(bool(masked))
    _take("knn", values, given)
    return values


def _lookup(info: DeviceInfo, given: Given) -> Given:
    k, dtype = _whole("k", given.pop("k", 4)), _dtype(given, info)
    rows, targets = (_whole(name, given.pop(name, usual)) for name, usual in (("rows", 2000), ("targets", 1000)))
    values: Given = {"k": k, "dtype": dtype, "gaps": False, "stage_rows": 0, "table_tile": 1,
                     "narrow_rows": False, "precision": "full", "local_sums": 0}  # fmt: skip
    sizes = {"rows": rows, "targets": targets}
    values |= _chosen(spec("lookup"), {"dtype": dtype, "k": k, "columns": targets}, info, given, sizes)
    _take("lookup", values, given)
    return values


def _recurrence(info: DeviceInfo, given: Given) -> Given:
    exact = given.pop("exact", False)
    values: Given = {
        "m": 3, "tau": 1, "metric": "euclidean", "dtype": _dtype(given, info), "embedded": False, "exact": bool(exact),
        "strict": True, "corridor": False, "per_column": False, "second_partner": False, "n_radii": 1,
    }  # fmt: skip
    _take("recurrence_bits", values, {name: given.pop(name) for name in list(given) if name in values})
    for name in ("m", "tau", "n_radii"):
        _whole(name, values[name])
    metric_named(values["metric"])
    values["limits_per_radius"] = (2 if values["exact"] else 1) * (2 if values["corridor"] else 1)
    values["coordinates"] = values["m"] if values["embedded"] else 1
    values |= _chosen(spec("recurrence_bits"), values, info, given, {"rows": 10_000, "columns_of_matrix": 10_000})
    _take("recurrence_bits", values, given)
    if not staging_fits(values, info):
        values["staged"] = False
    return values


_MAKERS: dict[str, Callable[[DeviceInfo, Given], Given]] = {
    "knn": _knn, "lookup": _lookup, "recurrence_bits": _recurrence,
}  # fmt: skip


def _whole(name: str, value: Any) -> int:
    most = _LARGEST.get(name, _MOST)
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 1 <= value <= most:
        raise InputError(f"{name}={shown(value)}: a whole number from 1 to {most:,} is needed")
    return int(value)


def _dtype(given: Given, info: DeviceInfo) -> str:
    dtype = given.pop("dtype", "float32")
    if not isinstance(dtype, str) or dtype not in ("float32", "float64"):
        raise InputError(f"dtype={shown(dtype)}: float32 or float64 is needed")
    if dtype == "float64" and not info.fp64:
        raise InputError(f"dtype='float64': {info.name or 'the target'} has no double precision")
    return str(dtype)
