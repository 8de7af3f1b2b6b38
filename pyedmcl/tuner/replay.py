"""A search on recorded trials: the strategies at work without a device."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..codegen.spec import KernelSpec
from ..device.fingerprint import DeviceKey
from ..device.info import DeviceInfo
from ..errors import InputError
from ..kernels import NAMES, spec
from ..tuning.journal import Trial
from ..tuning.key import canonical, spec_digest
from .space import Space
from .strategies import STRATEGIES, Strategy
from .workload import Case

# Asking stops when everything recorded was met, or after so many configurations.
_ASKED_MOST = 20_000
_BATCH = 8
_CPU_RUNTIMES = ("intel-cpu", "pocl")


@dataclass(frozen=True)
class Replayed:
    """How a strategy would have done.

    Attributes
    ----------
    kernel, device, case, strategy : str
    recorded : int
        Configurations of the log, those that could not be used included.
    asked, met : int
        Configurations that the strategy asked for, and how many of them the log knows.
    first, best, best_recorded : float
        Seconds of the configuration that was met first (mostly the defaults), of the best met, of the best of the log.
    needed : int
        How many of the log's configurations had been met when one within 1 % of the best met was found.
    order : tuple of str
        Canonical parameters of those met, in the order in which they were asked for.
    """

    kernel: str
    device: str
    case: str
    strategy: str
    recorded: int
    asked: int
    met: int
    first: float
    best: float
    best_recorded: float
    needed: int
    order: tuple[str, ...]


def replay(
    trials: Iterable[Trial], *, kernels: Sequence[str] = (), strategies: Sequence[str] = tuple(STRATEGIES),
    seed: int = 0,
) -> tuple[list[Replayed], list[str]]:  # fmt: skip
    """Search again on recorded trials.

    Parameters
    ----------
    trials : iterable of Trial
        Such as :func:`pyedmcl.tuning.journal.read_trials` gives.
    kernels : sequence of str
        Only these; all where empty.
    strategies : sequence of str
    seed : int

    Returns
    -------
    list of Replayed
        One for each case and strategy.
    list of str
        What was left out, in words.

    Raises
    ------
    InputError
        No trial can be used.
    """
    groups: dict[tuple[DeviceKey, str], list[Trial]] = defaultdict(list)
    remarks: list[str] = []
    for trial in trials:
        key = trial.key
        if kernels and key.kernel not in kernels:
            continue
        if key.kernel not in NAMES:
            _once(remarks, f"there is no kernel {key.kernel!r} in this version: its trials are left out")
        elif not trial.case:
            _once(remarks, f"trials of {key.kernel} without a case are left out")
        elif trial.note.startswith("along with"):
            continue
        else:
            if key.digest != spec_digest(spec(key.kernel)):
                _once(remarks, f"the kernel {key.kernel} has changed since: its times are those of another version")
            groups[key.device, trial.case].append(trial)
    if not groups:
        raise InputError("LOG: it holds no trials to replay; 'pyedmcl db export --trials' writes such a file")
    found = []
    for (device, text), some in groups.items():
        costs = _costs(some)
        if not any(cost is not None for cost in costs.values()):
            _once(remarks, f"{Case.parse(text).kernel}, {Case.parse(text).name}: nothing that was tried could be used")
            continue
        for name in strategies:
            found.append(_replay(device, Case.parse(text), some, costs, name, seed))
    return found, remarks


def _costs(trials: Sequence[Trial]) -> dict[str, float | None]:
    """Cost by canonical parameters: the newest time, None for what cannot be used."""
    costs: dict[str, float | None] = {}
    for trial in trials:
        if trial.status in ("ok", "slow") and trial.median is not None:
            if not trial.final or trial.canonical not in costs:
                costs[trial.canonical] = trial.median
        elif trial.status != "started":
            costs[trial.canonical] = None
    return costs


def _replay(
    device: DeviceKey, case: Case, trials: Sequence[Trial], costs: dict[str, float | None], name: str, seed: int
) -> Replayed:
    the_spec = spec(case.kernel)
    space = Space(the_spec, _info(device), case.numbers.get("given"))
    strategy = Strategy(name, space, [_start(the_spec, trials)], seed=seed, batch=_BATCH)
    asked = 0
    order: list[str] = []
    usable: list[float] = []
    while asked < _ASKED_MOST and len(order) < len(costs):
        batch = strategy.ask()
        if not batch:
            break
        asked += len(batch)
        for text in map(canonical, batch):
            if text in costs:
                order.append(text)
                cost = costs[text]
                usable.append(float("inf") if cost is None else cost)
        strategy.tell({text: costs.get(text) for text in map(canonical, batch)})
    best = min(usable, default=float("inf"))
    needed = next((at for at, cost in enumerate(usable, start=1) if cost <= 1.01 * best), 0)
    first = next((cost for cost in usable if cost < float("inf")), float("inf"))
    known = min(cost for cost in costs.values() if cost is not None)
    return Replayed(case.kernel, device.name, case.name, name, len(costs), asked, len(order), first, best, known,
                    needed, tuple(order))  # fmt: skip


def _start(the_spec: KernelSpec, trials: Sequence[Trial]) -> dict[str, Any]:
    """What a tuning began with: its first trial."""
    return dict(min(trials, key=lambda t: (t.when, t.id)).parameters)


def _info(device: DeviceKey) -> DeviceInfo:
    """A description good enough for a search space."""
    kind = "cpu" if device.runtime in _CPU_RUNTIMES else "gpu"
    return DeviceInfo(
        id="", name=device.name, vendor=device.vendor, platform="", version=device.version, driver=device.driver,
        kind=kind, runtime=device.runtime, compute_units=device.compute_units, max_work_group=device.max_work_group,
        clock_mhz=0, local_bytes=device.local_bytes, global_bytes=0, max_alloc_bytes=0, fp64=True, fp16=False,
        subgroups=False, opencl_c="",
    )  # fmt: skip


def _once(remarks: list[str], text: str) -> None:
    if text not in remarks:
        remarks.append(text)
