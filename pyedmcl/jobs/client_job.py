"""A job at work on a cluster: which blocks its tasks get, and what becomes of the answers."""

from __future__ import annotations

import logging
import secrets
import time
from collections import Counter, deque
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..device.fingerprint import device_key
from ..errors import ClientError, DeviceMemoryError, LaunchError, PyedmclError
from ..launch.progress import report_progress
from ..tuning.parameters import source
from .answers import (
    LOOK_SECONDS,
    MOST_LOSSES,
    Answers,
    LostError,
    UnfinishedError,
    Waiting,
    checked,
    result_of,
    submitted,
    task_name,
)
from .blocks import Block, BlockResult, Problem, Record, Wait
from .manifest import same_kind
from .pools import Pool
from .runner import of_one_kind
from .sinks import Sink
from .spool import Spooled
from .worker import Message, kind_of

if TYPE_CHECKING:
    from ..device.info import DeviceInfo

log = logging.getLogger(__name__)

# A task is made of as many blocks as take about so long: its way to a worker and back takes some 10 ms.
_TASK_SECONDS = 0.5


def add_tuning(known: dict[str, list[dict[str, Any]]], more: dict[str, list[dict[str, Any]]]) -> None:
    """Add parameters that kernels were given to those that are known."""
    for kernel, entries in more.items():
        mine = known.setdefault(kernel, [])
        for entry in entries:
            # What a worker is told of the job's parameters is "recorded" there; how good they are was said before.
            same = entry["grade"] == "recorded" and any(entry["parameters"] == one["parameters"] for one in mine)
            if entry not in mine and not same:
                mine.append(entry)


