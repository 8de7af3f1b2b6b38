"""Who holds the claims of a shared folder, as somebody sees who looks at it again and again; see :mod:`.claims`.

What is not touched any more for as long as its lifetime says is stale. That is observed: a file whose time does not
change while this process watches it. So no two clocks are compared.
"""

from __future__ import annotations

import json
import math
import os
import stat
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .. import config
from ..files import PRIVATE_PREFIX, TEMPORARY_PREFIX, names_in, open_plain
from ..processes import runs
from . import durable

#: The private folder of those who share a folder.
FOLDER = PRIVATE_PREFIX + "join"
#: First part of the names of claims that say who works here, and nothing else.
MEMBER = "member-"
#: First part of the names of claims that are being taken over.
GONE = "gone-"
_LONGEST_LIFETIME = 86400.0
#: Ids of this process's own members that are at work. A claim of this process by another one is of who was interrupted.
LIVING: set[str] = set()


def place() -> str:
    """Where the pids of this machine are known: its boot and the namespace of pids; empty where nothing tells."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


@dataclass(frozen=True)
class Holder:
    """Who holds a claim, as the claim tells.

    Attributes
    ----------
    id : str
        Of the process; no other one ever has it.
    host, place, device : str
        ``place``: where ``pid`` means something.
    pid : int
    time : str
        When it was claimed, by the clock of the host; only shown.
    lifetime : float
        Seconds after which an untouched claim is stale.
    """

    id: str = ""
    host: str = "?"
    pid: int = 0
    place: str = ""
    device: str = ""
    time: str = ""
    lifetime: float = config.CLAIM_LIFETIME

    def ended(self) -> bool:
        """Whether it is known to have ended: it ran on this machine, where there is no such process any more."""
        if not self.place or self.place != place():
            return False
        return self.id not in LIVING if self.pid == os.getpid() else not runs(self.pid)

    def said(self) -> dict[str, Any]:
        """What a claim tells of its holder, as its file has it."""
        return asdict(self)

    def __str__(self) -> str:
        return durable.signed(self.pid, self.host)


def _holder(data: bytes) -> Holder:
    """What a claim says; its maker may have been killed before it said anything, or it is damaged."""
    try:
        claim = json.loads(data)
        lifetime, pid = float(claim["lifetime"]), claim["pid"]
        if not math.isfinite(lifetime) or type(pid) is not int:
            raise ValueError("no number")
        texts = {name: str(claim[name]) for name in ("id", "host", "place", "device", "time")}
        return Holder(**texts, pid=pid, lifetime=min(max(lifetime, 0.0), _LONGEST_LIFETIME))
    except (ValueError, LookupError, TypeError, RecursionError, OverflowError):
        return Holder(lifetime=config.current().claim_lifetime)


@dataclass(frozen=True)
class _Seen:
    """What a claim was like when it was last seen to differ from before, when that was, and whether it was a touch."""

    holder: Holder
    mtime: int
    moment: float
    touched: bool

    @property
    def unchanged(self) -> float:
        """Seconds since then."""
        return time.monotonic() - self.moment


@dataclass
class Watch:
    """Looks at the claims of a folder, again and again.

    Attributes
    ----------
    folder : Path
        Of the claims; it need not be there.
    """

    folder: Path
    _seen: dict[str, _Seen] = field(default_factory=dict)
    _listed: dict[str, float] = field(default_factory=dict)  # when names were there first

    def names(self) -> set[str]:
        """What is claimed, by one look at the folder."""
        try:
            listed = {name for name in names_in(self.folder) if not name.startswith((GONE, TEMPORARY_PREFIX))}
        except (FileNotFoundError, NotADirectoryError):
            listed = set()
        moment = time.monotonic()
        self._listed = {name: self._listed.get(name, moment) for name in listed}
        return listed

    def listed_for(self, name: str) -> float:
        """Seconds for which :meth:`names` has given a claim; 0 where the last time it did not."""
        moment = time.monotonic()
        return moment - self._listed.get(name, moment)

    def members(self) -> list[str]:
        """Claims that say who works here, and nothing else."""
        return sorted(name for name in self.names() if name.startswith(MEMBER))

    def look(self, name: str) -> tuple[Holder, int] | None:
        """Who holds a claim, and when it was touched (in nanoseconds, by the file system); None where there is none.

        A folder or a link of that name is held by nobody, and goes stale as a claim that says nothing.
        """
        try:
            descriptor = open_plain(self.folder / name)  # opening has NFS ask its server
        except FileNotFoundError:
            return None
        except OSError:
            try:
                status = os.lstat(self.folder / name)
            except OSError:
                return None
            return None if stat.S_ISREG(status.st_mode) else (_holder(b""), status.st_mtime_ns)
        try:
            return _holder(os.read(descriptor, 4096)), os.fstat(descriptor).st_mtime_ns
        except OSError:
            return None
        finally:
            os.close(descriptor)

    def _watched(self, name: str) -> _Seen | None:
        claimed = self.look(name)
        if claimed is None:
            self._seen.pop(name, None)
            return None
        holder, mtime = claimed
        before = self._seen.get(name)
        if before is None or before.holder != holder or before.mtime != mtime:
            touched = before is not None and before.holder == holder
            self._seen[name] = before = _Seen(holder, mtime, time.monotonic(), touched)
        return before

    def stale(self, name: str) -> Holder | None:
        """Who held a claim and is gone: he ended on this machine, or has not touched it for its lifetime. Else None."""
        seen = self._watched(name)
        gone = seen is not None and (seen.holder.ended() or seen.unchanged > seen.holder.lifetime)
        return seen.holder if seen is not None and gone else None

    def alive(self, name: str) -> Holder | None:
        """Who surely lives: he was seen to touch the claim, or runs on this machine."""
        seen = self._watched(name)
        if seen is None or seen.holder.ended() or seen.unchanged > seen.holder.lifetime:
            return None
        here = bool(seen.holder.place) and seen.holder.place == place()
        return seen.holder if here or seen.touched else None
