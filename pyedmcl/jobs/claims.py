"""Processes that share only a folder: who works there, who computes which block, and who is lost."""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import re
import secrets
import signal
import socket
import stat
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from .. import config
from ..atomic_files import PRIVATE_PREFIX, TEMPORARY_PREFIX, names_in, open_plain, read_plain, write_new
from ..config import runs
from ..errors import InputError, StoreError, StoreForeignError, shown, warn
from . import durable, layout
from .blocks import Wait, now
from .records import IDENTITY

# Who holds the claims of a shared folder, as somebody sees who looks at it again and again; see this module.
#
# What is not touched any more for as long as its lifetime says is stale. That is observed: a file whose time does not
# change while this process watches it. So no two clocks are compared.


#: The private folder of those who share a folder.
FOLDER = PRIVATE_PREFIX + "join"
#: First part of the names of claims that say who works here, and nothing else.
MEMBER = "member-"
#: First part of the names of claims that are being taken over.
GONE = "gone-"
_LONGEST_LIFETIME = 86400.0
#: Ids of this process's own members that are at work. A claim of this process by another one is of who was interrupted.
LIVING: set[str] = set()


@contextlib.contextmanager
def _uninterrupted() -> Iterator[None]:
    """Ctrl-C within the block is heard at its end, so that a file that was made is always known to its process."""
    before = signal.getsignal(signal.SIGINT)
    if not callable(before) or threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[tuple[Any, ...]] = []
    signal.signal(signal.SIGINT, lambda *said: heard.append(said))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
        if heard:
            before(*heard[0])


