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
from .claims import Member

# Of the claims of others, so many are looked at each time, in turns: a thousand processes may wait for a thousand.
_WATCHED = 16
# What another process computes for so many times as long as the longest block took here is computed a second time; the
# first one that ends makes the block done. Where none was computed here, a block may take so many leases.
_PATIENCE = 10
_AGAIN = "-again"
# Between two looks at what others do, while waiting: so long, and as much longer as there are others.
_WAIT, _WAIT_OF_EACH = 0.25, 0.005


def begin_of(join: bool, part: Any, folder: Any, name: str, *, resume: bool = True) -> float | None:
    """Where among the blocks this process begins if it shares a folder with others; None where it does not.

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
        Blocks that are not done, as is learnt by looking.
    finished : callable
        Whether a block is done, exactly.
    """

    def __init__(
        self, member: Member, kind: str, n: int, begin: float, pending: Callable[[], Collection[int]],
        finished: Callable[[int], bool],
    ) -> None:  # fmt: skip
        first = int(n * begin)
        self._order = [*range(first, n), *range(first)]
        self._member, self._kind = member, kind
        self._pending, self._finished = pending, finished
        self._queue: deque[int] = deque(self._order)
        self._mine: dict[int, float] = {}  # and when they were begun
        self._longest: float | None = None  # seconds of a block that was done here
        self._watched = 0

    def _name(self, number: int) -> str:
        return f"{self._kind}-{number}"

    def claim(self) -> int | Wait | None:
        """A block; how long to wait where others hold all that are left; None where this process holds all, or none
        is left."""
        found = self._next()
        if found is not None:
            return found
        left = set(self._pending()) - set(self._mine)
        if not left:
            return None
        taken = self._member.names()
        ordered: list[int] = [number for number in self._order if number in left]
        self._queue.extend(number for number in ordered if self._name(number) not in taken)
        found = self._next()
        if found is not None:
            return found
        for _ in range(min(_WATCHED, len(ordered))):
            number = ordered[self._watched % len(ordered)]
            self._watched += 1
            if (self._member.take_over(self._name(number)) or self._is_late(number)) and self._is_new(number):
                return number
        return Wait(_WAIT + _WAIT_OF_EACH * len(taken))

    def _next(self) -> int | None:
        taken: set[str] = set()
        while self._queue:
            number: int = self._queue.popleft()
            name = self._name(number)
            if name in taken or number in self._mine:
                continue
            if not self._member.take(name):
                taken = self._member.names()  # so that others are passed in one look
            elif self._is_new(number):
                return number
        return None

    def _is_new(self, number: int) -> bool:
        """Whether a block that was just claimed is still to be done: its claim may have been given back as done."""
        if self._finished(number):
            self._give(number)
            return False
        self._mine[number] = time.monotonic()
        return True

    def _is_late(self, number: int) -> bool:
        """Whether a block has been claimed for too long; if so this process, and no third one, computes it, too."""
        lease = self._member.me.lease
        patience = _PATIENCE * lease if self._longest is None else max(_PATIENCE * self._longest, lease)
        if self._member.held_for(self._name(number)) <= patience:
            return False
        again = self._name(number) + _AGAIN
        return self._member.take(again) or self._member.take_over(again)

    def _give(self, number: int) -> None:
        for name in (self._name(number), self._name(number) + _AGAIN):
            self._member.give(name)

    def give_back(self, number: int) -> None:
        """Give a block back that is done."""
        self._longest = max(self._longest or 0.0, time.monotonic() - self._mine.pop(number))
        self._give(number)

    def again(self, number: int) -> None:
        """Give a block back that is not done, for somebody else."""
        del self._mine[number]
        self._give(number)
        self._queue.append(number)
