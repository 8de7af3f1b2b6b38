"""A question for a kernel's parameters, and its answer."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from typing import Any

from .. import config
from ..codegen.spec import KernelSpec
from ..device.info import DeviceInfo
from ..errors import InputError, shown
from .key import TuningKey, canonical, tuning_key

#: A question as text (kernel, specialisation, sizes) to the parameters that answered it; JSON can hold it.
Answers = MutableMapping[str, dict[str, Any]]


@dataclass(frozen=True)
class ParameterChoice:
    """Tuned parameters.

    Attributes
    ----------
    parameters : mapping
    grade : str
        How well they are known: one of :data:`pyedmcl.tuning.grades.GRADES`.
    cache_key : object
        Which question they answer, and in which way it was asked, for
        :meth:`pyedmcl.tuning.parameters.ParameterSource.adjusted`.
    """

    parameters: Mapping[str, Any]
    grade: str
    cache_key: Any = field(default=None, compare=False, repr=False)


@dataclass(frozen=True)
class ParameterQuestion:
    """What was asked for, and the answer.

    Attributes
    ----------
    spec : KernelSpec
    specialisation, sizes : mapping
        See :meth:`pyedmcl.tuning.parameters.ParameterSource.parameters`.
    info : DeviceInfo
    choice : ParameterChoice
    adjusted : tuple of mapping
        What engines changed of the answer: ``{"why": ..., "parameters": {...}}``, those that differ.
    """

    spec: KernelSpec
    specialisation: Mapping[str, Any]
    info: DeviceInfo
    sizes: Mapping[str, int]
    choice: ParameterChoice
    adjusted: tuple[Mapping[str, Any], ...] = ()

    def key(self) -> TuningKey:
        """What the answer was looked up by."""
        return tuning_key(self.spec, self.specialisation, self.info, self.sizes)

    def text(self) -> str:
        """The question for :data:`Answers`."""
        return canonical({"kernel": self.spec.name, "specialisation": self.specialisation, "sizes": self.sizes})

    def answered(self, parameters: Mapping[str, Any], grade: str) -> ParameterQuestion:
        """The same question with this answer."""
        return replace(self, choice=ParameterChoice(parameters, grade, self.choice.cache_key))

    def record(self) -> dict[str, Any]:
        """The answer as plain data: its grade, its parameters and, where an engine adjusted them, what and why."""
        record: dict[str, Any] = {"grade": self.choice.grade, "parameters": dict(self.choice.parameters)}
        if self.adjusted:
            record["adjusted"] = [dict(change) for change in self.adjusted]
        return record


def checked_mode(tune: object) -> str:
    """``tune`` if it is a mode. Raises InputError."""
    if not isinstance(tune, str) or tune not in config.TUNE_MODES:
        modes = ", ".join(map(repr, config.TUNE_MODES))
        raise InputError(f"tune={shown(tune)}: {modes} or None (PYEDMCL_TUNE) is needed")
    return tune


def frozen(values: Mapping[str, Any]) -> Any:
    """Values as a key."""
    items = tuple(values.items())
    try:
        hash(items)
    except TypeError:
        return tuple((name, repr(value)) for name, value in items)
    return items
