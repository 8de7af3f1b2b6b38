"""Processes that share a map by a folder, simulated: for `scale_simulation.py`.

Processes claim blocks as `pyedmcl/jobs/claims.py` and `turns.py` do, with the numbers that stand there: a claim is made
exclusively, renewed four times within its lifetime, and taken over when it was seen unchanged for so long; a finished
block is a chunk, a line in the process's journal, and the removal of its claim. Who meets what others have claimed or
done passes all of it in one look; who works lists the claims now and then, and opens those that are there for longer
than a lifetime; who has nothing else to do computes again what others are at for too long. Each operation takes the
latency of the file system and its turn at a metadata server.

The map is that of Subject11's shape, 101,729 series of 8,528 steps with mixed E, which takes 609 s on one H200
(`results/h200-papers.jsonl`). Two processor cores are 60 times slower (`xmap` with mixed E in
`results/h200-bench.jsonl` and `cpu-bench.jsonl`). Start-up is left out, and so is what follows the last block.
"""

from __future__ import annotations

import bisect
import heapq
import itertools
import math
import random
from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass

from pyedmcl.jobs import claims, sharing
from pyedmcl.jobs.blocks import default_block_rows, shared_block_rows

SERIES, STEPS, H200_SECONDS, CORES = 101_729, 8_528, 609.0, 60.0
# What a process does for a block, as operations of the file system: it creates and writes the claim and asks whether
# the chunk is there; makes, writes, renames and syncs the chunk and adds to its journal; removes the claim.
CREATE, CLAIM, FINISH, GIVE, RENEW, TAKE_OVER = 1, 2, 5, 1, 2, 5
RENEWALS = 4
LOOK = sharing.LOOK_SECONDS  # between two looks of who works at what is done
NAMES = 1000  # of a folder, in one operation


@dataclass(frozen=True)
class Setting:
    """What is simulated.

    Attributes
    ----------
    workers : int
    rows : int
        Libraries of a block; 0 as many as the code takes where the number of workers is told (``--part``).
    slower : float
        How many times slower than an H200 each worker is.
    latency : float
        Seconds of an operation.
    capacity : float
        Operations a second of the metadata server.
    lost : float
        Share of the workers that is lost in an hour, for good.
    stragglers, straggling : float
        Share of the workers that are slower than the others, and how many times slower they are.
    lifetime : float
    spread : float
        Seconds within which all workers begin.
    early : bool
        Who works looks at what is left behind; else only those without work do.
    again : bool
        Who has no work computes again what others are at for long.
    journals : bool
        A look at what is done opens the journal of each worker; else it lists the folder of chunks.
    series, seconds : float
        The map, and how long one H200 takes for it.
    seed : int
        Of what is left to chance.
    """

    workers: int = 1000
    rows: int = 0
    slower: float = CORES
    latency: float = 0.001
    capacity: float = 20_000.0
    lost: float = 0.01
    stragglers: float = 0.0
    straggling: float = 4.0
    lifetime: float = 60.0
    spread: float = 5.0
    early: bool = True
    again: bool = True
    journals: bool = False
    series: int = SERIES
    seconds: float = H200_SECONDS
    seed: int = 0

    @property
    def block_rows(self) -> int:
        usual = default_block_rows(self.series)
        return self.rows or shared_block_rows(usual, self.series, self.series * STEPS, self.workers)


@dataclass(frozen=True)
class Outcome:
    """What came of it.

    Attributes
    ----------
    blocks : int
    wall : float
        Seconds.
    efficiency : float
        Work that had to be done, as a share of what all workers could have done while they lived.
    computed, doubled, unfinished : int
        Blocks that were computed; of these, those that another had done; those that were lost with their worker.
    gone : int
        Workers that were lost.
    operations : float
        Of the file system, a second.
    """

    blocks: int
    wall: float
    efficiency: float
    computed: int
    doubled: int
    unfinished: int
    gone: int
    operations: float


@dataclass(frozen=True)
class Operations:
    """``count`` operations, one after the other."""

    count: float


def listing(names: int) -> Operations:
    """The operations of a look at a folder of ``names`` names."""
    return Operations(1 + names / NAMES)


