"""A process that tries configurations for a tuner: ``python -m pyedmcl.workloads.worker DEVICE FOLDER``."""

from __future__ import annotations

import sys

from ..device.session import open_device
from ..tuning.isolate import serve, worker_folder
from ..tuning.measure import Bench
from . import workload


def _bench() -> Bench:
    device, folder = worker_folder(sys.argv)
    return Bench(open_device(device), workload, folder)


if __name__ == "__main__":
    serve(_bench)