class Job:
    """One job at work on a cluster.

    Attributes
    ----------
    record : Record
        Of the blocks that were computed.
    infos : dict
        Devices, by worker and id.
    tuning : dict
        Kernel to the parameters that it was given.
    places : list of dict
        Where blocks were computed.
    """

    def __init__(
        self, pool: Pool, problem: Problem, sink: Sink, file: Spooled, first: DeviceInfo, common: Message,
        kernels: Sequence[str],
    ) -> None:  # fmt: skip
        self.record, self.places = Record(), list[dict[str, Any]]()
        self.infos: dict[tuple[str, str], DeviceInfo] = {}
        self.tuning: dict[str, list[dict[str, Any]]] = {}
        self._pool, self._problem, self._sink, self._file, self._kernels = pool, problem, sink, file, kernels
        #: Tuned parameters that the job has settled on for each kind of device: the first that came. A store keeps
        #: those of the kind that it names.
        named = sink.answers is not None and same_kind(sink.device, device_key(first).as_dict())
        self._settled: dict[str, Any] = {kind_of(first): sink.answers if named else {}}
        self._common: Message = {
            **common, "problem": file.digest, "path": str(file.path), "job": secrets.token_hex(4),
            "tune": source.mode_in_force(),
        }  # fmt: skip
        self._name = task_name(type(problem).__name__.removesuffix("Problem").lower(), self._common["job"])
        self._handed: Any = None
        self._answers = Answers()
        self._given: dict[int, list[Block]] = {}  # blocks of outstanding tasks
        self._again: deque[list[Block]] = deque()  # blocks whose task was lost
        self._losses: Counter[int] = Counter()
        self._tasks = 0
        self._workers = pool.workers()
        self._looked = time.monotonic()
        self._seen: set[str] = set()
        self._speed = 0.0  # of a worker: units of the problem a second
        self._done = problem.total - sum(problem.size(block) for block in sink.pending())
        self._pause = 0.0  # seconds after which there may be blocks again, while there are none
        self._out = 0  # units of outstanding tasks

    @property
    def futures(self) -> dict[int, Any]:
        """Tasks that are outstanding."""
        return self._answers.futures

    def work(self) -> None:
        """Compute all blocks."""
        self._report()
        waiting = Waiting("there has been no worker of client=")
        while True:
            self._fill()
            if not self.futures and not self._pause:
                return
            if not self.futures:
                time.sleep(self._pause)  # others who share the store compute what is left
                continue
            answered = self._answers.next(LOOK_SECONDS if self._seen else 0.05)
            if answered is not None:
                self._take(*answered)
            if time.monotonic() - self._looked > LOOK_SECONDS:
                self._workers, self._looked = self._pool.workers(), time.monotonic()
            if answered is not None or self._workers != 0:
                waiting.heard()
            else:
                waiting.look()

    # Handing out

    def _fill(self) -> None:
        """Have some tasks with each worker, so that none waits, but no more, so that the last ones are shared."""
        while len(self.futures) < 2 + 2 * self._known():
            blocks = self._again.popleft() if self._again else self._claimed()
            if not blocks:
                return
            self._tasks += 1
            task = {
                **self._common, "answers": {kind: dict(answers) for kind, answers in self._settled.items()},
                "blocks": [(block.number, block.begin, block.end, block.layers) for block in blocks],
            }  # fmt: skip
            future = submitted(self._pool, task, f"{self._name}-{self._tasks}", self._handed, self._kept)
            self._given[self._answers.add(future)] = blocks
            self._out += self._units(blocks)

    def _known(self) -> int:
        """Workers, or as many as show themselves: their number at least doubles with each round of answers."""
        if self._workers is not None:
            return max(self._workers, 1)
        return max(len(self._seen), self._answers.running(), 1)

    def _claimed(self) -> list[Block]:
        """Blocks for a task that is neither too short nor, towards the end, too long; some only once speed is known."""
        if self._unsettled() and self.futures:
            return []
        left = self._problem.total - self._done - self._out
        most = min(self._speed * _TASK_SECONDS, left / (2 * self._known()))
        blocks: list[Block] = []
        while not blocks or self._units(blocks) < most:
            block = self._sink.claim()
            if block is None or isinstance(block, Wait):
                self._pause = 0.0 if block is None else block.seconds
                break
            blocks.append(block)
        elsewhere = self._units(self._sink.elsewhere())
        if elsewhere:
            self._done += elsewhere
            self._report()
        return blocks

    def _unsettled(self) -> bool:
        """Whether workers would now tune, each for itself; the first one does it for all."""
        return not any(self._settled.values()) and self._common["tune"] in ("auto", "force")

    def _units(self, blocks: Sequence[Block]) -> int:
        return sum(self._problem.size(block) for block in blocks)

    # Taking back

    def _take(self, number: int, future: Any) -> None:
        blocks = self._given.pop(number)
        self._out -= self._units(blocks)
        try:
            answer = result_of(self._pool, future, self._kept)
            if "unseen" in answer:
                self._hand_out(answer)
                self._again.append(blocks)
                return
            answer = checked(answer)
        except UnfinishedError:
            self._given[self._answers.add(future)] = blocks
            self._out += self._units(blocks)
            return
        except (LostError, DeviceMemoryError, LaunchError) as error:
            self._lose(blocks, error)
            return
        settled = self._settled.setdefault(kind_of(answer["device"]), {})
        for question, parameters in answer["answers"].items():
            if question not in settled:
                settled[question] = parameters
            if settled[question] != parameters:
                self._again.append(blocks)  # computed with others than the job's: other last digits are possible
                return
        self._seen.add(answer["worker"])
        self._keep(blocks, answer)

    def _keep(self, blocks: Sequence[Block], answer: Message) -> None:
        info = answer["device"]
        first_info = next(iter(self.infos.values()), info)
        of_one_kind([first_info, info], self._kernels)
        self.infos.setdefault((answer["worker"], info.id), info)
        add_tuning(self.tuning, answer["tuning"])
        self._speed = self._units(blocks) / max(answer["seconds"], 1e-6)
        results: list[BlockResult] = answer["results"]
        for block, result in zip(blocks, results, strict=True):
            place = {"begin": block.begin, "end": block.end, "device_id": info.id, "worker": answer["worker"]}
            self.places.append(place)
            self._sink.write(block, result)
            self.record = self.record.joined(result.record)
            self._done += self._problem.size(block)
            self._report()

    def _lose(self, blocks: Sequence[Block], error: Exception) -> None:
        """Have blocks computed again, each in a task of its own; give up where one is lost again and again."""
        for block in blocks:
            self._losses[block.number] += 1
            if self._losses[block.number] >= MOST_LOSSES:
                if isinstance(error, PyedmclError):
                    raise error
                raise ClientError(
                    f"block {block.number} (rows {block.begin} to {block.end}) was lost {MOST_LOSSES} times, at last "
                    f"by {error}{self._kept()}"
                ) from error
            self._again.append([block])
        log.warning("A task of %d blocks from block %d was lost and is given out again: %s",
                    len(blocks), blocks[0].number, error)  # fmt: skip

    def _hand_out(self, answer: Message) -> None:
        if self._handed is None:
            log.info("Worker %s does not see %s, so tasks bring the problem", answer["worker"], self._file.path)
            self._handed = self._pool.hand_out(Path(self._file.path))

    def _kept(self) -> str:
        kept = self._sink.kept()
        return "" if kept is None else f". Of the job, {kept}"

    def _report(self) -> None:
        if self._problem.unit:
            report_progress(self._done, self._problem.total, self._problem.unit)
