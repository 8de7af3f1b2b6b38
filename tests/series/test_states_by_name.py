"""``state=[...]``: a state of several columns of a table, asked for by their names."""

from __future__ import annotations

import warnings

import numpy as np
import pandas
import pytest

import pyedmcl
from pyedmcl.errors import InputError

RNG = np.random.default_rng(5)
FRAME = pandas.DataFrame(RNG.random((90, 4)).cumsum(axis=0) % 1.7, columns=["a", "b", "c", "plot"])
FRAME["plot"] = np.repeat(["p", "q"], 45)
STATE, ARRAY = ["c", "a"], FRAME[["c", "a"]].to_numpy()
Y = FRAME["b"].to_numpy()

CALLS = {
    "simplex": lambda data, **own: pyedmcl.simplex(data, target=Y, E=2, **own).rho,
    "smap": lambda data, **own: pyedmcl.smap(data, target=Y, E=2, theta=1, **own).rho,
    "predict_nonlinear": lambda data, **own: pyedmcl.predict_nonlinear(data, target=Y, E=2, theta=[0, 1], **own).rho,
    "predict_interval": lambda data, **own: pyedmcl.predict_interval(data, target=Y, E=2, Tp=[1], **own).rho,
    "predict_exclusion_radius": lambda data, **own: (
        pyedmcl.predict_exclusion_radius(data, target=Y, E=2, exclusion_radius=[1], **own).rho
    ),
    "ccm": lambda data, **own: pyedmcl.ccm(data, Y, E=2, lib_sizes=[20], sample=2, seed=1, **own).rho,
    "ccm_lagged": lambda data, **own: pyedmcl.ccm_lagged(data, Y, E=2, Tp=[0], **own).rho,
    "ccm_significance": lambda data, **own: pyedmcl.ccm_significance(data, Y, E=2, n=49, seed=1, **own).rho,
    "rqa": lambda data, **own: pyedmcl.rqa(data, radius=0.4, **own).recurrence_rate,
    "joint_rqa": lambda data, **own: pyedmcl.joint_rqa(data, Y, radius=0.4, **own).recurrence_rate,
    "windowed_rqa": lambda data, **own: (
        pyedmcl.windowed_rqa(data, radius=0.4, window=40, step=40, **own).to_frame().recurrence_rate
    ),
    "recurrence_network": lambda data, **own: pyedmcl.recurrence_network(data, radius=0.4, **own).degree,
    "recurrence_plot": lambda data, **own: pyedmcl.recurrence_plot(data, radius=0.4, **own).counts,
    "distance_plot": lambda data, **own: pyedmcl.distance_plot(data, **own).means,
}


@pytest.mark.parametrize("name", CALLS)
def test_a_state_that_is_named_is_that_of_its_columns(name, one_device):
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # it is meant, so nothing is to be said
        found = CALLS[name](FRAME, state=STATE, device=one_device)
    np.testing.assert_array_equal(found, CALLS[name](ARRAY, device=one_device))


def test_coordinates_groups_and_other_tables(one_device):
    own = {"state": STATE, "device": one_device}
    found = pyedmcl.simplex(FRAME, target=Y, embedded=True, **own)
    assert found.rho == pyedmcl.simplex(ARRAY, target=Y, embedded=True, device=one_device).rho
    assert (
        pyedmcl.simplex(FRAME, target=Y, E=2, groups="plot", **own).rho
        == pyedmcl.simplex(ARRAY, target=Y, E=2, groups=FRAME["plot"], device=one_device).rho
    )
    both = pyedmcl.ccm(FRAME, FRAME["b"], E=2, groups="plot", lib_sizes=[20], sample=2, seed=1, **own)
    assert both.links == (("c and 1 more", "b"), ("b", "c")), "a state is not taken for its first column"
    other = pyedmcl.simplex(FRAME[:60], pred=FRAME[60:], target=Y[:60], E=2, **own)
    plain = pyedmcl.simplex(ARRAY[:60], pred=ARRAY[60:], target=Y[:60], E=2, device=one_device)
    np.testing.assert_array_equal(other.predicted, plain.predicted)
    with pytest.raises(InputError, match="'q'"):
        pyedmcl.rqa(FRAME, radius=1.0, state=["q"])
    with pytest.warns(RuntimeWarning, match=r"state=\[...\] names the columns of a state"):
        pyedmcl.rqa(FRAME[["a", "b"]], radius=0.4, device=one_device)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("state", [{}, [], [["c"]], ["c", "c"]])
def test_what_is_no_state_is_called_by_its_argument(name, state):
    with pytest.raises(InputError, match=r"\bstate="):
        CALLS[name](FRAME, state=state)
