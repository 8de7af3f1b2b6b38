"""What recurrence quantification refuses, and in which words."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import pyedmcl
from pyedmcl.device.select import open_device
from pyedmcl.errors import InputError


def walk(n, seed):
    return np.cumsum(np.random.default_rng(seed).standard_normal(n)) / 3


BAD = [
    ({"radius": 0}, r"radius=0: .*positive"),
    ({"radius": -1.0}, "radius=-1.0"),
    ({"radius": math.nan}, "radius=nan"),
    ({"radius": math.inf}, "radius=inf"),
    ({"radius": []}, "at least one radius"),
    ({"radius": "1"}, "radius='1'"),
    ({"radius": [1.0, 0.0]}, "radius=0.0"),
    ({"radius": 1.0, "threshold": "corridor"}, "a pair"),
    ({"radius": (2.0, 1.0), "threshold": "corridor"}, "inner < outer"),
    ({"radius": 1.5, "threshold": "recurrence_rate"}, r"radius=1.5: .*\(0, 1\)"),
    ({"radius": 0.5, "threshold": "neighbours"}, "radius=0.5: .*number of neighbours"),
    ({"radius": 200, "threshold": "neighbours"}, "radius=200: a point has 97 neighbours"),
    ({"threshold": "percent"}, "threshold='percent'"),
    ({"theiler": 98}, "theiler=98 leaves no cell of a 98 x 98 matrix: at most 97"),
    ({"theiler": -1}, "theiler=-1"),
    ({"theiler": 2, "convention": "accrqa"}, "theiler=2 contradicts convention='accrqa'"),
    ({"convention": "crp"}, "convention='crp': choose one of 'pyrqa'"),
    ({"metric": "hamming"}, "metric='hamming'"),
    ({"m": 50, "tau": 3}, "x: m=50, tau=3 needs at least 149 values to give two points, there are 100"),
    ({"m": 0}, "m=0"),
    ({"tau": 1.5}, "tau=1.5"),
    ({"lmin": 0}, "lmin=0"),
    ({"wmin": 2.5}, "wmin=2.5"),
    ({"dtype": "float16"}, "dtype='float16'"),
    ({"exact": 1}, "exact=1"),
    ({"embedded": "yes"}, "embedded='yes'"),
    ({"embedded": True}, "m=3 contradicts embedded=True"),
    ({"tile": 0}, "tile=0"),
    ({"device": []}, "at least one device"),
    ({"device": 7}, "device=7: the name of a device"),
    ({"device": [None, 1]}, "device=1: the name of a device"),
    ({"dtype": None}, "dtype=None: the kernels compute in float32 or float64"),
    ({"progress": 3}, "progress=3: a function"),
    ({"checkpoint": 5}, "checkpoint=5: the path of a file"),
    ({"checkpoint": ""}, "checkpoint='': the path of a file"),
    ({"checkpoint": "."}, r"checkpoint='.' is a folder"),
    ({"y": np.zeros((50, 2)), "m": 1}, "y: its points have 2 coordinates and those of x have 1"),
    ({"y": np.zeros(50), "convention": "accrqa"}, "y= .* contradicts convention='accrqa'"),
    ({"y": [1.0, np.inf, 2.0, 3.0, 4.0, 5.0]}, "y: series 'x0' is infinite"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "message"), BAD, ids=[b[1] for b in BAD])
def test_bad_input(one_device, options, message):
    given = {"m": 3, "tau": 1, "radius": 1.0, "device": one_device, **options}
    with pytest.raises(InputError, match=message):
        pyedmcl.rqa(walk(100, 18), **given)


def test_bad_input_of_joint_recurrence(one_device):
    x = walk(100, 19)
    with pytest.raises(InputError, match="y=None: joint recurrence is of two series"):
        pyedmcl.joint_rqa(x, None, radius=1.0, device=one_device)
    with pytest.raises(InputError, match="as many points as x has, 98, there are 96"):
        pyedmcl.joint_rqa(x, x, m=3, m_y=5, radius=1.0, device=one_device)
    with pytest.raises(InputError, match="radius_y: 1 entries, but radius has 2"):
        pyedmcl.joint_rqa(x, x, radius=[1.0, 2.0], radius_y=[1.0], device=one_device)
    with pytest.raises(InputError, match="m_y=0"):
        pyedmcl.joint_rqa(x, x, m_y=0, radius=1.0, device=one_device)
    with pytest.raises(InputError, match="y: m_y=200, tau_y=1 needs at least 201 values"):
        pyedmcl.joint_rqa(x, x, m_y=200, radius=1.0, device=one_device)
    with pytest.raises(InputError, match="metric_y='hamming': choose one of"):
        pyedmcl.joint_rqa(x, x, radius=0.5, metric_y="hamming", device=one_device)
    with pytest.raises(InputError, match="progress=3: a function"):
        pyedmcl.joint_rqa(x, x, radius=0.5, progress=3, device=one_device)
    with pytest.raises(InputError, match="contradicts convention='accrqa'"):
        pyedmcl.joint_rqa(x, x, radius=1.0, convention="accrqa", device=one_device)


@pytest.mark.parametrize("call", [
    lambda x, **where: pyedmcl.rqa(x, m=2, radius=0.2, **where),
    lambda x, **where: pyedmcl.joint_rqa(x, x[::-1], radius=0.2, **where),
    lambda x, **where: pyedmcl.windowed_rqa(x, 40, 20, radius=0.2, **where),
    lambda x, **where: pyedmcl.rqa_batch([x, x[:30]], radius=0.2, **where),
    lambda x, **where: pyedmcl.recurrence_network(x, radius=0.2, **where),
], ids=["rqa", "joint", "windowed", "batch", "network"])  # fmt: skip
def test_a_device_without_double_precision_is_refused_in_words(one_device, monkeypatch, call):
    executor = open_device(one_device)
    monkeypatch.setattr(executor, "_info", replace(executor.info, fp64=False))
    x = np.random.default_rng(0).random(90)
    with pytest.raises(InputError, match=r"no double precision.*exact=False"):
        call(x, device=one_device)
    call(x, device=one_device, exact=False)


class Undecided:
    """Equals nothing that can be said: what == gives has no truth, as of a pandas.NA or a DataFrame."""

    def __eq__(self, other):
        return np.zeros(2, bool)

    __hash__ = None


CALLS = {
    "rqa": (1,), "joint_rqa": (2,), "windowed_rqa": (1, 20, 20), "rqa_batch": ([walk(40, 1)],), "lag_profile": (2,),
    "recurrence_plot": (1,), "recurrence_network": (1,), "rqa_significance": (1,), "rqa_bands": (1,),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("threshold", [Undecided(), {}, None, 1, "rate"], ids=lambda one: type(one).__name__)
def test_a_threshold_that_is_none_is_refused_everywhere(name, threshold):
    first, *more = CALLS[name]
    data = [walk(40, at) for at in range(first)] if isinstance(first, int) else [first]
    with pytest.raises(InputError, match="threshold="):
        getattr(pyedmcl, name)(*data, *more, radius=0.1, threshold=threshold)
