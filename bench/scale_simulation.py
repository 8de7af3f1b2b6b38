"""Simulate processes that share a map by a folder: how much of their time is work, and what the file system has to do.

usage: python bench/scale_simulation.py [--out FILE] [--quick]

Processes claim blocks as `pyedmcl/jobs/claims.py` and `turns.py` do: a claim is made exclusively, renewed four times
within its lease, and taken over when it was seen unchanged for so long; a finished block is a chunk, a line in the
process's journal, and the removal of its claim. Each operation takes the latency of the file system and its turn at a
metadata server. Processes are lost, are slow, and are watched by the others as the code does it.

The map is that of Subject11's shape, 101,729 series of 8,528 steps with mixed E, which takes 609 s on one H200
(`results/h200-papers.jsonl`). Two processor cores are 60 times slower (`xmap` with mixed E in
`results/h200-bench.jsonl` and `cpu-bench.jsonl`). Start-up is left out.

Prints a line for each setting and appends it to FILE; `docs/scale.md` says what follows.
"""

from __future__ import annotations

import argparse
import heapq
import itertools
import json
import math
import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace

SERIES, H200_SECONDS, CORES = 101_729, 609.0, 60.0
# What a process does for a block, as operations of the file system: it creates and writes the claim and asks whether
# the chunk is there; makes, writes, renames and syncs the chunk and adds to its journal; looks whether the claim is
# still its own and removes it.
CLAIM, FINISH, GIVE, RENEW, TAKE_OVER = 2, 5, 2, 2, 5
RENEWALS, WATCHED, WAIT, WAIT_OF_EACH = 4, 16, 0.25, 0.005


@dataclass(frozen=True)
class Setting:
    """What is simulated.

    Attributes
    ----------
    workers : int
    rows : int
        Libraries of a block.
    slower : float
        How many times slower than an H200 each worker is.
    latency : float
        Seconds of an operation.
    capacity : float
        Operations a second of the metadata server.
    lost : float
        Share of the workers that is lost in an hour, for good.
    stragglers, straggling : float
        Share of the workers that are so many times slower than the others.
    lease : float
    refresh : float
        Least seconds between two looks of each worker at what all have done.
    share : float
        Such looks take at most this share of its time; 1 for no such limit.
    journals : bool
        Such a look opens the journal of each worker; else it lists the folder of chunks.
    early : bool
        Such a look watches claims, too; else only those without work watch them.
    series, seconds : float
        The map, and how long one H200 takes for it.
    """

    workers: int = 1000
    rows: int = 20
    slower: float = CORES
    latency: float = 0.005
    capacity: float = 20_000.0
    lost: float = 0.01
    stragglers: float = 0.0
    straggling: float = 4.0
    lease: float = 60.0
    refresh: float = 5.0
    share: float = 0.01
    journals: bool = False
    early: bool = False
    series: int = SERIES
    seconds: float = H200_SECONDS


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
    """So many operations, one after the other."""

    count: float


Process = Iterator[float | Operations]


