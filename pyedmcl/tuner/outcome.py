"""What goes into a tuning and what comes out of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..tuning.key import TuningKey
from .measure import Parameters, Reply
from .problem import TuningCase


class Backend(Protocol):
    """Who tries configurations; None stands for the defaults."""

    def describe(self, case: TuningCase, parameters: Parameters) -> Reply: ...
    def prepare(self, case: TuningCase, configurations: Sequence[Parameters]) -> list[Reply]: ...
    def attempt(self, case: TuningCase, parameters: Parameters) -> Reply: ...
    def verify(self, case: TuningCase, parameters: Parameters) -> Reply: ...
    def sample(self, case: TuningCase, parameters: Parameters, *, together: bool = False) -> Reply: ...


@dataclass(frozen=True)
class Settings:
    """How to search.

    Attributes
    ----------
    strategy : str
        One of :data:`pyedmcl.tuner.strategies.STRATEGIES`.
    seed : int
    rounds : int
        Figures per configuration that is not given up.
    duel : int
        Figures each when the best ones are compared with the defaults at the end.
    batch : int
        Configurations compiled at the same time and timed in the same rounds.
    margin : float
        A winner must be faster than the defaults by this part.
    resume : bool
        Whether times of earlier tunings on the same problem count.
    """

    strategy: str = "greedy"
    seed: int = 0
    rounds: int = 3
    duel: int = 7
    batch: int = 8
    margin: float = 0.01
    resume: bool = True


@dataclass
class Standing:
    """What is known while a case is tuned, for whoever shows it.

    Attributes
    ----------
    case : TuningCase
    phase : str
    counts : Counter
        By status: "ok", "slow", "failed", "wrong", "hung", and "known" for those of earlier tunings.
    default, best : float
        Seconds; 0 while unknown.
    parameters : mapping
        Of the best; empty for the defaults.
    trouble : list of (mapping, str, str)
        Parameters, status and reason of what cannot be used.
    """

    case: TuningCase
    phase: str = "starting"
    counts: Counter[str] = field(default_factory=Counter)
    default: float = 0.0
    best: float = 0.0
    parameters: Mapping[str, Any] = field(default_factory=dict)
    trouble: list[tuple[Mapping[str, Any], str, str]] = field(default_factory=list)

    @property
    def tried(self) -> int:
        return sum(count for status, count in self.counts.items() if status != "known")


@dataclass(frozen=True)
class Outcome:
    """How the tuning of a case ended.

    Attributes
    ----------
    case : TuningCase
    key : TuningKey or None
        None where the case could not be run at all, or so shortly that nothing was decided.
    parameters : mapping
        What is kept.
    seconds, default_seconds : float
        Medians of the last comparison.
    kept : bool
        Whether something else than the defaults is kept.
    note : str
    standing : Standing
    """

    case: TuningCase
    key: TuningKey | None
    parameters: Mapping[str, Any]
    seconds: float
    default_seconds: float
    kept: bool
    note: str
    standing: Standing

    @property
    def gain(self) -> float:
        """How many times faster than the defaults."""
        return self.default_seconds / self.seconds if self.kept and self.seconds > 0 else 1.0