def place() -> str:
    """Where the pids of this machine are known: its boot and the namespace of pids; empty where nothing tells."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


@dataclass(frozen=True)
class Holder:
    """Who holds a claim, as the claim tells."""

    # Of the process; no other one ever has it.
    id: str = ""
    # host, place, device: ``place``: where ``pid`` means something.
    host: str = "?"
    pid: int = 0
    place: str = ""
    device: str = ""
    # When it was claimed, by the clock of the host; only shown.
    time: str = ""
    # Seconds after which an untouched claim is stale.
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
    """Looks at the claims of a folder, again and again."""

    # Of the claims; it need not be there.
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


# A claim is a file of a private folder. Whoever creates it holds it, and touches it as long as he lives. What is not
# touched any more for as long as its lifetime says is stale, and somebody else takes it over. Staleness is observed: a
# file whose time does not change while this process watches it. So no two clocks are compared, and no file system needs
# locks.
#
# Claims share out work and decide no answer: who takes over what another one still computes does it twice.


_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
_RENEWALS = 4  # of a claim within its lifetime
_TELL_SECONDS = 60.0  # after which it is said for whom this process waits
# Names in the folder of those who share: claims of members, of blocks, bands and steps, and of what one does for all.
_STAGE = r"E(?:-[0-9a-f]+)?|round-\d+"
_OURS = re.compile(
    rf"member-.+|gone-[0-9a-f]+|setup|journals|seed|{re.escape(PRIVATE_PREFIX)}.*|"
    rf"(block|band|\d{{3,}}-\w+|{_STAGE})-\d+(-again)?"
)
_OF_A_STAGE = re.compile(rf"part-\d+-\d+\.npz|{re.escape(IDENTITY)}")


def require_alone(path: Path) -> None:
    """Make sure that no joined run works in a folder, for who is about to change more than blocks.

    Where one was lost on another machine, this takes as long as its lifetime.
    """
    watch, waiting = Watch(path / FOLDER), Waiting(path)
    while left := [name for name in watch.members() if watch.stale(name) is None]:
        holders = [holder for name in left if (holder := watch.alive(name)) is not None]
        if holders:
            shown = ", ".join(map(str, holders[:3])) + (f" and {len(holders) - 3} more" if len(holders) > 3 else "")
            raise StoreError(
                f"{path} is being written by joined runs ({shown}): join them (join=True, --join), wait until they "
                "end, stop them, or choose another output path"
            )
        waiting.pause(watch, left[0], most=0.2)


class Waiting:
    """Somebody waits for others, at first briefly; after a minute it is told for whom.

    Parameters
    ----------
    path : Path
        The folder that is shared.
    """

    def __init__(self, path: Path) -> None:
        self._path, self._begun, self._seconds, self._told = path, time.monotonic(), 0.01, False

    def pause(self, watch: Watch, name: str, most: float = 0.5) -> None:
        """Wait for who holds the claim ``name``."""
        time.sleep(self._seconds)
        self._seconds = min(2 * self._seconds, most)
        self.tell(watch, name)

    def tell(self, watch: Watch, name: str) -> None:
        """Say once, after a minute, who is waited for."""
        if self._told or time.monotonic() - self._begun < _TELL_SECONDS:
            return
        claim = watch.look(name)
        if claim is not None:
            self._told = True
            holder = claim[0]
            who = str(holder) if holder.id else "a process that has not said its name"
            warn(
                f"{self._path}: this process waits for {who}, which holds {watch.folder / name}; if that process is "
                f"gone, it is taken over {holder.lifetime:.3g} seconds after its last sign of life"
            )


def remove_claims(path: Path) -> None:
    """Remove what lost processes have left of sharing a folder, after :func:`require_alone`."""
    _remove_all(path / FOLDER, lambda name: True)


def _remove_all(folder: Path, unused: Callable[[str], bool]) -> None:
    """Remove what is ours and ``unused`` in the folder of those who share, and the folder once it is empty."""
    with contextlib.suppress(OSError):
        stages = [name for name in durable.names_in(folder) if re.fullmatch(_STAGE, name)]
        for name in stages:
            layout.remove_folder(folder / name, lambda one: _OF_A_STAGE.fullmatch(one) is not None)
        left = durable.remove_from(folder, lambda name: _OURS.fullmatch(name) is not None and unused(name))
        foreign = [name for name in left if not _OURS.fullmatch(name) and name not in stages]
        if foreign:
            warn(f"{folder} holds what pyedmcl did not write, and which is left there: {', '.join(foreign[:5])}")
        folder.rmdir()


class Member(Watch):
    """This process, as one of those who share a folder; a context manager. Nothing is written before :meth:`enter`.

    Parameters
    ----------
    path : Path
        The folder that is shared.
    device : str
        Its name, to be shown.
    """

    def __init__(self, path: Path, device: str = "") -> None:
        super().__init__(path / FOLDER)
        host = socket.gethostname()
        self.me = Holder(f"{host}-{os.getpid()}-{secrets.token_hex(4)}", host, os.getpid(), place(), device,
                         lifetime=config.current().claim_lifetime)  # fmt: skip
        self._said = self.me.said()
        self._held: dict[str, float] = {}  # and when it was surely this process's
        self._mutex = threading.Lock()
        self._ended = threading.Event()
        self._renewal: threading.Thread | None = None

    def __enter__(self) -> Member:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def enter(self) -> None:
        """Say that this process works here, and go on saying it; a second call does nothing."""
        if self._renewal is None:
            with self._explained():
                durable.inner_folder(self.folder)
            self.take(MEMBER + self.me.id)
            renewal = threading.Thread(target=self._renew, name="pyedmcl-claims", daemon=True)
            renewal.start()
            self._renewal = renewal  # only then: whoever is interrupted in between has nothing to join

    def _explained(self) -> contextlib.AbstractContextManager[None]:
        return durable.explained(f"{self.folder.parent} cannot be written", ", then run the same command again")

    def _renew(self) -> None:
        while not self._ended.wait(self.me.lifetime / _RENEWALS):
            with self._mutex:
                held = list(self._held)
            for name in held:
                with contextlib.suppress(OSError):  # a disk that is away for a while
                    moment = time.monotonic()
                    if self._mine(name):
                        os.utime(self.folder / name)
                        with self._mutex:
                            if name in self._held:
                                self._held[name] = moment

    def _mine(self, name: str) -> bool:
        """Whether a claim is still this process's: who was suspended for long may have lost it."""
        claim = self.look(name)
        return claim is not None and claim[0].id == self.me.id

    def take(self, name: str) -> bool:
        """Claim ``name``. False where somebody holds it; a stale claim is left to :meth:`take_over`."""
        moment = time.monotonic()
        LIVING.add(self.me.id)
        with self._explained(), _uninterrupted():
            try:
                descriptor = self._create(name)
            except FileExistsError:
                return False
            try:
                # Without fsync: a claim need not outlive the machine.
                durable.write_all(descriptor, memoryview(json.dumps(self._said | {"time": now()}).encode()))
            except BaseException:
                with contextlib.suppress(OSError):
                    (self.folder / name).unlink()
                raise
            finally:
                os.close(descriptor)
            with self._mutex:
                self._held[name] = moment
        return True

    def _create(self, name: str) -> int:
        try:
            return os.open(self.folder / name, _NEW, 0o666)
        except FileNotFoundError:  # who thought that he left last has removed the folder
            durable.inner_folder(self.folder)
            return os.open(self.folder / name, _NEW, 0o666)

    def take_over(self, name: str) -> bool:
        """Claim what somebody held who is gone. False where he is not."""
        gone = self.stale(name)
        if gone is None:
            return False
        aside = self.folder / f"{GONE}{secrets.token_hex(8)}"
        try:
            os.rename(self.folder / name, aside)  # of several who do this, one finds it there
            claim = self.look(aside.name)
            same = claim is not None and claim[0] == gone
            if not same:  # somebody was quicker, and this is his claim
                os.link(aside, self.folder / name)
        except OSError:
            same = False
        with contextlib.suppress(OSError):
            aside.unlink()
        self._seen.pop(name, None)
        return same and self.take(name)

    def give(self, name: str) -> None:
        """Give a claim back, if it is still this process's."""
        with self._mutex:
            since = self._held.pop(name, None)
        if since is None:
            return
        # Nobody takes over what was touched within the lifetime, so that nothing needs to be read within half of it.
        sure = time.monotonic() - since < self.me.lifetime / 2
        with contextlib.suppress(OSError):
            if sure or self._mine(name):
                (self.folder / name).unlink()

    @contextlib.contextmanager
    def alone(self, name: str) -> Iterator[None]:
        """Within the block nobody else is in such a block; whoever is in it is waited for."""
        waiting = Waiting(self.folder.parent)
        while not (self.take(name) or self.take_over(name)):
            waiting.pause(self, name)
        try:
            yield
        finally:
            self.give(name)

    def once(self, name: str, needed: Callable[[], bool], do: Callable[[], None]) -> None:
        """Do what is needed alone, or wait until somebody else has done it.

        Parameters
        ----------
        name : str
            Of the claim of who does it.
        needed : callable
            Whether it is still to be done; asked again and again, so that of a thousand who wait one does it.
        """
        waiting = Waiting(self.folder.parent)
        while needed():
            if self.take(name) or self.take_over(name):
                try:
                    if needed():
                        do()
                finally:
                    self.give(name)
                return
            waiting.pause(self, name)

    def decide(self, name: str, value: Any) -> Any:
        """What the first one of all who share the folder said: ``value``, if that was this process."""
        self.enter()
        path = self.folder / name
        with self._explained():
            write_new(path, json.dumps(value).encode())
            said = read_plain(path)
        with contextlib.suppress(ValueError, RecursionError):
            decided = json.loads(said)
            if type(decided) is type(value):
                return decided
        raise StoreForeignError(f"{path} is damaged: remove it while no run works in {self.folder.parent}")

    def others(self) -> bool:
        """Whether anybody else works here, or may."""
        mine = MEMBER + self.me.id
        return any(self.stale(name) is None for name in self.members() if name != mine)

    def withdraw(self) -> None:
        """Say that this process does no more work here; it may still clear up."""
        self.give(MEMBER + self.me.id)

    def settle(self, finish: Callable[[], None]) -> None:
        """Clear up behind all who shared a complete result, if this process is the last one.

        Parameters
        ----------
        finish : callable
            Makes the result look as if one process had written it.
        """
        self.withdraw()
        if self.others():  # of a thousand who leave, few come further
            return
        with self.alone("setup"):
            if not self.others():
                finish()
                _remove_all(self.folder, self._unused)

    def _unused(self, name: str) -> bool:
        return not (name in self._held or (name.startswith(MEMBER) and self.stale(name) is None))

    def close(self) -> None:
        """Give back all claims; a second call does nothing."""
        self._ended.set()
        if self._renewal is not None:
            self._renewal.join()
        for name in list(self._held):
            self.give(name)
        LIVING.discard(self.me.id)
        with contextlib.suppress(OSError):  # others are there, or it was never made
            self.folder.rmdir()


