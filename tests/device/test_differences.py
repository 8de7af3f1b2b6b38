"""Devices differ in `pyedmcl/device/quirks.py` alone: no other package decides anything by what a device is called."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "pyedmcl"
#: Fields of a DeviceInfo that say what a device is, not what it can.
NAMES = {"device_class", "kind", "runtime", "vendor", "name", "driver", "platform", "version"}
#: Shows what drivers say of a device, in fewer words.
REPORTS = {"cli/start.py"}
METHODS = {"get", "startswith", "endswith", "search", "match"}


class Decisions(ast.NodeVisitor):
    """Reads of :data:`NAMES` of a device within a comparison, a condition or the index of a table."""

    def __init__(self):
        self.found, self._deciding = [], 0

    def _decide(self, *nodes):
        self._deciding += 1
        for node in nodes:
            self.visit(node)
        self._deciding -= 1

    def visit_Compare(self, node):
        self._decide(node.left, *node.comparators)

    def visit_If(self, node):
        self._decide(node.test)
        for child in (*node.body, *node.orelse):
            self.visit(child)

    def visit_IfExp(self, node):
        self._decide(node.test)
        self.visit(node.body)
        self.visit(node.orelse)

    def visit_Subscript(self, node):
        self.visit(node.value)
        self._decide(node.slice)

    def visit_Call(self, node):
        parts = [node.func, *node.args, *(keyword.value for keyword in node.keywords)]
        if isinstance(node.func, ast.Attribute) and node.func.attr in METHODS:
            self._decide(*parts)
        else:
            for part in parts:
                self.visit(part)

    def visit_Attribute(self, node):
        owner = node.value
        called = owner.id if isinstance(owner, ast.Name) else owner.attr if isinstance(owner, ast.Attribute) else ""
        if node.attr == "device_class" or (self._deciding and node.attr in NAMES and called == "info"):
            self.found.append(f"line {node.lineno}: {ast.unparse(node)}")
        self.generic_visit(node)


def decisions(text):
    visitor = Decisions()
    visitor.visit(ast.parse(text))
    return visitor.found


@pytest.mark.parametrize("package", sorted({p.parent.name for p in PACKAGE.glob("*/__init__.py")} - {"device"}))
def test_no_package_decides_by_what_a_device_is(package):
    for path in sorted((PACKAGE / package).rglob("*.py")):
        name = path.relative_to(PACKAGE).as_posix()
        if name not in REPORTS:
            assert not decisions(path.read_text(encoding="utf-8")), f"{name}: make it a quirk"


@pytest.mark.parametrize("text", [
    "if executor.info.runtime == 'nvidia': pass", "x = 1 if info.kind in ('cpu',) else 2", "TABLE[info.vendor]",
    "quirks.device_class", "TABLE.get(self.executor.info.name)", "info.name.startswith('NVIDIA')",
])  # fmt: skip
def test_a_decision_is_noticed(text):
    assert decisions(text)


def test_reports_may_name_a_device():
    assert not decisions("raise Error(f'{info.name} ({info.driver}) has no float64') if not info.fp64 else None")
