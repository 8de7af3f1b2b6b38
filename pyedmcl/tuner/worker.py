"""A process that tries configurations for a tuner: ``python -m pyedmcl.tuner.worker DEVICE FOLDER``."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from ..device.select import open_device
from .measure import Bench, serve

if __name__ == "__main__":
    device, folder = sys.argv[-2:]
    if not serve(lambda: Bench(open_device(device), Path(folder))):
        # The parent was killed, so nobody else removes what its children shared.
        shutil.rmtree(folder, ignore_errors=True)