# Which block a process computes next, of a job that several processes share by a folder.
#
# A process goes on until the whole job is done: where nothing can be claimed it waits, and computes what those leave
# who are gone, and once more what another one computes for so long that its device may hang.


# Of the claims of others, this many are looked at each time, in turns: a thousand processes may wait for a thousand.
_WATCHED = 16
# What another process computes for this many times as long as the longest block took here is computed a second time by
# one that has nothing else to do; the first one that ends makes the block done. But not before a share of the lifetime
# of a claim; and where no block was computed here, a block may take this many lifetimes.
_PATIENCE = 2
_LEAST_PATIENCE = 1 / 20
_AGAIN = "-again"
# Between two looks at what others do, while waiting: so long, and as much longer as there are others.
_WAIT, _WAIT_OF_EACH = 0.1, 0.002
# Who has work lists the claims this many times in a lifetime of a claim, and opens those that are older.
_LISTINGS = 8
# Looks of who works at what is done take at most such a share of its time.
_SHARE = 0.002


def begin_of(join: bool, part: Any, folder: Any, name: str, *, resume: bool = True) -> float | None:
    """Where among the blocks this process begins if it shares a folder with others; None where it does not.

    All that is handed a ``begin`` reads both from it: None means that this process works alone, a number that it has
    joined and begins there.

    Parameters
    ----------
    part : object
        As users give it; one implies ``join``.
    folder : object
        As users give it, under the name ``name``.
    """
    if not join and part is None:
        return None
    if folder is None:
        raise InputError(f"join=True: processes share a folder; name it by {name}=")
    if not resume:
        raise InputError(
            "resume=False with join=True would remove what the others compute: remove the folder first, or name "
            "another one"
        )
    return part_of(part)


