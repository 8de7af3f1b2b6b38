"""A job without a device, for the tests of runners and sinks: row r of layer l holds r + 100 l."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import SimpleNamespace

import numpy as np
from device_helpers import NVIDIA

from pyedmcl.device.memory import budget
from pyedmcl.errors import DeviceMemoryError
from pyedmcl.jobs.blocks import BlockResult, Record

ROWS, COLUMNS = 10, 3


def expected(layers=1):
    return [np.repeat(np.arange(ROWS)[:, None] + 100.0 * layer, COLUMNS, axis=1) for layer in range(layers)]


def refused(message, **more):
    """What an executor raises where the device refuses memory."""
    error = DeviceMemoryError(message)
    error.refused = True
    for name, value in more.items():
        setattr(error, name, value)
    return error


def executor(name="device"):
    return SimpleNamespace(info=replace(NVIDIA, name=name))


@dataclass
class Diary:
    """What happened to the engines of a problem."""

    opened: int = 0
    released: int = 0
    blocks: list = field(default_factory=list)
    room: list = field(default_factory=list)  # bytes that plans might use, at each opening
    devices: list = field(default_factory=list)


@dataclass(frozen=True)
class FakeProblem:
    """Counts to ten; ``happens(engine, block, report)`` may fail, and ``opens(engine)`` too."""

    diary: Diary = field(default_factory=Diary)
    happens: object = None
    opens: object = None
    unit: str = "rows"
    total: int = ROWS
    operations: float = 0.0

    def size(self, block):
        return len(block)

    def open(self, executor):
        engine = FakeEngine(self, executor)
        if self.opens is not None:
            self.opens(engine)
        return engine


class FakeEngine:
    def __init__(self, problem, executor):
        self.problem, self.executor = problem, executor
        problem.diary.opened += 1
        problem.diary.room.append(budget(executor.info).total)

    def block(self, block, into, report):
        self.problem.diary.blocks.append(block.number)
        self.problem.diary.devices.append(self.executor.info.name)
        if self.problem.happens is not None:
            self.problem.happens(self, block, report)
        rows = [np.repeat(np.arange(block.begin, block.end)[:, None] + 100.0 * layer, COLUMNS, axis=1)
                for layer in block.layers]  # fmt: skip
        searched = ({"E": 1 + block.number % 2, "used": "exact"},)
        return BlockResult(rows, Record({"kernel": {"wg": block.number}}, "default", searched))

    def release(self):
        self.problem.diary.released += 1