class Worker:
    """What a worker knows."""

    def __init__(self, first: int, blocks: int) -> None:
        self.queue: deque[int] = deque([*range(first, blocks), *range(first)])
        self.listings: list[float] = []  # when it listed the claims
        self.seen: dict[int, tuple[float, float]] = {}  # when claims were touched, and since when that is known
        self.next_look = self.missed = self.pass_seconds = 0.0
        self.passes = 0
        self.longest = 0.0
        self.watched = 0


Process = Iterator[float | Operations]
Steps = Generator[float | Operations, None, int | None]  # and the block that comes of them


class Simulation:
    """One run.

    Parameters
    ----------
    setting : Setting
    """

    def __init__(self, setting: Setting) -> None:
        self.setting = s = setting
        self.random = random.Random(s.seed)
        self.blocks = -(-s.series // s.block_rows)
        self.block_seconds = s.seconds * s.slower / self.blocks
        slow = int(s.stragglers * s.workers)
        self.pace = [s.straggling if worker < slow else 1.0 for worker in range(s.workers)]
        hours = 3600.0
        self.begun = [s.spread * self.random.random() for _ in self.pace]
        self.death = [self.random.expovariate(s.lost / hours) if s.lost else math.inf for _ in self.pace]
        self.workers = [Worker(self.blocks * worker // s.workers, self.blocks) for worker in range(s.workers)]
        self.claims: dict[int, int] = {}  # block -> who holds it, the oldest first
        self.claimed: dict[int, float] = {}
        self.touched: dict[int, float] = {}
        self.twice: dict[int, int] = {}  # block -> who computes it again
        self.free = set(range(self.blocks))  # neither claimed nor done
        self.done: dict[int, float] = {}  # block -> when
        self.computed = self.doubled = self.unfinished = 0
        self.operations = 0.0
        self.now = self.server = 0.0
        self._order = itertools.count()
        self._queue: list[tuple[float, int, int, Process]] = []
        self.holds: dict[int, int] = {}  # what a worker is at: worker -> block

    def run(self) -> Outcome:
        """Let all work until every block is done."""
        for worker in range(self.setting.workers):
            self._resume(self.begun[worker], worker, self._work(worker))
            self._resume(self.begun[worker], worker, self._renew(worker))
        while self._queue and len(self.done) < self.blocks:
            self.now, _, worker, process = heapq.heappop(self._queue)
            if self.now >= self.death[worker]:
                self.unfinished += self.holds.pop(worker, None) is not None
                continue
            wish = next(process, None)
            if wish is not None:
                self._resume(self._end(wish), worker, process)
        assert len(self.done) == self.blocks, "every worker was lost"
        ends = [min(death, self.now) for death in self.death]
        lives = zip(self.begun, ends, self.pace, strict=True)
        lived = sum(max(end - begun, 0.0) / pace for begun, end, pace in lives)
        return Outcome(
            self.blocks, self.now, self.blocks * self.block_seconds / lived, self.computed, self.doubled,
            self.unfinished, sum(death < self.now for death in self.death), self.operations / self.now,
        )  # fmt: skip

    def _resume(self, time: float, worker: int, process: Process) -> None:
        heapq.heappush(self._queue, (time, next(self._order), worker, process))

    def _end(self, wish: float | Operations) -> float:
        if not isinstance(wish, Operations):
            return self.now + wish
        self.operations += wish.count
        self.server = max(self.server, self.now) + wish.count / self.setting.capacity
        return self.server + wish.count * self.setting.latency

    # What a worker does

    def _work(self, worker: int) -> Process:
        me = self.workers[worker]
        me.next_look = self.now + LOOK * self.random.random()
        me.listings.append(self.now)
        while len(self.done) < self.blocks:
            number = yield from self._claim(worker)
            if number is None:
                yield claims._WAIT + claims._WAIT_OF_EACH * (self.setting.workers + len(self.claims))
                continue
            if self.now > me.next_look:
                begun = self.now
                yield self._look()
                me.next_look = self.now + max(LOOK, (self.now - begun) / claims._SHARE)
            begun = self.now
            self.holds[worker] = number
            yield self.block_seconds * self.pace[worker] * self.random.uniform(0.95, 1.05)
            yield Operations(FINISH)
            self.holds.pop(worker, None)
            self.computed += 1
            self.doubled += number in self.done
            self.done.setdefault(number, self.now)
            yield Operations(GIVE)
            me.longest = max(me.longest, self.now - begun)
            if self.claims.get(number) == worker:
                del self.claims[number]
            if self.twice.get(number) == worker:
                del self.twice[number]

    def _claim(self, worker: int) -> Steps:
        """A block; None where there is none for this worker now."""
        me, s = self.workers[worker], self.setting
        if s.early and self.now - me.listings[-1] > s.lifetime / claims._LISTINGS:
            yield from self._list_claims(me)
            old = list(itertools.takewhile(lambda one: self.claimed[one] < self.now - s.lifetime, self.claims))
            number = yield from self._taken_over(worker, [one for one in old if self._seen_for(me, one) > s.lifetime])
            if number is not None:
                return number
        passes = me.passes
        number = yield from self._next(worker)
        if number is None and me.passes == passes:
            yield from self._pass(me)
            number = yield from self._next(worker)
        if number is None:
            held = [one for one in self.claims if one not in self.done]
            number = yield from self._taken_over(worker, held)
        if number is None and s.again:
            number = yield from self._done_again(worker)
        return number

    def _next(self, worker: int) -> Steps:
        """The next block that nobody has, as far as this worker knows."""
        me = self.workers[worker]
        while me.queue:
            number, begun = me.queue.popleft(), self.now
            yield Operations(CREATE)
            if number in self.free:
                self.free.discard(number)
                self.claims[number], self.claimed[number], self.touched[number] = worker, self.now, self.now
                yield Operations(CLAIM)
                return number
            if number not in self.claims:  # only the chunk tells that it is done
                yield Operations(CLAIM + GIVE)
            me.missed += self.now - begun
            if me.missed >= me.pass_seconds:
                yield from self._pass(me)
        return None

    def _pass(self, me: Worker) -> Process:
        """See what nobody has done or claimed."""
        begun = self.now
        yield self._look()
        yield from self._list_claims(me)
        free = sorted(self.free)
        self.random.shuffle(free)
        me.queue, me.missed, me.pass_seconds, me.passes = deque(free), 0.0, self.now - begun, me.passes + 1

    def _list_claims(self, me: Worker) -> Process:
        yield listing(len(self.claims) + self.setting.workers)
        me.listings.append(self.now)

    def _seen_for(self, me: Worker, number: int) -> float:
        """Seconds for which a worker has seen a block claimed."""
        place = bisect.bisect_left(me.listings, self.claimed[number])
        return self.now - me.listings[place] if place < len(me.listings) else 0.0

    def _taken_over(self, worker: int, held: list[int]) -> Steps:
        """One of some claimed blocks, if it has not been touched for its lifetime, as far as this worker has seen."""
        me = self.workers[worker]
        for _ in range(min(claims._WATCHED, len(held))):
            number = held[me.watched % len(held)]
            me.watched += 1
            yield Operations(1)
            touched = self.touched[number]
            if me.seen.get(number, (-1.0, 0.0))[0] != touched:
                me.seen[number] = touched, self.now
            elif self.now - me.seen[number][1] > self.setting.lifetime and number not in self.done:
                self.claims[number], self.touched[number] = worker, self.now
                yield Operations(TAKE_OVER)
                return number
        return None

    def _done_again(self, worker: int) -> Steps:
        """A block that another worker has been at for too long."""
        me, s = self.workers[worker], self.setting
        patience = claims._PATIENCE * s.lifetime
        if me.longest:
            patience = max(claims._PATIENCE * me.longest, claims._LEAST_PATIENCE * s.lifetime)
        for number in [one for one in self.claims if one not in self.done]:
            free = number not in self.twice or self.death[self.twice[number]] < self.now - s.lifetime
            if free and self._seen_for(me, number) > patience:
                self.twice[number] = worker
                yield Operations(CREATE + CLAIM)
                return number
        return None

    def _look(self) -> Operations:
        """What it takes to learn what all have done."""
        return Operations(1 + self.setting.workers) if self.setting.journals else listing(self.blocks)

    def _renew(self, worker: int) -> Process:
        while True:
            yield self.setting.lifetime / RENEWALS
            number = self.holds.get(worker)
            yield Operations(RENEW if number is None else 2 * RENEW)
            if number is not None and self.claims.get(number) == worker:
                self.touched[number] = self.now
