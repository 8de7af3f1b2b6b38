"""Runs pyEDM's own tests, from its installed package, against ``pyedmcl.compat.pyedm`` bound to the name pyEDM."""

from __future__ import annotations

import os
import sys
import types
from importlib import metadata

import pytest

from pyedmcl.compat import pyedm as adapter


def main() -> int:
    home = str(metadata.distribution("pyEDM").locate_file("pyEDM"))
    bound = types.ModuleType("pyEDM")
    bound.__dict__.update({name: getattr(adapter, name) for name in adapter.__all__})
    bound.__file__ = os.path.join(home, "__init__.py")  # where the tests look for their expected values
    sys.modules["pyEDM"] = bound
    tests = os.path.join(home, "tests")
    os.chdir(tests)
    return pytest.main(["-q", "-rA", "--tb=no", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", tests, tests])


if __name__ == "__main__":
    sys.exit(main())
