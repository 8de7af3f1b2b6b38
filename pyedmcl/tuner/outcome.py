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

    def describe(self, case: TuningCase, parameters: Parameters) -> Reply:
        """What the engine asks for in this case; compiles it, and launches nothing."""

    def prepare(self, case: TuningCase, configurations: Sequence[Parameters]) -> list[Reply]:
        """Compile all that the case needs, for each configuration."""

    def attempt(self, case: TuningCase, parameters: Parameters) -> Reply:
        """The first run, whose answer is compared with that of a verified configuration where there is one."""

    def verify(self, case: TuningCase, parameters: Parameters) -> Reply:
        """Ragged problems against the oracle; the first that passes gives the answer that others must give too."""

    def sample(self, case: TuningCase, parameters: Parameters, *, together: bool = False) -> Reply:
        """One figure: the mean of some runs after one that does not count; ``together``: all in one process."""


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
    resume : bool
        Whether times of earlier tunings on the same problem count.
    """

    strategy: str = "greedy"
    seed: int = 0
    rounds: int = 3
    duel: int = 7
    batch: int = 8
    resume: bool = True


@dataclass
class Standing:
    """How the tuning of a case stands; once its phase is "done", how it ended.

    Attributes
    ----------
    case : TuningCase
    phase : str
    counts : Counter
        By status: "ok", "slow", "failed", "wrong", "hung", and "known" for those of earlier tunings.
    trouble : list of (mapping, str, str)
        Parameters, status and reason of what cannot be used.
    default_seconds, seconds : float
        Of the defaults and of the best, at the end medians of the last comparison; 0 while unknown.
    parameters : mapping
        What is used from now on.
    kept : bool
        Whether these beat the defaults. Else they are the defaults.
    key : TuningKey or None
        Under which the outcome is stored; None where nothing was decided, so that nothing is stored.
    note : str
    """

    case: TuningCase
    phase: str = "starting"
    counts: Counter[str] = field(default_factory=Counter)
    trouble: list[tuple[Mapping[str, Any], str, str]] = field(default_factory=list)
    default_seconds: float = 0.0
    seconds: float = 0.0
    parameters: Mapping[str, Any] = field(default_factory=dict)
    kept: bool = False
    key: TuningKey | None = None
    note: str = ""

    @property
    def tried(self) -> int:
        return sum(count for status, count in self.counts.items() if status != "known")

    @property
    def done(self) -> bool:
        return self.phase == "done"

    @property
    def gain(self) -> float:
        """How many times faster than the defaults what is kept is; before the end, what is best so far."""
        return self.default_seconds / self.seconds if self.seconds > 0 and (self.kept or not self.done) else 1.0
