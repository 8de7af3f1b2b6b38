"""What ``import pyedmcl`` costs, and what it leaves alone."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

UNWANTED = ("pyopencl", "loopy", "matplotlib", "pandas", "polars", "xarray", "h5py", "pyarrow", "zarr", "typer", "rich")
NAMES = ("knn", "simplex", "embed_dimension", "xmap")


def run(code):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_import_loads_little():
    """What makes it quick: the table of names beside the package, and some modules of Python's own; not even NumPy."""
    code = (
        "import json, sys; before = set(sys.modules); import pyedmcl;"
        "print(json.dumps([name for name in sys.modules if name not in before]))"
    )
    loaded = set(run(code))
    ours = {name for name in loaded if name.partition(".")[0] not in sys.stdlib_module_names}
    assert ours == {"pyedmcl", "pyedmcl.functions"}
    assert len(loaded) < 40


def test_import_loads_no_device_library():
    code = "import json, sys, pyedmcl; print(json.dumps(sorted(sys.modules)))"
    loaded = {name.partition(".")[0] for name in run(code)}
    assert "pyedmcl" in loaded
    assert not loaded & set(UNWANTED)


def test_naming_every_function_loads_no_device_library():
    code = (
        "import json, sys, pyedmcl; shown = [name for name in dir(pyedmcl) if not name.startswith('_')];"
        "[getattr(pyedmcl, name) for name in shown];"
        f"print(json.dumps([shown, [name for name in {UNWANTED!r} if name in sys.modules]]))"
    )
    shown, loaded = run(code)
    assert set(NAMES) <= set(shown)
    assert loaded == []


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc to see which libraries are loaded")
def test_import_maps_no_opencl_library():
    code = (
        "import json, pyedmcl; [getattr(pyedmcl, name) for name in dir(pyedmcl)];"
        "print(json.dumps(sorted({line.split()[-1] for line in open('/proc/self/maps') if '.so' in line})))"
    )
    mapped = {Path(name).name.lower() for name in run(code)}
    assert any(name.startswith("libc") for name in mapped)
    assert [name for name in mapped if any(word in name for word in ("opencl", "intelocl", "pocl", "nvidia"))] == []


def test_version_is_the_installed_one():
    """The one place of the version is pyedmcl/__init__.py; an old installation beside a new checkout would differ."""
    try:
        installed = metadata.version("pyedmcl")
    except metadata.PackageNotFoundError:
        pytest.skip("pyedmcl is not installed in this environment; pip install -e . does that")
    assert run("import json, pyedmcl; print(json.dumps(pyedmcl.__version__))") == installed
