"""Which tuned parameters a launch uses, and how good that knowledge is.

Engines ask :func:`parameters` for every kernel they build; :mod:`.retry` gives public functions their ``tune=``.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from .. import config
from ..codegen.spec import KernelSpec
from ..device.info import DeviceInfo
from ..device.quirks import quirks_for
from ..errors import Interrupted, PyedmclError
from . import fit, recorded
from .key import TuningKey, canonical, device_digest, tuning_key
from .knowledge import Knowledge, check_mode

log = logging.getLogger(__name__)

Tuner = Callable[[KernelSpec, Mapping[str, Any], DeviceInfo, Mapping[str, int], float], None]
#: Who tunes within a process, as "module:function"; it lies above this room, so it is found by name.
TUNER = "pyedmcl.tuner.auto:tune"

_AUTO_LEAST_SECONDS = 60.0  # a gain of a third pays for a budget of a tenth many times over
_AUTO_SHARE = 0.1
_AUTO_MOST_SECONDS = 60.0
_FORCE_SECONDS = 10.0
_LEAST_SECONDS = 1.0
_KNOWN_WELL = ("exact", "other driver", "shipped")
_KEPT_MOST = 8192


@dataclass(frozen=True)
class Choice:
    """Tuned parameters and their grade, one of :data:`pyedmcl.tuning.lookup.GRADES`."""

    parameters: Mapping[str, Any]
    grade: str


@dataclass(frozen=True)
class Asked:
    """A question to :func:`parameters` and its answer."""

    spec: KernelSpec
    specialisation: Mapping[str, Any]
    info: DeviceInfo
    sizes: Mapping[str, int]
    choice: Choice

    def key(self) -> TuningKey:
        """What the answer was looked up by."""
        return tuning_key(self.spec, self.specialisation, self.info, self.sizes)


@dataclass
class _Call:
    """A public function at work: its mode, the seconds it is expected to take, those spent on tuning."""

    mode: str
    expected: float = 0.0
    spent: float = 0.0


_forced: ContextVar[Mapping[str, Mapping[str, Any]] | None] = ContextVar("forced", default=None)
_call: ContextVar[_Call | None] = ContextVar("call", default=None)
_watchers: ContextVar[tuple[dict[Any, Asked], ...]] = ContextVar("watchers", default=())

knowledge = Knowledge()
_kept: dict[Any, Asked] = {}
_said: set[tuple[str, ...]] = set()
_tuned: set[TuningKey] = set()
_tuner: Tuner | None = None


@contextlib.contextmanager
def using(**kernels: Mapping[str, Any]) -> Iterator[None]:
    """Within the block, kernels named here take these parameters (others stay as chosen), with grade "forced".

    How a tuner tries a configuration: whole functions then run with it, through the same launches as ever. What is not
    given is the default's.

    Parameters
    ----------
    **kernels : mapping
        Kernel name to some or all of its tuned parameters.
    """
    token = _forced.set({**(_forced.get() or {}), **kernels})
    try:
        yield
    finally:
        _forced.reset(token)


@contextlib.contextmanager
def mode(tune: str | None = None) -> Iterator[None]:
    """Within the block, parameters are chosen by this mode.

    Parameters
    ----------
    tune : {"never", "cached", "auto", "force"}, optional
        None: as around the block, else ``PYEDMCL_TUNE``, else "cached".

    Raises
    ------
    InputError
        Another mode.
    """
    around = _call.get()
    chosen = check_mode(tune) if tune is not None else around.mode if around is not None else config.current().tune
    if knowledge.refresh():
        _kept.clear()
    token = _call.set(_Call(chosen))
    try:
        yield
    finally:
        _call.reset(token)


def expect(operations: float, info: DeviceInfo) -> None:
    """Say how much work lies ahead: "auto" tunes only where that repays it. Without effect outside :func:`mode`.

    Parameters
    ----------
    operations : float
        Arithmetic operations of all work-items together, roughly.
    info : DeviceInfo
    """
    call = _call.get()
    if call is not None:
        call.expected = operations / fit.operations_per_second(info)


@contextlib.contextmanager
def watching() -> Iterator[dict[Any, Asked]]:
    """Collect what is asked within the block, each question once: the values of the mapping, in order."""
    seen: dict[Any, Asked] = {}
    token = _watchers.set((*_watchers.get(), seen))
    try:
        yield seen
    finally:
        _watchers.reset(token)


def record() -> dict[str, list[dict[str, Any]]]:
    """Kernel to the parameters it was given in the public function at work, each with its grade: for provenance."""
    watchers = _watchers.get()
    used: dict[str, list[dict[str, Any]]] = {}
    for asked in watchers[-1].values() if watchers else ():
        one = {"grade": asked.choice.grade, "parameters": dict(asked.choice.parameters)}
        chosen = used.setdefault(asked.spec.name, [])
        if one not in chosen:
            chosen.append(one)
    return used


def parameters(
    spec: KernelSpec, specialisation: Mapping[str, Any], info: DeviceInfo, sizes: Mapping[str, int] | None = None
) -> Choice:
    """Parameters for a kernel, its specialisation, a device and the size of the problem.

    Parameters
    ----------
    spec : KernelSpec
    specialisation : mapping
        What the kernel's source is specialised by, as far as it is known.
    info : DeviceInfo
    sizes : mapping, optional
        What the best parameters may depend on beside the source, such as rows and libraries.

    Returns
    -------
    Choice
    """
    call = _call.get()
    wanted = call.mode if call is not None else config.current().tune
    forced = (_forced.get() or {}).get(spec.name)
    if forced:
        wanted = f"forced {sorted(forced.items())}"
    place = (id(spec), wanted, info, _frozen(specialisation), _frozen(sizes or {}))
    asked = _kept.get(place)
    if asked is None or asked.spec is not spec:
        asked = Asked(spec, dict(specialisation), info, dict(sizes or {}), Choice({}, ""))
        asked = _answered(asked, wanted, forced)
        if len(_kept) > _KEPT_MOST:
            _kept.clear()
        _kept[place] = asked
    before = None if forced else _recorded(asked)
    if before is not None:
        asked = replace(asked, choice=Choice(before, "recorded"))
    elif wanted in ("auto", "force") and _worth_tuning(asked, call or _Call(wanted)):
        _tune(asked, call or _Call(wanted))
        _kept.clear()
        _kept[place] = asked = _answered(asked, wanted, None)
    if not forced:
        recorded.note(spec.name, asked.specialisation, asked.sizes, asked.choice.parameters)
    for seen in _watchers.get():
        seen.pop(place, None)  # what was asked last stands last
        seen[place] = asked
    return asked.choice


def drop_kept() -> None:
    """Answer every question anew, by what is known now."""
    _kept.clear()


def forget() -> None:
    """Drop all that this process has learnt, so that the database and the wisdom are read anew."""
    drop_kept()
    _said.clear()
    _tuned.clear()
    knowledge.clear()


def set_tuner(tuner: Tuner | None) -> None:
    """Who tunes within this process for "auto" and "force": called with spec, specialisation, device, sizes and a
    budget in seconds, it records trials in the database. None: the one that :data:`TUNER` names."""
    global _tuner
    _tuner = tuner


def _frozen(values: Mapping[str, Any]) -> Any:
    items = tuple(values.items())
    try:
        hash(items)
    except TypeError:
        return tuple((name, repr(value)) for name, value in items)
    return items


def _answered(asked: Asked, wanted: str, forced: Mapping[str, Any] | None) -> Asked:
    spec, specialisation, info = asked.spec, asked.specialisation, asked.info
    key = asked.key()
    most = min(quirks_for(info).max_work_group, knowledge.limit(key)) if wanted != "never" else info.max_work_group
    defaults = fit.defaults(spec, specialisation, info, min(most, quirks_for(info).max_work_group), asked.sizes)
    if forced:
        choice = Choice({**defaults, **forced}, "forced")
    else:
        choice = Choice(defaults, "default")
        for grade, entry in knowledge.suitable(key) if wanted != "never" else ():
            why = fit.unfit(spec, entry.parameters, specialisation, info, most, asked.sizes)
            if why is None:
                choice = Choice(dict(entry.parameters), grade)
                break
            _say(logging.INFO, f"parameters of {spec.name} ({grade}) do not fit {info.name}: {why}")
        _say(logging.INFO, f"parameters of {spec.name} on {info.name}: {choice.grade}")
    return Asked(spec, specialisation, info, asked.sizes, choice)


def _recorded(asked: Asked) -> Mapping[str, Any] | None:
    """What a job that is continued was given before, unless it failed in this process."""
    before = recorded.known(asked.spec.name, asked.specialisation, asked.sizes)
    if before is None:
        return None
    key = asked.key()
    place = (device_digest(key.device), key.kernel, key.specialisation, canonical(before))
    return None if place in knowledge.distrusted else before


def _say(level: int, text: str) -> None:
    """Once per process."""
    if (text,) not in _said:
        _said.add((text,))
        log.log(level, "%s", text)


def _worth_tuning(asked: Asked, call: _Call) -> bool:
    if not asked.spec.tunables or (_forced.get() or {}).get(asked.spec.name) or asked.key() in _tuned:
        return False
    if call.mode == "force":
        return True
    return (
        asked.choice.grade not in _KNOWN_WELL
        and call.expected >= _AUTO_LEAST_SECONDS
        and _budget(call) >= _LEAST_SECONDS
    )


def _budget(call: _Call) -> float:
    """Seconds for one more tuning: half of what is left, since other kernels follow."""
    if call.mode == "force":
        return _FORCE_SECONDS
    return (min(_AUTO_SHARE * call.expected, _AUTO_MOST_SECONDS) - call.spent) / 2


def _tune(asked: Asked, call: _Call) -> None:
    _tuned.add(asked.key())
    budget, begun = _budget(call), time.monotonic()
    around = _call.set(_Call("never")), _forced.set(None), _watchers.set(())
    _say(logging.INFO, f"tuning {asked.spec.name} on {asked.info.name} for at most {budget:.0f} s")
    try:
        _the_tuner()(asked.spec, asked.specialisation, asked.info, asked.sizes, budget)
    except Interrupted:
        raise
    except (PyedmclError, OSError, ImportError, AttributeError) as error:
        _say(logging.WARNING, f"{asked.spec.name} could not be tuned: {error}")
    finally:
        _call.reset(around[0])
        _forced.reset(around[1])
        _watchers.reset(around[2])
        call.spent += time.monotonic() - begun
        knowledge.refresh()


def _the_tuner() -> Tuner:
    if _tuner is not None:
        return _tuner
    module, _, name = TUNER.partition(":")
    found: Tuner = getattr(importlib.import_module(module), name)
    return found