def part_of(part: Any) -> float:
    """Where among the blocks a process begins, in [0, 1): ``part`` as "I/N", else by the scheduler, else at random."""
    if part is None:
        number, count = config.part() or (random.randrange(1 << 16), 1 << 16)
        return number / count
    words = part.split("/") if isinstance(part, str) else ()
    if len(words) == 2 and all(word.isascii() and word.isdecimal() and len(word) < 10 for word in words):
        number, count = map(int, words)
        if 1 <= number <= count:
            return (number - 1) / count
    raise InputError(f"part={shown(part)}: 'I/N' is needed, the part I of N, counted from 1")


def processes(part: Any) -> int:
    """How many processes join: as ``part`` says, which :func:`part_of` has checked, or the scheduler; else 1."""
    if part is None:
        return (config.part() or (0, 1))[1]
    return int(part.split("/")[1])


class Pace:
    """Limits how often something is done, by how long it takes: a context manager that says whether it is due.

    Parameters
    ----------
    least : float
        Seconds between two times.
    """

    def __init__(self, least: float) -> None:
        self._least = least
        self._next = time.monotonic() + least * random.random()  # a thousand that begin together do not look together

    def __enter__(self) -> bool:
        self._begun = time.monotonic()
        self._due = self._begun >= self._next
        return self._due

    def __exit__(self, *exc: object) -> None:
        if self._due:
            end = time.monotonic()
            self._next = end + max(self._least, (end - self._begun) / _SHARE)


