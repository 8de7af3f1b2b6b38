"""What the wheel and the sdist hold, and that they work where there is no checkout."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import pyedmcl

ROOT = Path(__file__).resolve().parents[2]
DATA = {"clkernels": (".clh", ".cl"), "templates": (".mako",), "tuning/wisdom": (".jsonl",)}

pytest.importorskip("hatchling", reason="hatchling builds the wheel; pip install 'pyedmcl[test]' brings it")
if not (ROOT / "pyproject.toml").is_file():
    pytest.skip(f"{ROOT} is no checkout: there is nothing to build", allow_module_level=True)


def in_checkout(folder, suffixes):
    found = (path for path in (ROOT / folder).rglob("*") if path.name.endswith(suffixes))
    return {path.relative_to(ROOT).as_posix() for path in found}


def build(kind, folder):
    """Build with the hatchling of this environment: no network is needed."""
    done = subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)],
                          cwd=ROOT, capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (path,) = folder.iterdir()
    return path


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    return build("wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def sdist(tmp_path_factory):
    return build("sdist", tmp_path_factory.mktemp("sdist"))


def test_wheel_holds_package_and_data_and_nothing_else(wheel):
    names = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    code = in_checkout("pyedmcl", (".py", ".js", ".css", ".cuh"))  # those of reports and of CUDA are part of the code
    assert "pyedmcl/reporting/page/map.js" in code
    data = {f"pyedmcl/_data/{name}" for folder, suffixes in DATA.items() for name in in_checkout(folder, suffixes)}
    assert "pyedmcl/_data/templates/knn.cl.mako" in data
    assert code <= names
    assert data <= names
    pages = {f"pyedmcl/_data/docs/{page.name}" for page in (ROOT / "docs").glob("*.md")}
    assert pages <= names
    assert names - code - data - pages <= {"pyedmcl/py.typed"}


def test_wheel_says_what_it_is(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        text = archive.read(metadata).decode()
        entry = archive.read(metadata.replace("METADATA", "entry_points.txt")).decode()
        licence = archive.read(metadata.replace("METADATA", "licenses/LICENSE")).decode()
    assert "License-Expression: Apache-2.0" in text
    assert "Requires-Python: >=3.11" in text
    for extra in ("cpu", "plot", "io", "loopy", "test", "peers", "cuda"):
        assert f"Provides-Extra: {extra}" in text
    assert "pyedmcl = pyedmcl.cli.app:main" in entry
    assert "Copyright 2026 The pyedmcl authors" in licence


def test_wheel_works_without_a_checkout(wheel, tmp_path):
    """Unpacked elsewhere, its own texts are found, not those of the checkout."""
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    code = (
        "import sys; sys.path.insert(0, 'site'); import pyedmcl; from pyedmcl.kernels.texts import read_text;"
        "print(pyedmcl.__file__); print(len(read_text('templates', 'knn.cl.mako')))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    file, length = done.stdout.split()
    assert Path(file).resolve().is_relative_to(tmp_path.resolve())
    assert int(length) == len((ROOT / "templates" / "knn.cl.mako").read_text(encoding="utf-8"))


def test_sdist_builds_the_same_wheel(wheel, sdist, tmp_path):
    with tarfile.open(sdist) as archive:
        names = archive.getnames()
        archive.extractall(tmp_path, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    (top,) = {name.partition("/")[0] for name in names}
    inside = {name.partition("/")[2] for name in names}
    assert {"README.md", "LICENSE", "pyproject.toml", "tests/conftest.py"} <= inside
    assert not [name for name in inside if name.endswith((".pyc", ".whl")) or "__pycache__" in name]
    (tmp_path / "out").mkdir()
    done = subprocess.run([sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "out")],
                          cwd=tmp_path / top, capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    (again,) = (tmp_path / "out").iterdir()
    assert sorted(zipfile.ZipFile(again).namelist()) == sorted(zipfile.ZipFile(wheel).namelist())


def test_the_extra_that_a_message_names_brings_the_package():
    extras = (ROOT / "pyproject.toml").read_text().partition("[project.optional-dependencies]")[2]
    asked = set()
    for path in sorted((ROOT / "pyedmcl").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "need":
                first, extra = node.args[0], node.args[2] if len(node.args) > 2 else ast.Constant("io")
                if isinstance(first, ast.Constant) and isinstance(extra, ast.Constant):
                    asked.add((first.value.partition(".")[0], extra.value))
    assert ("xarray", "io") in asked and ("networkx", "graph") in asked
    for package, extra in sorted(asked):
        found = re.search(rf"^{extra} = \[(.*?)\]$", extras, re.MULTILINE | re.DOTALL)
        assert found and re.search(rf'"{package}\b', found[1]), f"pip install 'pyedmcl[{extra}]' brings no {package}"


def test_data_folders_hold_data_only():
    for folder in DATA:
        assert not list((ROOT / folder).rglob("*.py")), folder


def test_continuous_integration_runs_the_command_of_the_readme():
    runs = (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    command = runs[-1]
    assert command.endswith("-m pytest")
    assert command in (ROOT / "README.md").read_text(encoding="utf-8").splitlines()


def description(wheel):
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return archive.read(name).decode().partition("\n\n")[2]


def test_links_of_the_description_lead_into_the_repository(wheel):
    text = description(wheel)
    targets = re.findall(r"\]\(([^)#][^)]*)\)", text)
    assert len(targets) > 10 and all(target.startswith("https://") for target in targets)
    assert "![" in text and f"/raw/v{pyedmcl.__version__}/docs/images/" in text
    for target in targets:
        if "/pyedmcl/pyedmcl/" in target:
            path = target.partition(f"/v{pyedmcl.__version__}/")[2].partition("#")[0]
            assert (ROOT / path).exists(), target


def test_the_description_can_be_shown(wheel):
    markdown = pytest.importorskip("readme_renderer.markdown", reason="readme_renderer is not installed: PyPI uses it")
    shown = markdown.render(description(wheel))
    assert shown and "<table>" in shown and "<img" in shown


def test_tests_of_the_sdist_run_with_the_wheel(wheel, sdist, tmp_path):
    """As somebody who packages it does: the tests of the sdist beside the installed package."""
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
    (folder,) = tmp_path.glob("pyedmcl-*")
    shutil.rmtree(folder / "pyedmcl")
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import pyedmcl, pytest; print(pyedmcl.__file__);"
        "sys.exit(pytest.main(['-q', '-n', '0', '-p', 'no:cacheprovider', *sys.argv[2:]]))"
    )
    chosen = ["tests/package/test_registry.py", "tests/package/test_call.py", "tests/kernels/test_identity.py"]
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "site"), *chosen],
                          cwd=folder, capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert Path(done.stdout.splitlines()[0]).is_relative_to(tmp_path / "site") and " passed" in done.stdout


def test_help_works_without_a_checkout(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path / "site")
    code = "import sys; sys.path.insert(0, 'site'); from pyedmcl.cli.start import text_of; print(text_of('exit-codes'))"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "| 130 |" in done.stdout, done.stderr
