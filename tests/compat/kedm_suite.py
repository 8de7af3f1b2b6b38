"""Runs kEDM's own Python tests, from its source distribution, with ``pyedmcl.compat.kedm`` bound to the name kedm."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from pyedmcl.compat import kedm as adapter


def main(source: str) -> int:
    sys.modules["kedm"] = adapter
    root = Path(source).resolve()
    os.chdir(root)
    given = ["-q", "-rA", "--tb=short", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", str(root)]
    return pytest.main([*given, str(root / "python" / "tests")])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
