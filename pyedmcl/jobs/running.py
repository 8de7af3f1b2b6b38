"""A job at work: devices claim its blocks and compute them, with less memory where they refuse what was planned."""

from __future__ import annotations

import contextlib
import functools
import logging
import threading
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from ..device.fingerprint import DeviceKey, device_key
from ..device.memory import host_refusal, memory_share
from ..errors import DeviceMemoryError, LaunchError
from ..launch.progress import told
from ..tuning.parameters import keeping
from .blocks import Arrays, Block, BlockResult, Engine, Problem, Record, Report, Wait
from .manifest import same_kind
from .sinks import Sink

if TYPE_CHECKING:
    from ..device.executor import Executor
    from ..device.info import DeviceInfo

log = logging.getLogger(__name__)

# After a refusal, half as much memory is planned with, three times: what does not help then is not the plan.
_LEAST_SHARE = 1 / 8


class Run:
    """One job at work: what the devices that work on it share.

    Attributes
    ----------
    record : Record
        Of the blocks that were computed.
    """

    def __init__(self, problem: Problem, sink: Sink) -> None:
        self.record = Record()
        self._problem, self._sink = problem, sink
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        #: Where blocks were computed: first row, end, and id of the device.
        self.places: list[dict[str, Any]] = []
        self._lost: dict[str, DeviceMemoryError | LaunchError] = {}  # devices that failed, by their ids
        self._own: dict[DeviceKey, dict[str, dict[str, Any]]] = {}  # tuned parameters of other kinds than the job's
        self._done = problem.total - sum(problem.size(block) for block in sink.pending())
        self._parts: dict[int, int] = {}  # of blocks that are being computed
        self._reported = -1
        self._report()

    def work(self, executor: Executor, *, spare: bool = False) -> None:
        """Compute blocks on a device until none is left. A failure of one that can be spared is noted, not raised."""
        worker = OpenProblem(self._problem, executor)
        block: Block | None = None
        try:
            with self._keeping(executor.info):
                while (block := self._claim()) is not None:
                    result = worker.block(block, self._sink.room(block), functools.partial(self._part, block))
                    self._finish(block, result, executor.info.id)
        except (DeviceMemoryError, LaunchError) as error:
            # What names a kernel may be the fault of its parameters: tuning.retry calls again with others.
            if not spare or error.kernel or block is None:
                self.stop()
                raise
            with self._lock:
                self._lost[executor.info.id] = error
                self._parts.pop(block.number, None)
                self._sink.give_back(block)
        except BaseException:
            self.stop()
            raise
        finally:
            worker.release()

    def _keeping(self, info: DeviceInfo) -> AbstractContextManager[None]:
        """The job's tuned parameters, on devices of its kind; others have their own, since these decide speed only."""
        answers, key = self._sink.answers, device_key(info)
        if answers is None:
            return contextlib.nullcontext()
        if not same_kind(self._sink.device, key.as_dict()):
            answers = self._own.setdefault(key, {})
        return keeping(answers)

    def stop(self) -> None:
        """Have no further block begun."""
        self._stopped.set()

    def resume(self) -> dict[str, DeviceMemoryError | LaunchError]:
        """Have blocks begun again; returns which devices failed, and how, since the run began or was resumed."""
        lost, self._lost = self._lost, {}
        self._stopped.clear()
        return lost

    def _claim(self) -> Block | None:
        while True:
            with self._lock:
                claimed = None if self._stopped.is_set() else self._sink.claim()
                elsewhere = sum(self._problem.size(block) for block in self._sink.elsewhere())
                if elsewhere:
                    self._done += elsewhere
                    self._report()
            if not isinstance(claimed, Wait):
                return claimed
            self._stopped.wait(claimed.seconds)

    def _part(self, block: Block, done: int) -> None:
        # The end of a block is told once it is written: whoever stops then, stops behind it.
        if done < self._problem.size(block):
            with self._lock:
                self._parts[block.number] = done
                self._report()

    def _finish(self, block: Block, result: BlockResult, device: str) -> None:
        with self._lock:
            self.places.append({"begin": block.begin, "end": block.end, "device_id": device})
            self._sink.write(block, result)
            self.record = self.record.joined(result.record)
            self._parts.pop(block.number, None)
            self._done += self._problem.size(block)
            self._report()

    def _report(self) -> None:
        # What is computed here and elsewhere, too, does not count twice.
        done = min(self._done + sum(self._parts.values()), self._problem.total)
        if self._problem.unit and done != self._reported:
            self._reported = done
            told(done, self._problem.total, self._problem.unit)


class OpenProblem:
    """A device and the engine open on it, which gets less memory where the device refuses what was planned."""

    def __init__(self, problem: Problem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor
        self._engine: Engine | None = None
        self._share = 1.0

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        refusals: list[str] = []
        while True:
            try:
                with memory_share(self._share):
                    if self._engine is None:
                        self._engine = self._problem.open(self._executor)
                    return self._engine.block(block, into, report)
            except MemoryError as found:
                error = found if isinstance(found, DeviceMemoryError) else host_refusal(found)
                refusals.append(str(error))
                # A launch may have been refused for its work-group. Where half of the memory does not help, smaller
                # ones are tried by tuning.retry.
                least = 1 / 2 if error.kernel else _LEAST_SHARE
                if not error.refused or self._share <= least:
                    if len(refusals) == 1 and error is found:
                        raise
                    share = f"{self._share:.3g} of the memory that may be used"
                    more = f" (That was with {share}; at first: {refusals[0]})" if len(refusals) > 1 else ""
                    raise like(error, f"{error}{more}") from found
                del error
            # Here, where no traceback keeps the engine's buffers alive.
            self.release()
            self._share /= 2
            log.warning("%s Trying again with %g of the memory.", refusals[-1], self._share)

    def release(self) -> None:
        if self._engine is not None:
            engine, self._engine = self._engine, None
            engine.release()


def like(error: DeviceMemoryError, message: str) -> DeviceMemoryError:
    """The same error with another message, of a job that got as little memory as is tried."""
    other = type(error)(message)
    other.refused, other.kernel, other.work_group = error.refused, error.kernel, error.work_group
    other.last = True
    return other
