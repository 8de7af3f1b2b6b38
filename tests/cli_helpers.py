"""Whole commands in a process of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyedmcl

# The command may run in another folder, and the package need not be installed.
_CHECKOUT = str(Path(pyedmcl.__file__).parents[1])


def environment(**more):
    path = os.pathsep.join(filter(None, [_CHECKOUT, os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, **more}


def words(*parts):
    """The command line of ``pyedmcl`` with these words."""
    return [sys.executable, "-m", "pyedmcl", *map(str, parts)]


def shell(*parts, env=None, **options):
    """Run ``pyedmcl`` to its end."""
    return subprocess.run(words(*parts), capture_output=True, text=True, timeout=240, env=environment(**(env or {})),
                          **options)  # fmt: skip
