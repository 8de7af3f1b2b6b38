"""A process that tries configurations for a tuner: ``python -m pyedmcl.tuner.worker DEVICE FOLDER``."""

from __future__ import annotations

import shutil
import sys

from ..device.session import open_device
from .isolate import serve, worker_folder
from .measure import Bench


def _bench() -> Bench:
    device, folder = worker_folder(sys.argv)
    return Bench(open_device(device), folder)


if __name__ == "__main__":
    if not serve(_bench):  # the parent was killed, so nobody else removes what its children shared
        shutil.rmtree(worker_folder(sys.argv)[1], ignore_errors=True)
