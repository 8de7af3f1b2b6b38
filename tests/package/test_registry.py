"""Names of functions and commands stand in one table; what cannot be derived from it agrees with it."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path

import pytest
import typer.main

import pyedmcl
from pyedmcl.functions import COMMANDS, FUNCTIONS


def test_type_checkers_see_the_functions_of_the_table():
    tree = ast.parse(Path(pyedmcl.__file__).read_text())
    (block,) = [
        node for node in tree.body
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    ]  # fmt: skip
    imported = {(alias.asname, f"{line.module}") for line in block.body for alias in line.names if alias.asname}
    assert imported == set(FUNCTIONS.items())
    assert all(alias.name == alias.asname for line in block.body for alias in line.names), "else mypy hides the name"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function_is_where_the_table_says(name):
    assert getattr(pyedmcl, name) is getattr(importlib.import_module(f"pyedmcl.{FUNCTIONS[name]}"), name)


def test_names_that_are_not_there_are_refused():
    assert set(pyedmcl.__all__) == {"__version__", *FUNCTIONS}
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = pyedmcl.nothing


def test_commands_are_those_of_the_table_in_its_order():
    from pyedmcl.cli.app import app

    made = typer.main.get_command(app).commands
    assert list(made) == [*COMMANDS, "db"]
    assert [command.name for command in made.values()] == list(made)
    with pytest.raises(KeyError):
        made["nothing"]