class Simulation:
    """One run.

    Parameters
    ----------
    setting : Setting
    seed : int
    """

    def __init__(self, setting: Setting, seed: int = 0) -> None:
        self.setting = s = setting
        self.random = random.Random(seed)
        self.blocks = -(-s.series // s.rows)
        self.block_seconds = s.seconds * s.slower / self.blocks
        slow = int(s.stragglers * s.workers)
        self.pace = [s.straggling if worker < slow else 1.0 for worker in range(s.workers)]
        hours = 3600.0
        self.death = [self.random.expovariate(s.lost / hours) if s.lost else math.inf for _ in self.pace]
        self.claims: dict[int, int] = {}  # block -> who holds it
        self.touched: dict[int, float] = {}
        self.free_blocks = set(range(self.blocks))  # neither claimed nor done
        self.done: dict[int, float] = {}  # block -> when
        self.computed = self.doubled = self.unfinished = 0
        self.operations = 0.0
        self.now = self.free = 0.0
        self._order = itertools.count()
        self._queue: list[tuple[float, int, int, Process]] = []
        self.holds: dict[int, int] = {}  # what a worker is at: worker -> block
        #: What a worker has seen of claims: when each was touched, and since when that is known.
        self.seen: list[dict[int, tuple[float, float]]] = [{} for _ in self.pace]

    def run(self) -> Outcome:
        """Let all work until every block is done."""
        for worker in range(self.setting.workers):
            self._resume(0.0, worker, self._work(worker))
            self._resume(0.0, worker, self._renew(worker))
        while self._queue and len(self.done) < self.blocks:
            self.now, _, worker, process = heapq.heappop(self._queue)
            if self.now >= self.death[worker]:
                self.unfinished += self.holds.pop(worker, None) is not None
                continue
            wish = next(process, None)
            if wish is not None:
                self._resume(self._end(wish), worker, process)
        assert len(self.done) == self.blocks, "every worker was lost"
        lived = sum(min(self.death[w], self.now) / self.pace[w] for w in range(self.setting.workers))
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
        self.free = max(self.free, self.now) + wish.count / self.setting.capacity
        return self.free + wish.count * self.setting.latency

    # What a worker does

    def _work(self, worker: int) -> Process:
        s, look_again = self.setting, self.setting.refresh
        order = self._turns(worker)
        while True:
            number = yield from self._claim(worker, order)
            if number is None:
                return
            if self.now > look_again:
                begun = self.now
                yield self._look()
                if s.early:
                    yield from self._watch(worker)
                look_again = self.now + max(s.refresh, (self.now - begun) / s.share)
            self.holds[worker] = number
            yield self.block_seconds * self.pace[worker] * self.random.uniform(0.95, 1.05)
            yield Operations(FINISH)
            self.holds.pop(worker, None)
            self.computed += 1
            self.doubled += number in self.done
            self.done.setdefault(number, self.now)
            yield Operations(GIVE)
            if self.claims.get(number) == worker:
                del self.claims[number]

    def _turns(self, worker: int) -> Iterator[int]:
        """Blocks from this worker's share on, each once."""
        first = self.blocks * worker // self.setting.workers
        return iter([*range(first, self.blocks), *range(first)])

    def _claim(self, worker: int, order: Iterator[int]) -> Iterator[float | Operations]:
        """The next block that nobody has; where there is none, what others leave."""
        listed = looked = -1.0  # when it learnt what is claimed, and what is done
        for number in order:
            if self.done.get(number, math.inf) <= looked or self.touched.get(number, math.inf) <= listed:
                continue
            if number in self.done and number not in self.claims:  # only the chunk tells
                yield Operations(CLAIM + GIVE)
                yield self._look()
                looked = self.now
                continue
            yield Operations(1)
            if number not in self.free_blocks:
                yield Operations(1 + len(self.claims) / 1000)  # a list of claims passes the others in one look
                listed = self.now
                continue
            self._take(worker, number)
            yield Operations(CLAIM)
            return number
        return (yield from self._take_over(worker))

    def _take(self, worker: int, number: int) -> None:
        self.free_blocks.discard(number)
        self.claims[number], self.touched[number] = worker, self.now

    def _watch(self, worker: int) -> Iterator[float | Operations]:
        """Look at claims; gives one that has not been touched for its lease, as far as this worker has seen."""
        seen, stale = self.seen[worker], None
        held = [number for number in self.claims if number not in self.done]
        begin = self.random.randrange(len(held) or 1)
        watched = (held[begin:] + held[:begin])[:WATCHED]
        yield Operations(1 + len(self.claims) / 1000 + len(watched))
        for number in watched:
            touched = self.touched[number]
            if seen.get(number, (-1.0, 0.0))[0] != touched:
                seen[number] = touched, self.now
            elif self.now - seen[number][1] > self.setting.lease and number not in self.done:
                stale = number
        return stale

    def _take_over(self, worker: int) -> Iterator[float | Operations]:
        while len(self.done) < self.blocks:
            yield self._look()
            number = yield from self._watch(worker)
            if number is not None and self.now - self.touched[number] > self.setting.lease:
                self._take(worker, number)
                yield Operations(TAKE_OVER)
                return number
            if self.free_blocks:
                self._take(worker, number := min(self.free_blocks))
                yield Operations(CLAIM)
                return number
            yield WAIT + WAIT_OF_EACH * (self.setting.workers + len(self.claims))
        return None

    def _look(self) -> Operations:
        """What it takes to learn what all have done."""
        if self.setting.journals:
            return Operations(1 + self.setting.workers)
        return Operations(1 + self.blocks / 1000)

    def _renew(self, worker: int) -> Process:
        while True:
            yield self.setting.lease / RENEWALS
            number = self.holds.get(worker)
            yield Operations(RENEW if number is None else 2 * RENEW)
            if number is not None and self.claims.get(number) == worker:
                self.touched[number] = self.now


def table(quick: bool) -> Iterator[tuple[str, Setting]]:
    """What is asked of the simulation."""
    base = Setting(workers=16, rows=1024) if quick else Setting(latency=0.001)
    for workers in (1, 16) if quick else (1, 16, 64, 256, 1000, 4096):
        yield "workers", replace(base, workers=workers)
    if quick:
        return
    for rows in (3, 5, 10):
        for latency in (0.001, 0.005, 0.05):
            yield "rows and latency", replace(base, rows=rows, latency=latency, slower=2 * CORES)
    for slower in (1.0, 10.0, 20 * CORES):
        yield "pace", replace(base, rows=3, slower=slower)
    yield "watches early", replace(base, rows=3, slower=20 * CORES, early=True)
    for lease in (15.0, 60.0, 240.0):
        for early in (False, True):
            some = replace(base, workers=100, lost=0.05, slower=5 * CORES, lease=lease, early=early)
            yield "watches early" if early else "lease", some
    for workers in (64, 256, 1000):
        yield "opens journals", replace(base, workers=workers, journals=True)
    for share in (0.01, 0.1):
        yield "stragglers", replace(base, rows=3, stragglers=share, slower=2 * CORES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", metavar="FILE", help="append a JSON line for each setting")
    parser.add_argument("--quick", action="store_true", help="a few small settings")
    options = parser.parse_args()
    print("question                 workers rows  slower  ms lost/h lease | blocks   wall s  effic. doubled  op/s")
    for question, setting in table(options.quick):
        found = Simulation(setting).run()
        print(
            f"{question:24s} {setting.workers:7d} {setting.rows:4d} {setting.slower:7.0f} {setting.latency * 1e3:3.0f} "
            f"{setting.lost:6.2f} {setting.lease:5.0f} | {found.blocks:6d} {found.wall:8.1f} {found.efficiency:7.3f} "
            f"{found.doubled:7d} {found.operations:6.0f}", flush=True,
        )  # fmt: skip
        if options.out:
            with open(options.out, "a", encoding="utf-8") as file:
                record = {"question": question, **asdict(setting), **asdict(found)}
                file.write(json.dumps({name: round(v, 6) if isinstance(v, float) else v for name, v in record.items()})
                           + "\n")  # fmt: skip


if __name__ == "__main__":
    main()
