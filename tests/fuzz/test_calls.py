"""Random calls of every public function: a valid result, or an error of ours that names an argument."""

from __future__ import annotations

import dataclasses
import inspect
import re
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
import strategies
import tally
from hypothesis import given
from hypothesis import strategies as st

import pyedmcl
from pyedmcl.errors import PyedmclError
from pyedmcl.functions import FUNCTIONS
from pyedmcl.states.arguments import ERRORS

KIND = "random calls"
_SECONDS = 60  # of the processor: no call of so few rows takes so long
_RANGES = {
    "rho": (-1, 1), "view_rho": (-1, 1), "surrogates": (-1, 1), "p_value": (0, 1), "q_value": (0, 1), "density": (0, 1),
    "transitivity": (0, 1), "recurrence_rate": (0, 1), "determinism": (0, 1), "laminarity": (0, 1),
}  # fmt: skip


def test_every_argument_has_legal_values():
    assert strategies.arguments_without_a_row() == [], "add a row to LEGAL of tests/fuzz/strategies.py"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_random_calls(name, one_device, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a text made up at random may name a folder that is written

    @given(strategies.calls(name))
    def call(case):
        arguments, odd = case
        if "device" in _parameters(name) and "device" not in odd:
            arguments["device"] = one_device
        begun = time.process_time()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                result = getattr(pyedmcl, name)(**arguments)
        except PyedmclError as error:
            tally.count(KIND, "refused")
            _names_an_argument(str(error), name, arguments)
        else:
            tally.count(KIND, "computed")
            _valid(result)
        assert time.process_time() - begun < _SECONDS

    call()


def _parameters(name):
    return inspect.signature(getattr(pyedmcl, name)).parameters


def _names_an_argument(message, function, arguments):
    """An argument by its name, or a path by itself."""
    held = [arguments.get(name) for name in strategies.PATHS]
    named_so = [path for one in held for path in (one if isinstance(one, (list, tuple)) else [one])]
    paths = [str(path) for path in named_so if isinstance(path, (str, Path)) and path]
    named = any(re.search(rf"\b{name}\b", message) for name in _parameters(function))
    assert named or any(path in message for path in paths), f"no argument is named by: {message}"
    assert len(message) < 3000


def _valid(result):
    """Numbers are within what they mean, or NaN."""
    if isinstance(result, np.ndarray):
        return
    if isinstance(result, Path):
        assert result.read_bytes().endswith(b"</html>\n"), "a whole page"
        return
    results = list(result) if hasattr(result, "labels") and hasattr(result, "__iter__") else [result]
    for one in results:
        for name, (low, high) in _RANGES.items():
            without = type(one).__name__ == "LagProfile" and one.surrogates is None
            values = None if without and name == "p_value" else getattr(one, name, None)
            if name == "rho" and str(getattr(one, "skill", None)) in ERRORS:
                continue
            if name == "surrogates" and type(one).__name__ == "RqaSignificance":
                continue  # measures, some of which are lengths
            if values is not None:
                values = np.asarray(values, np.float64)
                ok = np.isnan(values) | ((values >= low - 1e-6) & (values <= high + 1e-6))
                assert ok.all(), f"{name}: {values[~ok]}"
        assert dataclasses.is_dataclass(one)


@given(st.data())
def test_odd_values_have_a_text_or_a_type_in_messages(data):
    from pyedmcl.errors import shown

    assert 0 < len(shown(data.draw(strategies.ODD))) <= 120
