"""Jobs of several steps that can be killed at any moment: every block of every step is kept, and found again."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import StoreError
from . import durable
from .blocks import Arrays, Block, BlockResult, Problem, Record, Wait
from .ownership import is_ours, mark
from .parts import covered, packed, part_name, unpacked
from .records import DamagedError, as_searched
from .runner import Runner
from .sinks import Answers, Sink

if TYPE_CHECKING:
    from ..device.executor import Executor
    from ..device.info import DeviceInfo

_DONE = part_name(0, 1)
_STEP = re.compile(r"\d{3,}-\w+")


class KeepingRunner:
    """A runner whose steps are kept in a folder: whoever makes the same steps in the same order continues there.

    Parameters
    ----------
    runner : Runner
        Which computes what is not kept yet.
    folder : Path
        From :func:`kept_in`.
    """

    def __init__(self, runner: Runner, folder: Path) -> None:
        self._runner, self._folder, self._steps = runner, folder, 0

    @property
    def devices(self) -> int:
        return self._runner.devices

    @property
    def infos(self) -> Sequence[DeviceInfo]:
        return self._runner.infos

    @property
    def executor(self) -> Executor:
        return self._runner.executor

    @property
    def tuning(self) -> dict[str, list[dict[str, Any]]]:
        return self._runner.tuning

    def alike(self, kernels: Iterable[str]) -> DeviceInfo:
        """See :meth:`.runner.Runner.alike`."""
        return self._runner.alike(kernels)

    def provenance(self, kernels: Iterable[str], record: Record, **more: Any) -> dict[str, Any]:
        """See :meth:`.runner.Runner.provenance`."""
        return self._runner.provenance(kernels, record, **more)

    def run(self, problem: Problem, sink: Sink) -> Record:
        """Take the blocks that are kept, and compute and keep the others; see :meth:`.runner.Runner.run`."""
        step = f"{self._steps:03d}-{type(problem).__name__}"
        self._steps += 1
        keeping = KeepingSink(self._folder / step, sink)
        return keeping.record.joined(self._runner.run(problem, keeping))

    def done(self) -> None:
        """Say in the folder that all is done."""
        if not (self._folder / _DONE).exists():
            _write(self._folder / _DONE, {"done": np.ones(1)}, Record())


class KeepingSink:
    """A sink that writes each block to a file before it hands it on.

    Parameters
    ----------
    folder : Path
        Of the step.
    sink : Sink
        Which gets all blocks, those first that are kept.
    """

    def __init__(self, folder: Path, sink: Sink) -> None:
        self._folder, self._sink = folder, sink
        self.record, self._kept = Record(), 0
        self.answers: Answers | None = sink.answers
        self.device: Mapping[str, Any] = sink.device
        self.folder: Path | None = folder.parent
        lacking = []
        while isinstance(block := sink.claim(), Block):
            result = self._read(block)
            if result is None:
                lacking.append(block)
            else:
                self.record = self.record.joined(result.record)
                self._kept += 1
                sink.write(block, result)
        for block in lacking:
            sink.give_back(block)

    def _read(self, block: Block) -> BlockResult | None:
        path = self._folder / part_name(block.begin, block.end)
        try:
            head, arrays = unpacked(path)
        except FileNotFoundError:
            return None
        except (DamagedError, OSError) as error:
            with contextlib.suppress(OSError):
                path.unlink()
            raise StoreError(f"{path} is damaged ({error}) and was removed: run the same command again") from error
        searched = tuple(as_searched(one) for one in head["searched"])
        return BlockResult(list(arrays.values()), Record(searched=searched))

    def pending(self) -> Sequence[Block]:
        return self._sink.pending()

    def claim(self) -> Block | Wait | None:
        return self._sink.claim()

    def elsewhere(self) -> Sequence[Block]:
        return self._sink.elsewhere()

    def give_back(self, block: Block) -> None:
        self._sink.give_back(block)

    def room(self, block: Block) -> Arrays | None:
        return self._sink.room(block)

    def write(self, block: Block, result: BlockResult) -> None:
        arrays = {f"array{place:03d}": array for place, array in enumerate(result.arrays)}
        durable.make_folder(self._folder)
        _write(self._folder / part_name(block.begin, block.end), arrays, result.record)
        self._kept += 1
        self._sink.write(block, result)

    def kept(self) -> str:
        step = self._folder.name.split("-", 1)[0]
        return (
            f"steps before number {int(step) + 1} and {self._kept:,} blocks of it are kept in {self._folder.parent}; "
            "the same call (or command) continues there"
        )


def blocks_of_steps(folder: Path) -> int:
    """How many blocks a :class:`KeepingRunner` has kept there."""
    return sum(len(covered(folder / name)) for name in os.listdir(folder) if _STEP.fullmatch(name))


def _write(path: Path, arrays: Mapping[str, Any], record: Record) -> None:
    head = {"searched": [dict(one) for one in record.searched]}
    advice = ", then run the same command again: it continues from there"
    with durable.explained(f"{path} could not be written", advice):
        durable.write_file(path, packed(arrays, head))


@contextlib.contextmanager
def kept_in(folder: Path, identity: Mapping[str, str]) -> Iterator[Path]:
    """A folder of kept steps, for this process alone.

    Parameters
    ----------
    folder : Path
        New, empty, or of the same job.
    identity : mapping
        What decides the answer, each as text; the name "data" stands for their digest.

    Raises
    ------
    StoreForeignError, StoreMismatchError
        It holds other things, or belongs to another job; the message says what differs.
    StoreError
        Another process works there.
    StoreWriteError
        It cannot be written.
    """
    is_ours(folder, identity, "out")  # before anything is touched
    lease = durable.Lease(folder / durable.LOCK_NAME)
    with durable.explained(f"{folder} cannot be written", ""):
        durable.make_folder(folder)
        lease.acquire()
    try:
        mark(folder, 1, identity, "out")
        yield folder
    finally:
        lease.release()
