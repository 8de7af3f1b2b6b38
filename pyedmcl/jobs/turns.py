"""Which block a process computes next, of a job that several processes share by a folder.

A process goes on until the whole job is done: where nothing can be claimed it waits, and computes what those leave who
are gone, and once more what another one computes for so long that its device may hang.
"""

from __future__ import annotations

import random
import time
from collections import deque
from collections.abc import Callable, Collection
from typing import Any

from .. import config
from ..errors import InputError, shown
from .blocks import Wait
from .claims import Member, Waiting

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
    join : bool
    part : object
        As users give it; one implies ``join``.
    folder : object
        As users give it, under the name ``name``.
    resume : bool

    Raises
    ------
    InputError
        These do not go together.
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
    """Where among the blocks a process begins, in [0, 1): ``part`` as "I/N", else by the scheduler, else at random.

    Raises
    ------
    InputError
        It is something else.
    """
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
    member : Member
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
