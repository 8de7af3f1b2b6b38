"""Whether a process of this machine still runs."""

from __future__ import annotations

import os
import sys


def runs(pid: int, *, unknown: bool = True) -> bool:
    """Whether there is a process of this number; ``unknown`` on a system where that cannot be asked.

    Numbers are used again: it may be another process than the one that is meant.
    """
    if sys.platform == "win32":  # os.kill would end the process there
        return unknown
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
