"""What the random tests call with: legal values of each argument, by its name, and values that nobody means.

A new argument of a public function needs a row in :data:`LEGAL`; ``test_calls.py`` fails until it has one.
"""

from __future__ import annotations

import datetime
import decimal
import fractions
import inspect
import itertools
import math
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pandas
from hypothesis import strategies as st

import pyedmcl
from pyedmcl.convergence.results import CcmMatrixResult
from pyedmcl.functions import FUNCTIONS
from pyedmcl.recurrence.arguments import METRICS

N = 40  # rows of the series; few, so that a call is quick
_RNG = np.random.default_rng(0)
X, Y, Z = _RNG.random((3, N))
TABLE = np.column_stack([X, Y, X * Y])
GAPS = np.where(np.arange(N) % 11 == 5, np.nan, X)
STEPS = np.arange(N) % 5
MASK = np.arange(N) < 30

_places = itertools.count()
_folder = tempfile.TemporaryDirectory(prefix="pyedmcl-fuzz-")


def new_path(suffix=""):
    """A path at which nothing is yet."""
    return Path(_folder.name) / f"{next(_places)}{suffix}"


class Raises:
    """An array that fails when it is asked for."""

    def __array__(self, *_, **__):
        raise RuntimeError("no")


def one_of(*values):
    return st.sampled_from(values)


_series = one_of(X, Y, GAPS, STEPS, X.astype(np.float32), X.tolist(), pandas.Series(X, name="a"), np.zeros(N), X * 1e30)
_tables = one_of(
    TABLE, TABLE.astype(np.float32), TABLE[:, :2], {"a": X, "b": Y}, pandas.DataFrame(TABLE, columns=["a", "$", "="]),
    np.column_stack([X, GAPS, np.zeros(N)]),
)  # fmt: skip
_none = st.none()
_THREADS = ThreadPoolExecutor(1)
_integers = st.integers(1, 3)
_rows = one_of(None, (0, 30), [(0, 15), (20, 40)], MASK)

