"""Random calls of the adapters with other packages' names: a result, or an error of ours."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pandas
import pytest
import strategies
import tally
from hypothesis import given
from hypothesis import strategies as st

from pyedmcl.compat import kedm, pyedm
from pyedmcl.errors import PyedmclError

KIND = "random calls of adapters"
_FRAME = pandas.DataFrame(strategies.TABLE, columns=["a", "b", "c"])
_FRAME.insert(0, "t", np.arange(1, strategies.N + 1))
_one_of = strategies.one_of
_series = _one_of(strategies.X, strategies.Y, strategies.GAPS, strategies.X.tolist())

#: By the name of an argument, or by function and argument.
LEGAL = {
    "dataFrame": _one_of(_FRAME, _FRAME[["t", "a", "b"]]), "data": _one_of(_FRAME),
    "columns": _one_of("a", ["a"], "a b"),
    "column": _one_of("a", None), "target": _one_of("b", ["b"], "a"), "lib": _one_of("1 30", [1, 30], [1, 15, 20, 40]),
    "pred": _one_of("1 40", [20, 40]), "E": st.integers(1, 2), "Tp": st.integers(0, 2), "tau": st.integers(-2, -1),
    "knn": _one_of(0, 3), "exclusionRadius": st.integers(0, 2), "embedded": st.booleans(), "noTime": st.booleans(),
    "validLib": _one_of((), strategies.MASK), "libSizes": _one_of("10 30 10", [10, 20]), "sample": st.integers(1, 3),
    "seed": _one_of(None, 1, 2**32), "includeData": st.booleans(), "returnObject": st.booleans(), "maxE": _one_of(2),
    "minE": _one_of(1), "maxTp": _one_of(2), "theta": _one_of(None, 0.0, 1.5), "generateSteps": st.integers(0, 2),
    "generateConcat": st.booleans(), "includeTime": st.booleans(), "D": _one_of(0, 2), "multiview": _one_of(0, 1),
    "trainLib": st.booleans(), "excludeTarget": st.booleans(),
    "method": _one_of("ebisuzaki", "seasonal", "random_shuffle"),
    "numSurrogates": st.integers(1, 3), "ignoreNan": st.booleans(), "firstMax": st.booleans(), "digits": _one_of(6),
    "obs": _series, "threshold": _one_of(None, 0.2), "df": _one_of(_FRAME),
    "ComputeError.pred": _series, "timeseries": _series, "E_max": _one_of(2), "dataset": _one_of(strategies.TABLE),
    "edims": _one_of([1, 2, 1], [2, 2, 2]), "lib_sizes": _one_of([10, 20]), "accuracy": _one_of(1.0),
    "kedm.lib": _series, "kedm.pred": _series, "kedm.target": st.one_of(st.none(), _series),
    "kedm.tau": st.integers(1, 2), "kedm.theta": _one_of(0.0, 1.5), "kedm.seed": _one_of(0, 7),
}  # fmt: skip
#: Named in every call: their defaults are refused.
_ALWAYS = ("columns", "target", "lib", "pred", "libSizes", "E", "maxE", "E_max", "maxTp", "dataFrame", "theta")
#: Files and windows are not for random values.
_NEVER = ("outputFile", "pathIn", "dataFile", "plot", "block", "mpMethod", "solver")
_FUNCTIONS = [
    (room, name) for room in (pyedm, kedm) for name in room.__all__
    if inspect.isfunction(getattr(room, name)) and not name.startswith("Plot")
]  # fmt: skip


@pytest.mark.parametrize(("room", "name"), _FUNCTIONS, ids=[name for _, name in _FUNCTIONS])
def test_random_calls_of_adapters(room, name, one_device, monkeypatch):
    monkeypatch.setenv("PYEDMCL_DEVICE", one_device)
    function, short = getattr(room, name), room.__name__.rsplit(".", 1)[1]
    parameters = inspect.signature(function).parameters
    required = [n for n, p in parameters.items() if p.default is p.empty or n in _ALWAYS]
    optional = [n for n in parameters if n not in (*required, *_NEVER, "showPlot")]

    def legal(argument):
        for key in (f"{name}.{argument}", f"{short}.{argument}", argument):
            if key in LEGAL:
                return LEGAL[key]
        return st.just(parameters[argument].default)

    @st.composite
    def cases(draw):
        some = draw(st.lists(st.sampled_from(optional), unique=True, max_size=4)) if optional else []
        case = {argument: draw(legal(argument)) for argument in [*required, *some]}
        odd = [n for n in parameters if n not in (*_NEVER, "showPlot")]
        for argument in draw(st.lists(st.sampled_from(odd), unique=True, max_size=2)) if odd else []:
            case[argument] = draw(strategies.ODD)
        return case | ({"showPlot": False} if "showPlot" in parameters else {})

    @given(cases())
    def call(case):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                function(**case)
        except PyedmclError as error:
            tally.count(KIND, "refused")
            assert 0 < len(str(error)) < 3000
        else:
            tally.count(KIND, "computed")

    call()