class SharedBlocks:
    """Which block this process computes next, of those that nobody has done or claimed.

    Parameters
    ----------
    kind : str
        First part of the names of claims.
    n : int
        Blocks.
    begin : float
        Where this process begins, in [0, 1).
    pending : callable
        Blocks that are not done, as is learnt by looking; how long to wait where somebody else is finding that out.
    finished : callable
        Whether a block is done, exactly.
    """

    def __init__(
        self, member: Member, kind: str, n: int, begin: float, pending: Callable[[], Collection[int] | Wait],
        finished: Callable[[int], bool],
    ) -> None:  # fmt: skip
        first = int(n * begin)
        self._member, self._kind = member, kind
        self._pending, self._finished = pending, finished
        self._queue: deque[int] = deque([*range(first, n), *range(first)])
        self._mine: dict[int, float] = {}  # and when they were begun
        self._longest: float | None = None  # seconds of a block that was done here
        self._watched = 0
        self._left: set[int] | Wait = set()  # not done, and claimed, when it looked last
        self._taken: set[str] = set()
        self._listed = time.monotonic()
        self._missed = self._look_seconds = 0.0
        self._looks = 0
        self._waiting: Waiting | None = None  # since when nothing could be claimed

    @property
    def at_work(self) -> bool:
        """Whether this process computes any block now."""
        return bool(self._mine)

    def _name(self, number: int) -> str:
        return f"{self._kind}-{number}"

    def claim(self) -> int | Wait | None:
        """A block; how long to wait where others hold all that are left; None where this process holds all, or none
        is left."""
        looks = self._looks
        block = self._left_behind()
        if block is None:
            block = self._next()
        if block is None and looks == self._looks:
            self._look()
            block = self._next()
        if block is not None:
            self._waiting = None
            return block
        if isinstance(self._left, Wait):
            return self._left
        held = sorted(self._left.difference(self._mine))
        if not held:
            return None
        block = self._taken_over(held)
        if block is None:
            block = self._done_again(held)
        if block is not None:
            self._waiting = None
            return block
        self._waiting = self._waiting or Waiting(self._member.folder.parent)
        self._waiting.tell(self._member, self._name(held[0]))
        return Wait(_WAIT + _WAIT_OF_EACH * len(self._taken))

    def _next(self) -> int | None:
        """A block that nobody has claimed, as far as this process knows."""
        while self._queue:
            number, begun = self._queue.popleft(), time.monotonic()
            if number in self._mine:
                continue
            if self._member.take(self._name(number)) and self._is_new(number):
                return number
            # Somebody was here. What else is claimed or done is passed in one look, once as much time was lost.
            self._missed += time.monotonic() - begun
            if self._missed >= self._look_seconds:
                self._look()
        return None

    def _look(self) -> None:
        """See what nobody has done or claimed, and go on with any of it: whoever else looks takes something else."""
        begun, pending = time.monotonic(), self._pending()
        self._left = pending if isinstance(pending, Wait) else set(pending)
        self._taken = self._member.names()
        self._listed = time.monotonic()
        free = set() if isinstance(self._left, Wait) else self._left.difference(self._mine)
        free = {number for number in free if self._name(number) not in self._taken}
        self._queue = deque(random.sample(sorted(free), len(free)))
        self._missed, self._look_seconds, self._looks = 0.0, self._listed - begun, self._looks + 1

    def _is_new(self, number: int) -> bool:
        """Whether a block that was just claimed is still to be done: its claim may have been given back as done."""
        if self._finished(number):
            self._give(number)
            return False
        self._mine[number] = time.monotonic()
        return True

    def _left_behind(self) -> int | None:
        """A block of who is gone. Of claims that are older than their lifetime some are opened, now and then."""
        lifetime, listed_for = self._member.me.lifetime, self._member.listed_for
        if time.monotonic() - self._listed < lifetime / _LISTINGS:
            return None
        self._listed, kind = time.monotonic(), self._kind + "-"
        old = [name for name in self._member.names() if name.startswith(kind) and listed_for(name) > lifetime]
        numbers = sorted(int(name[len(kind) :]) for name in old if name[len(kind) :].isdecimal())
        return self._taken_over([number for number in numbers if number not in self._mine])

    def _taken_over(self, held: list[int]) -> int | None:
        """One of some claimed blocks, if who held it is gone."""
        for _ in range(min(_WATCHED, len(held))):
            number = held[self._watched % len(held)]
            self._watched += 1
            if self._member.take_over(self._name(number)) and self._is_new(number):
                return number
        return None

    def _done_again(self, held: list[int]) -> int | None:
        """One of some claimed blocks, if it has been claimed for too long and no third process computes it."""
        lifetime, listed_for = self._member.me.lifetime, self._member.listed_for
        patience = _PATIENCE * lifetime
        if self._longest is not None:
            patience = max(_PATIENCE * self._longest, _LEAST_PATIENCE * lifetime)
        late = [number for number in held if listed_for(self._name(number)) > patience]
        for number in sorted(late, key=lambda one: -listed_for(self._name(one)))[:_WATCHED]:
            again = self._name(number) + _AGAIN
            mine = self._member.take_over(again) if again in self._taken else self._member.take(again)
            if mine and self._is_new(number):
                return number
        return None

    def _give(self, number: int) -> None:
        for name in (self._name(number), self._name(number) + _AGAIN):
            self._member.give(name)

    def done(self, number: int) -> None:
        """Give a block back that is done."""
        self._longest = max(self._longest or 0.0, time.monotonic() - self._mine.pop(number))
        self._give(number)

    def give_back(self, number: int) -> None:
        """Give a block back that is not done, for somebody else."""
        del self._mine[number]
        self._give(number)
        self._queue.append(number)
