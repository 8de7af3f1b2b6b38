"""Trials: what was tried, by whom, and how it ended; also as lines of JSON."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..processes import runs
from .key import TuningKey, canonical, finite, key_as_dict

#: How a trial ended, beside "started" for one that has not.
ENDS = ("ok", "wrong", "failed", "hung", "slow")
#: A configuration that ended so is never tried again, and never used.
BARRING = ("wrong", "failed", "hung")
#: Session of trials and rates that came from a file: what this machine has measured is preferred to them.
IMPORTED = "import"
# Of another host's process nothing can be known; no trial takes that long.
_GONE_AFTER_SECONDS = 3600.0


@dataclass(frozen=True)
class Trial:
    """One configuration and how it did.

    Attributes
    ----------
    key : TuningKey
    parameters : mapping
        All tuned parameters of the kernel.
    status : str
        "ok"; "wrong" (another answer than the oracle's); "failed" (did not compile or launch); "hung" (killed); "slow"
        (given up early); "started" (running, or it took its process with it).
    median : float or None
        Of the rounds, in seconds on the device.
    rounds : tuple of float
        Seconds of each round.
    note : str
        Why it failed, or anything else worth keeping.
    when : float
        End (else start), in seconds since 1970.
    session : str
        The tuning that it belongs to; "import" for one that came from a file.
    case : str
        The exact problem that was run; times of different cases cannot be compared.
    final : bool
        Whether it is the outcome of a tuning: compared again with the defaults, and kept.
    process : str
        Who runs it: see :func:`process_token`.
    id : int
        Row of the database; 0 for one from a file.
    """

    key: TuningKey
    parameters: Mapping[str, Any]
    status: str
    median: float | None = None
    rounds: tuple[float, ...] = ()
    note: str = ""
    when: float = 0.0
    session: str = ""
    case: str = ""
    final: bool = False
    process: str = ""
    id: int = 0

    @property
    def canonical(self) -> str:
        """Canonical JSON of the parameters."""
        return canonical(self.parameters)

    @property
    def barring(self) -> bool:
        """Whether its configuration is not to be tried again: it ended badly, or it took its process with it."""
        return self.status in BARRING or (self.status == "started" and not alive(self.process, self.when))


def process_token() -> str:
    """This process: host, process number and, where the system tells it, the moment it began."""
    return f"{socket.gethostname()} {os.getpid()} {_born(os.getpid())}"


def alive(process: str, since: float) -> bool:
    """Whether the process of a token is still running; for another host's, whether ``since`` is recent."""
    host, _, rest = process.partition(" ")
    number, _, born = rest.partition(" ")
    if not number.isdigit():
        return False
    recent = time.time() - since < _GONE_AFTER_SECONDS
    if host != socket.gethostname():
        return recent
    # Numbers are used again: a process that began at another moment is another one.
    return runs(int(number), unknown=recent) and born in ("", _born(int(number)))


def _born(number: int) -> str:
    try:
        stat = Path(f"/proc/{number}/stat").read_text()
    except (OSError, ValueError):
        return ""
    return stat.rpartition(")")[2].split()[19]


def trial_line(trial: Trial) -> str:
    """A trial as one line of JSON."""
    record = {
        **key_as_dict(trial.key), "parameters": dict(trial.parameters), "status": trial.status,
        "rounds": list(trial.rounds), "note": trial.note, "when": round(trial.when, 3), "session": trial.session,
        "case": trial.case, "final": trial.final,
    }  # fmt: skip
    return canonical(record)


def seconds_of(rounds: Any) -> tuple[float, ...]:
    """Times as positive floats. Raises ValueError naming the first that is none."""
    if not isinstance(rounds, (list, tuple)):
        raise ValueError(f"times are {rounds!r}; a list of seconds is needed")
    return tuple(finite(value, "a time", "seconds above 0 are") for value in rounds)
