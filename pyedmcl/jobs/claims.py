"""Processes that share only a folder: who works there, and who does what, told by files that are made exclusively.

A claim is a file of a private folder. Whoever creates it holds it, and touches it as long as he lives. What is not
touched any more for as long as its lifetime says is stale, and somebody else takes it over. Staleness is observed: a
file whose time does not change while this process watches it. So no two clocks are compared, and no file system needs
locks.

Claims share out work and decide no answer: who takes over what another one still computes does it twice.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from .. import config
from ..errors import StoreError, StoreForeignError, warn
from ..files import PRIVATE_PREFIX, read_plain, write_new
from . import durable, layout
from .manifest import now
from .ownership import IDENTITY
from .watch import FOLDER, GONE, LIVING, MEMBER, Holder, Watch, place

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

    Raises
    ------
    StoreError
        Somebody works there.
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

    Attributes
    ----------
    me : Holder
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
        """Say that this process works here, and go on saying it; a second call does nothing.

        Raises
        ------
        StoreWriteError
            The folder cannot be written.
        """
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
        """Claim ``name``. False where somebody holds it; a stale claim is left to :meth:`take_over`.

        Raises
        ------
        StoreWriteError
            The folder cannot be written.
        """
        moment = time.monotonic()
        LIVING.add(self.me.id)
        with self._explained():
            try:
                descriptor = self._create(name)
            except FileExistsError:
                return False
            self._held[name] = -math.inf  # for who is interrupted here: it is given back if it is surely ours
            try:
                # Without fsync: a claim need not outlive the machine.
                durable.write_all(descriptor, memoryview(json.dumps(self._said | {"time": now()}).encode()))
            except BaseException:
                with contextlib.suppress(OSError):
                    (self.folder / name).unlink()
                self._held.pop(name, None)
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
        do : callable
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
        """What the first one of all who share the folder said: ``value``, if that was this process.

        Raises
        ------
        StoreWriteError
            The folder cannot be written.
        StoreForeignError
            What is there is damaged.
        """
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
