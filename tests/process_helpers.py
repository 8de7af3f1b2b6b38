"""Waiting for what another process does: with a limit, and with what that process has said where it does not come."""

from __future__ import annotations

import subprocess
import time

#: Seconds. No process of a test takes so long, not even one that compiles on a busy machine.
LIMIT = 240


def wait_until(done, process, what):
    """Look again and again until ``done()`` is true.

    Fails, with what ``process`` said, where it ends before, or where ``what`` does not come within :data:`LIMIT`; the
    process is ended then. Without a process (None) there is only the limit.
    """
    end = time.monotonic() + LIMIT
    while not done():
        late = time.monotonic() > end
        if late or (process is not None and process.poll() is not None and not done()):
            why = f"not within {LIMIT} s" if late else f"it ended with code {process.returncode} before"
            raise AssertionError(f"{what}: {why}{_ended(process)}")
        time.sleep(0.005)


def end_of(process):
    """What a process says on both streams until it ends by itself; fails where it does not within :data:`LIMIT`."""
    try:
        return process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        raise AssertionError(f"{process.args} did not end within {LIMIT} s{_ended(process)}") from None


def _ended(process):
    """End a process, and give what it said as the rest of a message."""
    if process is None:
        return ""
    process.kill()
    return "".join(f"\n{said}" for said in process.communicate() if said)
