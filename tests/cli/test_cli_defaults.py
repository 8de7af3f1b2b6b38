"""Options of commands have the defaults of the arguments that they stand for."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path

import numpy as np
import pytest

import pyedmcl
from pyedmcl.cli.methods import made
from pyedmcl.cli.output import arguments_of
from pyedmcl.functions import COMMANDS, FUNCTIONS
from pyedmcl.parameters import INTEGERS

REQUIRED = inspect.Parameter.empty
_FOLDER = "a command writes its map to a folder, from which others read it"
_ON_DEVICE = "out= is an array on a device, and --output a file"
# Command, function and argument: the default of the command, that of the function, and why they differ.
DIFFERENT = {
    ("xmap", "xmap", "out"): (REQUIRED, None, _FOLDER),
    ("xmap-grid", "xmap_grid", "out"): (REQUIRED, None, _FOLDER),
    ("ccm-matrix", "ccm_matrix", "out"): (REQUIRED, None, _FOLDER),
    ("demo", "xmap", "out"): (Path("pyedmcl-demo"), None, "whoever tries it out needs no name"),
    ("recurrence-plot", "recurrence_plot", "out"): (REQUIRED, None, _ON_DEVICE),
    ("recurrence-plot", "distance_plot", "out"): (REQUIRED, None, _ON_DEVICE),
    ("recurrence-plot", "recurrence_plot", "radius"): (None, REQUIRED, "without it the command draws distances"),
    ("check", "suggest", "regular"): ("insert", None, "it says what is wrong with times itself, and goes on"),
    ("embedding-scan", "false_neighbors", "tau"): ("1:5", 1, "the command takes the best lag of the scan"),
}


def module_of(command):
    return importlib.import_module(f"pyedmcl.cli.{COMMANDS[command]}")


def function_of(command):
    """The function of a command, with all of its options."""
    return made(getattr(module_of(command), command.replace("-", "_")))


def functions_of(command):
    """The public functions that a command derives from, or names, itself or by functions of its module."""
    module = ast.parse(inspect.getsource(module_of(command)))
    commands = {other.replace("-", "_") for other in COMMANDS if other != command}
    parts = {node.name: node for node in module.body if isinstance(node, ast.FunctionDef) and node.name not in commands}
    at_top = {alias.asname or alias.name: node for node in module.body if isinstance(node, ast.ImportFrom)
              for alias in node.names}  # fmt: skip
    derived = getattr(getattr(module_of(command), command.replace("-", "_")), "functions", ())
    names, waiting, seen = set(derived), [command.replace("-", "_")], set()
    while waiting:
        name = waiting.pop()
        seen.add(name)
        for node in ast.walk(parts[name]):
            if isinstance(node, ast.Name):
                waiting += {node.id} & (set(parts) - seen)
                node = at_top.get(node.id, node)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "pyedmcl":
                names |= {node.attr} & set(FUNCTIONS)
            elif isinstance(node, ast.keyword) and node.arg == "function" and isinstance(node.value, ast.Constant):
                names |= {node.value.value}  # of asked.call()
            elif isinstance(node, ast.ImportFrom) and node.level == 2:
                names |= {alias.name for alias in node.names if FUNCTIONS.get(alias.name) == node.module}
    return sorted(names)


def pairs():
    """(command, function, argument), and the default of each; data are positional arguments, and no options."""
    for command in COMMANDS:
        own = inspect.signature(function_of(command)).parameters
        for function in functions_of(command):
            arguments = inspect.signature(getattr(pyedmcl, function)).parameters
            for name in own:
                for argument in set(arguments_of(name)) & set(arguments):
                    if arguments[argument].kind is inspect.Parameter.KEYWORD_ONLY:
                        yield (command, function, argument), own[name].default, arguments[argument].default


PAIRS = {key: defaults for key, *defaults in pairs()}


def same(own, theirs):
    """Whether a default of a command is that of a function; numbers may be written as words, such as 1:10."""
    if isinstance(own, str) and isinstance(theirs, (int, float, tuple, range)):
        try:
            numbers = INTEGERS.read(own) if ":" in own else [float(one) for one in own.split(",")]
        except ValueError:
            return False
        return numbers == np.atleast_1d(theirs).tolist()
    return type(own) is type(theirs) and own == theirs


@pytest.mark.parametrize(("command", "function"), sorted({key[:2] for key in PAIRS}))
def test_a_command_has_the_defaults_of_its_function(command, function):
    for key, (own, theirs) in PAIRS.items():
        if key[:2] == (command, function):
            agreed = (own, theirs) == DIFFERENT[key][:2] if key in DIFFERENT else same(own, theirs)
            assert agreed, f"{command}: {key[2]} is {own!r}; {function}() has {theirs!r}"


def test_what_may_differ_does():
    assert {key for key in DIFFERENT if key not in PAIRS or same(*PAIRS[key])} == set()


def test_the_functions_of_commands_are_found():
    without = {command for command in COMMANDS if not functions_of(command)}
    assert without == {"plot", "export", "status", "tune", "devices", "doctor", "help"}
    assert functions_of("recurrence-plot") == ["distance_plot", "recurrence_plot"]
    assert functions_of("rqa") == ["recurrence_plot", "rqa"]
    assert len(PAIRS) > 350


@pytest.mark.parametrize(("own", "theirs"), [
    (1, 2), (1, True), (None, REQUIRED), (REQUIRED, None), ("best", "one-se"), ("1:5", range(1, 5)), ("1", 2),
    ("auto", None), ("auto", 1), (0.05, 0.01),
])  # fmt: skip
def test_defaults_that_differ_are_told_apart(own, theirs):
    assert not same(own, theirs)


@pytest.mark.parametrize(("own", "theirs"), [
    (1, 1), (REQUIRED, REQUIRED), ("1:10", range(1, 11)), ("-6:3", tuple(range(-6, 4))), ("0", 0.0), ("1", 1),
    ("0.1,1.0", (0.1, 1)),
])  # fmt: skip
def test_numbers_may_be_written_as_words(own, theirs):
    assert same(own, theirs)
