"""What misled new users without a word, where no other test belongs to one function: see docs/design/new-user.md."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import typer.main
from cli_helpers import inside

import pyedmcl
from pyedmcl.cli.app import app
from pyedmcl.errors import PyedmclWarning
from pyedmcl.functions import COMMANDS, FUNCTIONS

pandas = pytest.importorskip("pandas", reason="frames as input need pandas")

RNG = np.random.default_rng(1)
TESTS = [name for name in FUNCTIONS if "budget" in inspect.signature(getattr(pyedmcl, name)).parameters]


def chain(n=300):
    """A drives b, and b drives c."""
    x = np.full((n + 100, 3), 0.4)
    for t in range(n + 99):
        a, b, c = x[t]
        x[t + 1] = a * (3.8 - 3.8 * a), b * (3.7 - 3.4 * b - 0.3 * a), c * (3.7 - 3.4 * c - 0.3 * b)
    return x[100:]


def test_as_many_surrogates_as_it_takes_are_the_default_of_every_test():
    """A fixed number that no pair can pass with is nobody's default, in Python and in a shell."""
    assert set(TESTS) == {"xmap_significance", "ccm_significance", "partial_ccm", "causal_network"}
    for name in TESTS:
        assert inspect.signature(getattr(pyedmcl, name)).parameters["n"].default == "auto", name
    made = typer.main.get_command(app).commands
    commands = {name: inspect.signature(made[name].callback).parameters for name in COMMANDS}
    drawn = [name for name, parameters in commands.items() if {"n", "surrogate"} <= set(parameters)]
    assert sorted(drawn) == ["network", "surrogate-test"]
    assert all(commands[name]["n"].default == "auto" for name in drawn)


def test_arrows_are_said_to_be_upstream_and_no_more(tmp_path, one_device):
    """A false discovery rate is not the share of arrows that are no direct links: each command with arrows says so."""
    np.savetxt(tmp_path / "chain.csv", chain(), delimiter=",", header="a,b,c", comments="")
    own = ["chain.csv", "--E", 3, "--seed", 1, "--device", one_device]
    for words in (["surrogate-test", *own, "--n", 39],
                  ["ccm-matrix", *own, "--sample", 5, "--lib-sizes", "10,40,100,200", "-o", "c"]):  # fmt: skip
        done = inside(*words, cwd=tmp_path)
        assert done.returncode == 0 and "upstream of the effect, perhaps through other series" in done.stderr, words
    done = inside("surrogate-test", *own, "--n", 39, "--x", "a", "--y", "b", cwd=tmp_path)
    assert done.returncode == 0 and "upstream" not in done.stderr, "nothing lies between two"


@pytest.mark.parametrize("name", ["rqa", "ccm", "simplex"])
def test_a_frame_that_is_taken_as_one_state_is_told_of(name, one_device):
    frame = pandas.DataFrame(RNG.random((60, 3)), columns=list("abc"))
    calls = {
        "rqa": lambda data: pyedmcl.rqa(data, radius=0.5, device=one_device),
        "ccm": lambda data: pyedmcl.ccm(data, frame["b"], E=1, sample=2, lib_sizes=[30], seed=1, device=one_device),
        "simplex": lambda data: pyedmcl.simplex(data, target=frame["b"], E=1, device=one_device),
    }
    with pytest.warns(PyedmclWarning, match="its 3 columns .* are taken together as one state"):
        calls[name](frame)


def test_a_state_of_an_array_bears_the_name_of_all_its_columns(one_device):
    found = pyedmcl.ccm_significance(RNG.random((80, 5)), RNG.random(80), E=1, n=5, seed=1, device=one_device)
    assert found.links[0] == ("x0 and 4 more", "y")


def test_a_map_shows_negative_skill_and_no_diagonal():
    pytest.importorskip("matplotlib", reason="matplotlib is not installed; pip install 'pyedmcl[plot]' brings it")
    from pyedmcl.crossmap.results import XmapResult

    rho = np.array([[1.0, -0.4, 0.2], [0.1, 1.0, 0.0], [0.5, -0.1, 1.0]])
    (image,) = XmapResult(rho, np.array([1, 1, 1]), ("a", "b", "c")).plot().axes[0].images
    colours = image.to_rgba(image.get_array())
    assert not np.allclose(colours[0, 1], colours[1, 2]), "-0.4 is not the colour of 0"
    assert image.norm.vmin == -image.norm.vmax, "colours diverge around 0"
    grey = colours[0, 0]
    assert np.ma.getmaskarray(image.get_array())[0, 0] or np.ptp(grey[:3]) < 0.02, "a series with itself is no skill"
