"""A budget of code lines for the package: it is lowered where a change makes the package smaller.

It is raised only on purpose, with the reason in the commit. A line of code is one that is not blank, and no docstring,
comment or import. Never split, squeeze or strip for it: a feature that pays is a reason.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pyedmcl

#: Lines of code that ``pyedmcl/`` may have.
BUDGET = 50_239


def lines_of_code(text):
    """Lines that are not blank, and no docstring, comment or import."""
    others = set()
    for node in ast.walk(ast.parse(text)):
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            others |= set(range(node.lineno, node.end_lineno + 1))
        elif isinstance(node, kinds) and ast.get_docstring(node, clean=False) is not None:
            others |= set(range(node.body[0].lineno, node.body[0].end_lineno + 1))
    lines = enumerate(map(str.strip, text.splitlines()), 1)
    return sum(bool(line) and number not in others and not line.startswith("#") for number, line in lines)


def test_the_package_keeps_to_its_budget():
    files = Path(pyedmcl.__file__).parent.rglob("*.py")
    found = sum(lines_of_code(file.read_text(encoding="utf-8")) for file in files)
    assert found <= BUDGET, f"pyedmcl/ has {found:,} lines of code, {found - BUDGET:,} more than its budget"


def test_what_counts_as_code():
    text = '"""Says\n\nwhat."""\nimport os\nfrom a import (\n    b,\n)\n\n# why\nX = """a\nb"""\n'
    text += '\n\ndef f():\n    "short"\n    return 1\n'
    assert lines_of_code(text) == 4
