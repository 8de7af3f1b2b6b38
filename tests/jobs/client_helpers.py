"""For the tests of ``client=``: clients that are no cluster, and a job whose workers die."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import pytest

from pyedmcl.jobs.blocks import BlockResult, cut


@dataclass(frozen=True)
class Deadly:
    """Rows that hold their numbers. The process that computes row ``fatal`` is killed ``kills`` times."""

    total: int
    folder: str
    fatal: int = -1
    kills: int = 0
    unit: str = "rows"
    operations: float = 1.0

    def size(self, block):
        return len(block)

    def blocks(self):
        return cut(self.total, 1)

    def open(self, executor):
        return DeadlyEngine(self)


class DeadlyEngine:
    def __init__(self, problem):
        self.problem = problem

    def block(self, block, into, report):
        if block.begin == self.problem.fatal:
            for kill in range(self.problem.kills):
                with contextlib.suppress(FileExistsError):
                    os.close(os.open(f"{self.problem.folder}/{kill}", os.O_CREAT | os.O_EXCL))
                    os.kill(os.getpid(), signal.SIGKILL)
        return BlockResult([np.arange(block.begin, block.end)])

    def release(self):
        pass


class Plain:
    """Has ``submit``, and its futures nothing but ``result`` and ``done``.

    ``change`` may alter what the n-th task answers.
    """

    def __init__(self, change=lambda number, answer: answer, threads=2):
        self.threads, self.change, self.tasks = ThreadPoolExecutor(threads), change, []

    def submit(self, function, task):
        number = len(self.tasks)
        self.tasks.append(task)
        return PlainFuture(self.threads.submit(lambda: self.change(number, function(task))))


class PlainFuture:
    def __init__(self, future):
        self.result, self.done = future.result, future.done


class Silent:
    """Its futures never end."""

    cancelled = 0

    def submit(self, function, task):
        return self

    def add_done_callback(self, function):
        pass

    def cancel(self):
        self.cancelled += 1


def spawned(workers=2):
    return ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn"))


def loky_pool():
    return pytest.importorskip("loky").get_reusable_executor(2)
