"""A worker of a tuner that needs no device: times follow from parameters, and some of them end it in bad ways.

Arguments: a JSON object of canonical parameters to what they do, then the device and the folder.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

from search_helpers import Scripted

from pyedmcl.tuner.measure import serve
from pyedmcl.tuning.records import canonical

DEFAULTS = {"lanes": 16, "wg": 1}


def seconds_of(parameters):
    return 1e-3 * (1 + abs(parameters["lanes"] - 8) / 8 + abs(parameters["wg"] - 64) / 50)


class Misbehaving(Scripted):
    """As the paper kernel's backend, for the tunables of ``shared_sums``."""

    def __init__(self, deeds):
        super().__init__(seconds=lambda p: seconds_of({**DEFAULTS, **p}))
        self.deeds = deeds

    def describe(self, case, parameters):
        reply = super().describe(case, parameters)
        asked = reply.asked[0]
        return type(reply)("ok", asked=(type(asked)(asked.specialisation, asked.sizes, dict(parameters or DEFAULTS)),))

    def _timed(self, do, parameters):
        return super()._timed(do, DEFAULTS if parameters is None else parameters)

    def _reply(self, do, parameters, seconds=()):
        deed, at = self.deeds.get(canonical(parameters or DEFAULTS), ("", ""))
        if do == at:
            if deed == "hang":
                Path(os.environ["SEARCH_WORKER_HANGING"], str(os.getpid())).touch()
                time.sleep(600)
            if deed == "crash":
                sys.stderr.write("a driver's last words\n")
                sys.stderr.flush()
                os.kill(os.getpid(), signal.SIGSEGV)
            if deed == "kill the tuner":
                os.kill(os.getppid(), signal.SIGKILL)
                time.sleep(600)
            if deed == "print":
                os.write(1, b"a driver that prints\n")
        return super()._reply(do, parameters or DEFAULTS, seconds)


if __name__ == "__main__":
    serve(lambda: Misbehaving(json.loads(sys.argv[1])))
