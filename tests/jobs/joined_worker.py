"""A process that joins a run without a device: ``python joined_worker.py FOLDER [SECONDS]``; tests start and kill it.

Blocks of the helpers' store take SECONDS; it says "begun N" and "done N" of each.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from job_helpers import executor
from store_helpers import make_manifest, values

from pyedmcl.jobs.blocks import BlockResult, Record
from pyedmcl.jobs.claims import Member, part_of
from pyedmcl.jobs.runner import LocalRunner
from pyedmcl.jobs.sharing import SharedSink
from pyedmcl.jobs.store import XmapStore

N, ROWS = 96, 2


class RhoProblem:
    unit, total, operations = "series", N, 0.0

    def __init__(self, seconds=0.0):
        self.seconds = seconds

    def size(self, block):
        return len(block)

    def open(self, executor):
        return self

    def block(self, block, into, report):
        print(f"begun {block.number}", flush=True)
        time.sleep(self.seconds)
        return BlockResult([values(N)[block.begin : block.end]], Record({}, "", ({"E": block.number},)))

    def release(self):
        pass


def join(path, seconds=0.0, part=None, **changes):
    """Compute all blocks of the store that nobody else computes."""
    with Member(path, "fake") as member:
        store = XmapStore.join(path, make_manifest(N, ROWS, **changes), member)
        with store, SharedSink([store], path, member, part_of(part)) as sink:
            sink.set_E(np.arange(1, N + 1), Record())
            LocalRunner([executor()]).run(RhoProblem(seconds), sink)


if __name__ == "__main__":
    print("ready", flush=True)
    join(Path(sys.argv[1]), float(sys.argv[2]))
    print("all is done", flush=True)
