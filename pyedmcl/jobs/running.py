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
from ..launch.progress import report_progress
from ..tuning.parameters import keeping
from .blocks import Arrays, Block, BlockResult, Engine, Problem, Record, Report, Wait
from .manifest import same_kind
from .sinks import Sink

if TYPE_CHECKING:
    from ..device.executor import Executor
    from ..device.info import DeviceInfo

log = logging.getLogger(__name__)

# After each refusal the plan gets half of the memory, down to an eighth. Where that is refused, too, memory is not the
# cause.
_LEAST_SHARE = 1 / 8


class Run:
    """One job at work: the state that is shared by the devices which compute its blocks.

    Attributes
    ----------
    record : Record
        How the blocks that were computed here came about.
    """

    def __init__(self, problem: Problem, sink: Sink) -> None:
        self.record = Record()
        self._problem, self._sink = problem, sink
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        #: Where blocks were computed: first row, end, and id of the device.
        self.places: list[dict[str, Any]] = []
        self._lost: dict[str, DeviceMemoryError | LaunchError] = {}  # how devices failed, by their ids
        # Tuned parameters of devices that are of another kind than those of the job.
        self._other_answers: dict[DeviceKey, dict[str, dict[str, Any]]] = {}
        self._done = problem.total - sum(problem.size(block) for block in sink.pending())
        self._parts: dict[int, int] = {}  # how much is done of each block that is being computed, by its number
        self._reported = -1
        self._report()

    def work(self, executor: Executor, *, spare: bool = False) -> None:
        """Compute blocks on a device until none is left.

        Where the job can ``spare`` the device, since others work on it too, a failure is noted and not raised.
        """
        worker = OpenProblem(self._problem, executor)
        block: Block | None = None
        try:
            with self._keeping(executor.info):
                while (block := self._claim()) is not None:
                    result = worker.block(block, self._sink.room(block), functools.partial(self._part, block))
                    self._finish(block, result, executor.info.id)
        except (DeviceMemoryError, LaunchError) as error:
            # An error that names a kernel may be the fault of its tuned parameters. It is raised, so that tuning.retry
            # can call the function again with other ones.
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
        """Inside this ``with``, kernels take the tuned parameters of the job.

        A device of another kind than the job's has parameters of its own, since they decide only how fast it computes.
        """
        answers, key = self._sink.answers, device_key(info)
        if answers is None:
            return contextlib.nullcontext()
        if not same_kind(self._sink.device, key.as_dict()):
            answers = self._other_answers.setdefault(key, {})
        return keeping(answers)

    def stop(self) -> None:
        """Let no device begin another block."""
        self._stopped.set()

    def resume(self) -> dict[str, DeviceMemoryError | LaunchError]:
        """Let devices begin blocks again; returns which ones failed since the run began or was resumed, and how."""
        lost, self._lost = self._lost, {}
        self._stopped.clear()
        return lost

    def _claim(self) -> Block | None:
        """The next block to compute, for which this may have to wait; None where none is left or the run is stopped."""
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
        # Only _finish reports a block as done, once it is written: who presses Ctrl-C at that report must not lose it.
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
        # A block may be computed both here and by another process; the sum must not exceed the total then.
        done = min(self._done + sum(self._parts.values()), self._problem.total)
        if self._problem.unit and done != self._reported:
            self._reported = done
            report_progress(done, self._problem.total, self._problem.unit)


class OpenProblem:
    """A device with the engine of a problem. Where the device refuses memory, the engine is opened again with less."""

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
            except MemoryError as caught:
                error = caught if isinstance(caught, DeviceMemoryError) else host_refusal(caught)
                refusals.append(str(error))
                # An error that names a kernel may mean that its work-group is too large for the device. Half of the
                # memory is tried once; if that does not help, tuning.retry tries smaller work-groups.
                least = 1 / 2 if error.kernel else _LEAST_SHARE
                if not error.refused or self._share <= least:
                    if len(refusals) == 1 and error is caught and self._share == 1.0:
                        raise
                    share = f"This was with {100 * self._share:.3g} % of the memory that may be used"
                    first = f"; the first refusal was: {refusals[0]}" if len(refusals) > 1 else "."
                    more = f" ({share}{first})" if self._share < 1.0 else ""
                    raise like(error, f"{error}{more}") from caught
                del error
            # The engine is released only here, outside of the handler, where no traceback keeps its buffers alive.
            self.release()
            self._share /= 2
            log.warning("%s Trying again with %g of the memory.", refusals[-1], self._share)

    def release(self) -> None:
        if self._engine is not None:
            engine, self._engine = self._engine, None
            engine.release()


def like(error: DeviceMemoryError, message: str) -> DeviceMemoryError:
    """The same error with another message, marked as the last one: the job got the least memory that is tried."""
    other = type(error)(message)
    other.refused, other.kernel, other.work_group = error.refused, error.kernel, error.work_group
    other.last = True
    return other
