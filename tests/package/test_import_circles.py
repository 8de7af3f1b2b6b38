"""No module of the package imports itself by a detour, within a package or across packages.

``lint-imports`` looks between packages; here every module counts, and imports within functions do, too. What is
imported
for annotations only (``if TYPE_CHECKING:``) closes no circle.
"""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def modules(folder, package):
    """Dotted name of each module below ``folder``, and its file."""
    places = {file: file.relative_to(folder).with_suffix("").parts for file in folder.rglob("*.py")}
    return {".".join((package, *parts)).removesuffix(".__init__"): file for file, parts in places.items()}


def imported(name, file):
    """Dotted names that a module imports."""
    around = name.split(".") if file.name == "__init__.py" else name.split(".")[:-1]

    def walk(node):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            node = ast.Module(node.orelse, [])
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                yield from (alias.name for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                base = around[: len(around) - child.level + 1] if child.level else []
                base = ".".join([*base, *filter(None, [child.module])])
                yield base
                yield from (f"{base}.{alias.name}" for alias in child.names)
            else:
                yield from walk(child)

    return set(walk(ast.parse(file.read_text())))


def circle(folder, package):
    """The modules of a circle of imports, if there is one."""
    files = modules(folder, package)
    arrows = {}
    for name, file in files.items():
        # A package stands for what its __init__ holds: importing a module of it by name asks for no more.
        found = imported(name, file) & files.keys()
        arrows[name] = {to for to in found if to != name and not any(other.startswith(f"{to}.") for other in found)}
    try:
        TopologicalSorter(arrows).prepare()
    except CycleError as error:
        return error.args[1]
    return None


def test_no_module_imports_itself_by_a_detour():
    assert circle(ROOT / "pyedmcl", "pyedmcl") is None


@pytest.mark.parametrize("line, closed", [
    ("from . import first", True), ("def f():\n    from .first import g", True), ("import sample.first", True),
    ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .first import g", False), ("import os", False),
])  # fmt: skip
def test_a_circle_is_seen(tmp_path, line, closed):
    (tmp_path / "__init__.py").write_text("")
    (tmp_path / "first.py").write_text("from .second import h\n")
    (tmp_path / "second.py").write_text("from sample import third\n")
    (tmp_path / "third.py").write_text(line)
    assert (circle(tmp_path, "sample") is not None) == closed
