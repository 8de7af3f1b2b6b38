"""The rows of arguments: each public function has them, says what they say, and keeps to them."""

from __future__ import annotations

import inspect
import subprocess
import sys

import numpy as np
import pytest

import pyedmcl
from pyedmcl import parameters
from pyedmcl.errors import InputError
from pyedmcl.functions import FUNCTIONS
from pyedmcl.parameters import ARGUMENTS, DATA, Argument, argument, arguments_of, checked, whole

RNG = np.random.default_rng(0)
X, Y, Z = RNG.random((3, 60))
TABLE = np.column_stack([X, Y, Z])
#: What a call needs beside the argument that is tried.
NEEDED = {
    "x": X, "y": Y, "lib": X, "data": TABLE, "series": [X, Y], "given": Z, "radius": 0.3, "E": 2, "window": 30,
    "step": 10,
}  # fmt: skip
#: What arguments that have an effect of their own need beside them.
BESIDE = {"solver": "ridge", "E": 2}
#: Functions that compute nothing from series, whose few arguments have tests of their own.
OTHERS = {"open_xmap", "open_xmap_grid", "open_ccm_matrix", "open_result", "report", "kernel_source", "false_discovery",
          "compare"}  # fmt: skip
COMPUTING = [name for name in FUNCTIONS if name not in OTHERS]


def call_of(name, **changed):
    """A public function called with little, and what is changed."""
    function = getattr(pyedmcl, name)
    own = inspect.signature(function).parameters
    needed = {key: NEEDED[key] for key, p in own.items() if p.default is p.empty and key in NEEDED}
    if name == "multiview":
        needed["target"] = 0
    return function(**{**needed, **changed})


def test_docstrings_say_what_the_rows_say():
    done = subprocess.run([sys.executable, "-m", "pyedmcl.parameters", "--check"], capture_output=True, text=True)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, [], "")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_argument_has_a_row_or_holds_data(name):
    rows = arguments_of(getattr(pyedmcl, name))
    assert [each for each in inspect.signature(getattr(pyedmcl, name)).parameters
            if each not in rows and each not in DATA] == []  # fmt: skip


def test_every_row_is_of_a_function():
    known = {(name, each) for name in FUNCTIONS for each in inspect.signature(getattr(pyedmcl, name)).parameters}
    assert [(row.of, row.name) for row in ARGUMENTS for name in row.of if (name, row.name) not in known] == []
    assert [row.name for row in ARGUMENTS if not row.of and row.name not in {each for _, each in known}] == []
    assert [(row.name, name) for row in ARGUMENTS for name in row.more if argument(name, row.name) is not row] == []


BAD = [
    (name, row.name, value)
    for name in COMPUTING for row in arguments_of(getattr(pyedmcl, name)).values() for value in row.kind.illegal
]  # fmt: skip


@pytest.mark.parametrize("name", COMPUTING)
def test_a_bad_value_is_refused_by_name(name, one_device):
    own = arguments_of(getattr(pyedmcl, name))
    for function, each, value in BAD:
        if function == name:
            beside = {key: one for key, one in BESIDE.items() if key in own}
            with pytest.raises(InputError, match=rf"\b{each}\b"):
                call_of(name, **{**beside, each: value})


def test_bad_values_are_many():
    assert len(BAD) > 2000


@pytest.mark.parametrize("row", ARGUMENTS, ids=lambda row: f"{row.name}-{'-'.join(row.of)}")
def test_legal_values_pass_the_check(row):
    for value in row.kind.legal if row.kind.check else ():
        assert row.kind.check(row.name, value) == value


def test_arguments_are_checked_before_a_function_begins():
    @checked
    def embed(data, *, E, tau=1):
        return E, tau

    assert embed(None, E=3.0) == (3, 1)
    with pytest.raises(InputError, match=r"tau=-2: .*tau=2 here"):
        embed(None, E=1, tau=-2)
    with pytest.raises(TypeError):
        embed(None, E=1, lag=2)


def test_checks_hold_for_arguments_by_position_too(one_device):
    with pytest.raises(InputError, match=r"window=0: an integer of at least 1"):
        pyedmcl.windowed_rqa(X, 0, 10, radius=0.3, device=one_device)
    with pytest.raises(InputError, match="method='x': one of"):
        pyedmcl.surrogate(X, "x")


def test_an_entry_is_written_and_others_are_left():
    head = 'def embed(data, E):\n    """One.\n\n    Parameters\n    ----------\n    data : any\n        Own words.\n'
    source = head + '    E\n        Old.\n\n    Returns\n    -------\n    """\n'

    def embed(data, E):
        pass

    text = parameters.described(f"\n{source}", embed)
    assert f"{head}    E : int\n        Lags of each series, at least 1.\n\n    Returns\n" in text
    assert parameters.described(text, embed) == text


def test_a_long_entry_is_wrapped_and_says_more_where_a_function_does():
    row = Argument("E", whole(1), "word " * 40, more={"xmap": "Last."})
    lines = row.entry("xmap").splitlines()
    assert lines[0] == "E : int" and all(len(line) <= 116 for line in lines) and lines[-1].endswith("Last.")
    assert "Last." not in row.entry("ccm")