#: Legal values by the name of an argument, or by function and argument where functions differ.
LEGAL = {
    "data": _tables, "x": _series, "y": _series, "lib": _series, "pred": st.one_of(_none, _series),
    "query": st.one_of(_none, _series), "target": st.one_of(_none, _series), "multiview.target": one_of(0, 1),
    "rqa.y": st.one_of(_none, _series), "recurrence_plot.y": st.one_of(_none, _series),
    "distance_plot.y": st.one_of(_none, _series), "embed.data": st.one_of(_series, _tables),
    "E": st.integers(1, 2), "xmap.E": one_of("auto", 2, [1, 2, 1]), "xmap_significance.E": one_of("auto", 2),
    "causal_network.E": one_of("auto", 2), "causal_network.n": one_of(3, "auto"),
    "lags": one_of(None, [-1, 0], (-2, -1, 1)),
    "check.E_max": st.integers(1, 5), "purpose": one_of("maps", "recurrence"),
    "check.regular": one_of("insert", "ignore"), "lag_profile.level": one_of(0.9, 0.95), "links": st.booleans(),
    "errors": one_of("nan", "raise"), "measures": one_of(["DET"], ("RR", "laminarity"), ["Lmax"]),
    "rqa_significance.y": st.one_of(_none, _series), "rqa_significance.window": one_of(None, 15),
    "rqa_bands.y": st.one_of(_none, _series), "rqa_bands.window": one_of(None, 15),
    "rqa_bands.level": one_of(0.9, 0.95), "rqa_bands.measures": one_of(["DET"], ("RR", "laminarity")),
    "season": one_of("remove", "keep"), "latest": one_of(None, -1, 0),
    "convergence": st.booleans(), "partial": st.booleans(), "forecast": st.booleans(),
    "partial_surrogates": one_of(None, 3),
    "causal_network.surrogate": one_of(None, "auto", "shuffle"),
    "ccm_matrix.E": one_of("auto", 2), "ccm.E": one_of(1, 2, (1, 2), "auto"), "E_max": one_of(1, 2),
    "E_rule": one_of("best", "one-se", 0.05), "D": one_of(None, 2),
    "tau": st.integers(1, 2), "Tp": st.integers(-1, 1), "predict_interval.Tp": one_of(1, (0, 1), [-1, 2]),
    "ccm_lagged.Tp": one_of(0, [-1, 0]), "k": one_of(None, 3), "knn": one_of(None, 3),
    "exclusion_radius": st.integers(0, 2), "causal_network.exclusion_radius": one_of("auto", 0, 2),
    "predict_exclusion_radius.exclusion_radius": one_of(0, [0, 3]),
    "theta": one_of(0.0, 1.5), "predict_nonlinear.theta": one_of([0.0, 1.0], 2.0), "smap.theta": one_of(0, [0, 2.0]),
    "coefficients": one_of(None, None, "mean"), "xmap.theta": one_of(0.0, 1.5, 1.5), "ridge": one_of(0.0, 0.0, 0.5),
    "solver": one_of("svd", "ridge"), "alpha": st.floats(1e-3, 10), "n_views": one_of(None, 1, 2),
    "lib_range": _rows, "pred_range": _rows, "valid_lib": one_of(None, MASK), "generate_steps": st.integers(0, 2),
    "lib_sizes": one_of(None, 20, [10, 20]), "lib_size": one_of(None, 20), "sample": st.integers(1, 3),
    "n": st.integers(1, 4), "seed": one_of(None, 0, 1), "method": one_of("simplex", "smap"),
    "surrogate.method": one_of("shuffle", "phase", "iaaft", "twin", "seasonal", "auto"),
    "surrogate.x": one_of(X, Y), "rate": st.floats(0.01, 0.5), "budget": st.integers(1, 100),
    "given": one_of(Z, TABLE[:, 2:]), "partial_ccm.n": one_of(None, 3, "auto"),
    "xmap_significance.n": one_of(3, "auto"), "ccm_significance.n": one_of(3, "auto"),
    "surrogate": one_of("shuffle", "phase", "auto"), "period": one_of(None, 5),
    "recurrence": st.floats(0.05, 0.5),
    "columns": one_of(None, [0, 1], [1, 0]), "embed.columns": one_of(None, 0), "path": st.builds(new_path),
    "targets": one_of(None, None, [0], TABLE[:, 1:], Y),
    "xmap_grid.E": one_of(1, [1, 2]), "xmap_grid.tau": one_of(1, [1, 2]), "xmap_grid.Tp": one_of(0, [-1, 0]),
    "xmap_grid.theta": one_of(None, None, [0.0, 1.5]), "xmap_grid.lib_range": _rows,
    "xmap_grid.pred_range": one_of(None, None, (0, 30)),
    "ccm_matrix.lib_range": _rows,
    "xmap.lib_range": _rows, "xmap.pred_range": one_of(None, None, (0, 30)), "folds": one_of(None, None, 2),
    "keep": one_of("all", "top:1", "top:2:target", "rho>0.1"),
    "out": st.one_of(_none, st.builds(new_path)), "resume": st.booleans(),
    "join": st.booleans(), "part": one_of(None, None, "1/2"),
    "neighbors": one_of("exact", "exhaustive", "auto", "kdtree"),
    "recall": st.floats(0.5, 1), "progress": one_of(None, True, False, lambda done, total, unit: None),
    "dtype": one_of("float32", "float64"), "tune": one_of(None, "never", "cached"),
    "embedded": one_of(False, False, True), "state": one_of(None, None, [0]),
    "exclude_target": st.booleans(), "singular_values": st.booleans(), "exact": st.booleans(),
    "strict": st.booleans(),
    "p_values": one_of([0.1, 0.5], X, np.array([[0.5, np.nan]])),
    "m": st.integers(1, 2), "m_y": one_of(None, 2), "tau_y": one_of(None, 1), "radius": st.floats(0.05, 1),
    "rqa.radius": one_of(0.3, [0.1, 0.2]), "joint_rqa.radius": one_of(0.3), "radius_y": one_of(None, 0.2),
    "metric": one_of(*METRICS), "metric_y": one_of(None, *METRICS),
    "theiler": st.integers(0, 2), "lmin": _integers, "vmin": _integers, "wmin": _integers,
    "convention": one_of("pyrqa", "crqa", "recurrenceanalysis"),
    "threshold": one_of("fixed", "fixed", "recurrence_rate"),
    "windowed_rqa.y": st.one_of(_none, _series), "windowed_rqa.threshold": one_of("fixed"), "tile": one_of(None, 32),
    "series": st.lists(st.sampled_from([X, Y, X[:20]]), min_size=1, max_size=3), "rqa_batch.y": _none,
    "rqa_batch.columns": _none, "rqa_batch.groups": _none, "partners": _none, "pseudo": one_of(0, 1),
    "regular": one_of(None, None, "insert", "ignore"),
    "groups": one_of(None, None, np.arange(N) // 20, ["a"] * 25 + ["b"] * 15), "draw": one_of("rows", "rows", "groups"),
    "windows": one_of(None, None, (20, 10), [30, 5]),
    "skill": one_of("pearson", "pearson", "spearman", "rmse", "mae", "nrmse"),
    "predictions": one_of(False, False, True), "precision": one_of("full", "full", "compact"),
    "axis": one_of(0, -1), "rqa_batch.radius": one_of(0.3, [0.1, 0.2]),
    "embedding_scan.E": one_of(2, [1, 2]), "embedding_scan.tau": one_of(1, [1, 2]),
    "embedding_scan.Tp": one_of(1, [0, 1]), "ratio": st.floats(1, 20), "size": st.floats(0.5, 3),
    "compare.data": one_of({"a": ["x", "y"] * 20, "b": X}), "by": one_of("a"), "pair": one_of(None),
    "compare.measures": one_of(None, ["b"]),
    "mutual_information.lags": one_of(None, 3, [1, 4]), "mutual_information.method": one_of("binned", "kraskov"),
    "kernel": one_of("knn"),
    "kernel_source.target": one_of(None, "gfx942", "nvidia"),
    "kernel_source.E": one_of(None, 2, (1, 2)), "kernel_source.tau": one_of(None, 2),
    "bins": st.integers(2, 9), "mutual_information.k": st.integers(1, 4),
    "normalize": one_of(None, "zscore", "range"), "radius_unit": one_of("data", "data", "std", "range", "max_distance"),
    "checkpoint": st.one_of(_none, st.builds(new_path, st.just(".npz"))), "pixels": one_of(None, 10, (5, 7)),
    "window": st.integers(10, 20), "step": st.integers(5, 10),
    "client": one_of(None, None, _THREADS),
    "result": one_of(CcmMatrixResult(
        np.array([5, 9, 20]), (TABLE[:3], TABLE[3:6], TABLE[6:9]), np.array([1, 2, 3]), ("a", "</script>", "=1"), 1, 0
    )),
    "report.path": st.builds(new_path, st.just(".html")), "title": one_of(None, "<b>"), "top": st.integers(1, 5),
    "cluster": st.booleans(), "pairs": one_of(None, [("a", "=1")]),
    # Filled in by the test, with a device of this machine.
    "device": _none,
}  # fmt: skip

#: Given in every call: with their defaults nearly every call of so few rows is refused, or takes long.
_ALWAYS = ("E", "E_max", "budget")
#: Arguments that name what is written: text made up at random must not lead out of the test's own folder.
PATHS = ("path", "out", "checkpoint", "result")

_NUMBERS = (
    0, -1, 1, 2**31, 2**32, 2**63, 2**64, -(2**63), 10**400, 0.5, -0.0, 3.0, 1e308, 1e-320, math.nan,
    math.inf, -math.inf, 1j, np.float64(2), np.int64(1), fractions.Fraction(1, 3), decimal.Decimal("NaN"),
    decimal.Decimal(10) ** 400,
)  # fmt: skip
_TEXTS = (
    "", " ", "x", "None", "0", "1e3", "auto", "\0", "\x1b[31m", "$\\frac{$", "=1+1", "ä" * 300, "float16", "0:0",
    b"", b"1",
)  # fmt: skip
_ITEMS = (
    (), [], {}, set(), [None], [[1, 2], [3]], [0, 0], ["a", "b"], {"a": 1}, {"a": [1], "b": [1, 2]}, range(3), (0, N),
    (N, 0), [(0, 5), (3, 9)], iter([1, 2]), (x for x in ()),
)  # fmt: skip
_ARRAYS = (
    np.array(1), np.array([]), np.array([1.0]), np.arange(5), np.zeros((2, 0)), np.zeros((0, 2)), np.zeros((2, 2, 2)),
    np.zeros((1, 99)), np.array(["a"]), np.array([None]), np.ones(N, bool), np.zeros(N, bool), np.full(N, np.nan),
    np.full(N, np.inf), X, TABLE, TABLE.astype(complex), X.astype(str), np.ma.masked_array(X, MASK),
)  # fmt: skip
_FRAMES = (
    pandas.NA, pandas.NaT, pandas.DataFrame(), pandas.Series(dtype=float), pandas.DataFrame({"a": ["x"] * N}),
    pandas.DataFrame(TABLE, columns=["a", "a", "b"]), pandas.Series(X).astype("Float64"),
)  # fmt: skip
_OBJECTS = (
    None, True, False, np.bool_(True), object(), object, len, Raises(), slice(3), Path("nowhere"),
    np.dtype("f4"), np.datetime64("2000-01-01"), datetime.date(2000, 1, 1),
)  # fmt: skip

#: Values that nobody means.
ODD = st.one_of(
    st.sampled_from((*_NUMBERS, *_TEXTS, *_ITEMS, *_ARRAYS, *_FRAMES, *_OBJECTS)),
    st.integers(), st.builds(pow, st.just(10), st.just(5000)), st.floats(), st.text(max_size=8),
    st.lists(st.integers(-3, 50), max_size=4),
    st.tuples(st.integers(-3, 50), st.integers(-3, 50)),
)  # fmt: skip
_ODD_PATHS = ODD.filter(lambda value: not isinstance(value, str) or not ({"/", ".", "~"} & set(value)))
_ODD_VALUES = ODD.filter(lambda value: not callable(value))


def legal(function, name):
    """The strategy of an argument; KeyError where it has no row yet."""
    own = f"{function}.{name}"
    return LEGAL[own if own in LEGAL else name]


def odd_values(name):
    """Values that nobody means; what an object does when it is called is its own affair."""
    return _ODD_PATHS if name in PATHS else _ODD_VALUES if name in ("progress", "solver") else ODD


@st.composite
def calls(draw, function):
    """Arguments of a public function, and the names of those that nobody means."""
    signature = inspect.signature(getattr(pyedmcl, function)).parameters
    parameters = {name: p for name, p in signature.items() if p.kind is not p.VAR_KEYWORD}
    required = [name for name, p in parameters.items() if p.default is p.empty or name in _ALWAYS]
    optional = [name for name in parameters if name not in required]
    some = st.lists(st.sampled_from(optional), unique=True, max_size=4) if optional else st.just([])
    chosen = [*required, *draw(some)]
    case = {name: draw(legal(function, name)) for name in chosen}
    odd = draw(st.lists(st.sampled_from(list(parameters)), unique=True, max_size=2))
    for name in odd:
        case[name] = draw(odd_values(name))
    return case, odd


def arguments_without_a_row():
    """(function, argument) that random calls do not know."""
    return [
        (function, name)
        for function in FUNCTIONS
        for name, parameter in inspect.signature(getattr(pyedmcl, function)).parameters.items()
        if parameter.kind is not parameter.VAR_KEYWORD
        if f"{function}.{name}" not in LEGAL and name not in LEGAL
    ]
