"""Values that nobody means: each ends in an error of ours that names the argument, or means what it says."""

from __future__ import annotations

import inspect
from decimal import Decimal
from functools import partial

import numpy as np
import pytest

import pyedmcl
from pyedmcl import arguments
from pyedmcl.errors import InputError, PyedmclError
from pyedmcl.files import read_series
from pyedmcl.simulate import coupled_maps

X, Y = np.random.default_rng(0).random((2, 40))
TABLE = np.column_stack([X, Y, X * Y])
HUGE = 10**400


class Raises:
    """An array that fails when it is asked for."""

    def __array__(self, *_, **__):
        raise RuntimeError("no")


class OnlyCapsule:
    """What other array libraries offer at least, and nothing else."""

    def __init__(self, values):
        self._values = values

    def __dlpack__(self, **options):
        return self._values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._values.__dlpack_device__()


WRONG = {
    "path": (partial(pyedmcl.open_xmap, 5), partial(pyedmcl.open_ccm_matrix, None), partial(pyedmcl.open_xmap, "a\0b"),
             partial(pyedmcl.embed([1.0, 2.0], E=1).plot, 5)),
    "out": (partial(pyedmcl.xmap, TABLE, E=2, out="a\0b"), partial(pyedmcl.ccm_matrix, TABLE, E=2, out=3.5)),
    "checkpoint": (partial(pyedmcl.rqa, X, radius=0.1, checkpoint="a\0b"),),
    "E": (partial(pyedmcl.knn, X, E=HUGE), partial(pyedmcl.embed, X, E=10**5000),
          partial(pyedmcl.xmap, TABLE, E=[2, [3]])),
    "tau": (partial(pyedmcl.embed, X, E=2, tau=HUGE),),
    "Tp": (partial(pyedmcl.simplex, X, E=2, Tp=HUGE), partial(pyedmcl.predict_interval, X, E=2, Tp={1: 2})),
    "theta": (partial(pyedmcl.smap, X, E=2, theta=True), partial(pyedmcl.smap, X, E=2, theta=HUGE),
              partial(pyedmcl.predict_nonlinear, X, E=2, theta={0.1, 0.2})),
    "generate_steps": (partial(pyedmcl.smap, X, E=2, generate_steps=2**31),
                       partial(pyedmcl.simplex, X, E=2, generate_steps=HUGE)),
    "n": (partial(pyedmcl.surrogate, X, n=2**63), partial(pyedmcl.surrogate, np.tile(X, 2500), n=10**7),
          partial(pyedmcl.ccm_significance, X, Y, E=2, n=HUGE)),
    "sample": (partial(pyedmcl.ccm, X, Y, E=2, sample=2**40),),
    "method": (partial(pyedmcl.ccm, X, Y, E=2, method=X),
               partial(pyedmcl.surrogate, X, np.array(["phase", "shuffle"]))),
    "surrogate": (partial(pyedmcl.ccm_significance, X, Y, E=2, surrogate=X),),
    "embedded": (partial(pyedmcl.simplex, TABLE, target=X, embedded="False"),
                 partial(pyedmcl.rqa, X, radius=0.1, embedded=X)),
    "resume": (partial(pyedmcl.xmap, TABLE, E=2, out="x", resume="no"),),
    "join": (partial(pyedmcl.xmap, TABLE, E=2, join=True), partial(pyedmcl.xmap, TABLE, E=2, out="x", join=1)),
    "part": (partial(pyedmcl.xmap, TABLE, E=2, out="x", part="3/2"),
             partial(pyedmcl.ccm_matrix, TABLE, E=2, out="x", part=X)),
    "n_series": (partial(coupled_maps, "a"), partial(coupled_maps, 3.5), partial(coupled_maps, 10**12)),
    "noise": (partial(coupled_maps, noise=np.nan), partial(coupled_maps, noise="a")),
    "seed": (partial(coupled_maps, seed=-1), partial(coupled_maps, seed="a")),
    "p_values": (partial(pyedmcl.false_discovery, np.broadcast_to(0.5, 10**11)),),
    "x": (partial(pyedmcl.knn, np.zeros(40, [("x", "f8", 3)]), E=2),
          partial(pyedmcl.rqa, np.zeros(40, [("x", "f8", 3)]), radius=1)),
    "strict": (partial(pyedmcl.recurrence_network, X, radius=0.1, strict=X),),
    "exclude_target": (partial(pyedmcl.multiview, TABLE, 0, D=2, exclude_target=1),),
    "singular_values": (partial(pyedmcl.smap, X, E=2, singular_values="yes"),),
    "dtype": (partial(pyedmcl.knn, X, E=2, dtype="0:0"), partial(pyedmcl.rqa, X, radius=0.1, dtype=X)),
    "columns": (partial(pyedmcl.embed, TABLE, E=2, columns=[{}]), partial(pyedmcl.embed, TABLE, E=2, columns=True)),
    "lib_range": (partial(pyedmcl.simplex, X, E=1, lib_range=Raises()),),
    "valid_lib": (partial(pyedmcl.simplex, X, E=1, valid_lib=Raises()),),
    "radius": (partial(pyedmcl.rqa, X, radius=b"12"), partial(pyedmcl.rqa, X, radius=HUGE)),
    "data": (partial(pyedmcl.embed, Raises(), E=2), partial(pyedmcl.embed, {"a": Raises()}, E=2),
             partial(read_series, None), partial(read_series, object())),
}  # fmt: skip


@pytest.mark.parametrize(("name", "call"), [(name, call) for name, calls in WRONG.items() for call in calls])
def test_the_argument_is_named(name, call):
    with pytest.raises(InputError, match=rf"\b{name}\b") as caught:
        call()
    assert len(str(caught.value)) < 600


def test_numbers_of_numpy_name_columns():
    both = pyedmcl.embed(TABLE, E=1, columns=[np.int64(1), np.str_("x0")])
    assert both.names == ("x1(t-0)", "x0(t-0)")
    assert pyedmcl.embed(TABLE, E=1, columns=np.int64(1)).names == ("x1(t-0)",)


def test_an_exclusion_radius_beyond_32_bits_excludes_all(one_device):
    call = partial(pyedmcl.ccm, X, Y, E=2, sample=2, seed=1, lib_sizes=[20], device=one_device)
    assert np.isnan(call(exclusion_radius=2**32).rho).all()


def test_an_object_that_offers_a_capsule_only_is_read():
    np.testing.assert_array_equal(pyedmcl.embed(OnlyCapsule(X), E=1).values[:, 0], X)


@pytest.mark.parametrize("module", ["xarray", "pyarrow", "pandas"])
def test_objects_of_known_libraries_that_hold_no_columns(module):
    library = pytest.importorskip(module, reason=f"{module} is not installed; pip install 'pyedmcl[test]' brings it")
    made = {
        "xarray": lambda: library.Variable(("t",), X), "pyarrow": lambda: library.schema([("a", library.float64())]),
        "pandas": lambda: library.Timestamp(0),
    }  # fmt: skip
    with pytest.raises(InputError, match=r"^data"):
        pyedmcl.embed(made[module](), E=2)


def test_a_value_without_a_text_is_shown_by_its_type():
    class Silent:
        def __repr__(self):
            raise ValueError

    assert arguments.shown(Silent()) == "(a value of type Silent)" == arguments.shown(Silent())
    assert arguments.shown(10**5000) == "(a value of type int)" and len(arguments.shown("x" * 999)) == 120


@pytest.mark.parametrize("variable", ["PYEDMCL_MEMORY_LIMIT", "PYEDMCL_MEMORY_FRACTION"])
@pytest.mark.parametrize("text", ["inf", "nan", "-1", "0", "much", "1e400"])
def test_limits_of_memory_are_finite_numbers(variable, text, monkeypatch, one_device):
    monkeypatch.setenv(variable, text)
    with pytest.raises(InputError, match=f"{variable}='{text}'"):
        pyedmcl.knn(X, E=2, device=one_device)


def test_a_folder_that_may_not_be_looked_into(monkeypatch, tmp_path):
    def forbidden(path, **_):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("pathlib.Path.exists", forbidden)
    with pytest.raises(InputError, match=r"a\.csv.*Permission denied"):
        read_series(tmp_path / "a.csv")


def test_pictures_do_not_make_folders(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed; pip install 'pyedmcl[plot]' brings it")
    result = pyedmcl.embed([1.0, 2.0, 3.0], E=1)
    for path in (tmp_path / "none" / "p.png", tmp_path / "p.doc", 5, ""):
        with pytest.raises(InputError):
            result.plot(path)
    assert list(tmp_path.iterdir()) == []


#: A result of each class that has methods with arguments.
RESULTS = {
    "xmap": partial(pyedmcl.xmap, TABLE, E=2),
    "keep": partial(pyedmcl.xmap, TABLE, E=2, keep="top:1"),
    "xmap_grid": partial(pyedmcl.xmap_grid, TABLE, E=[1, 2]),
    "xmap windows": partial(pyedmcl.xmap, TABLE, E=2, windows=(20, 10)),
    "ccm": partial(pyedmcl.ccm, X, Y, E=2, sample=3, lib_sizes=[10, 30], seed=1),
    "ccm_lagged": partial(pyedmcl.ccm_lagged, X, Y, E=2, Tp=[-1, 0, 1]),
    "ccm_matrix": partial(pyedmcl.ccm_matrix, TABLE, E=2, sample=2, lib_sizes=[10, 20, 30], seed=1),
    "xmap_significance": partial(pyedmcl.xmap_significance, TABLE, E=2, n=19, seed=1),
    "causal_network": partial(pyedmcl.causal_network, TABLE, E=2, n=19, lags=[-1, 0, 1], seed=1),
    "smap": partial(pyedmcl.smap, X, E=2, theta=[0, 1]),
    "suggest": partial(pyedmcl.suggest, X, E_max=2),
    "embedding_scan": partial(pyedmcl.embedding_scan, X, E=[1, 2], tau=[1, 2]),
    "mutual_information": partial(pyedmcl.mutual_information, X, lags=5),
    "false_neighbors": partial(pyedmcl.false_neighbors, X, E_max=2),
    "rqa": partial(pyedmcl.rqa, X, radius=0.2),
    "rqa radii": partial(pyedmcl.rqa, X, radius=[0.1, 0.2]),
    "rqa_batch": partial(pyedmcl.rqa_batch, TABLE.T, radius=0.2),
    "recurrence_plot": partial(pyedmcl.recurrence_plot, X, radius=0.2),
    "distance_plot": partial(pyedmcl.distance_plot, X),
    "recurrence_network": partial(pyedmcl.recurrence_network, X, radius=0.2),
    "rqa_significance": partial(pyedmcl.rqa_significance, X, radius=0.2, n=19, seed=1),
    "rqa_bands": partial(pyedmcl.rqa_bands, X, radius=0.2),
}
ODD = ("a", -1, HUGE, np.nan, b"x", object(), X, {}, (1, "b"), Decimal("sNaN"), True, len, 1j, "a\udc80", "a\0b")
_SEQUENCE = {"count", "index"}  # of every sequence of Python


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", RESULTS)
def test_methods_of_results_refuse_in_words(name, one_device, tmp_path, monkeypatch):
    """Each argument of each method takes a value, or names what it needs in an error of ours."""
    pyplot = pytest.importorskip("matplotlib.pyplot", reason="pictures need matplotlib; 'pyedmcl[plot]' brings it")
    pytest.importorskip("pandas", reason="tables need pandas; pip install 'pyedmcl[io]' brings it")
    monkeypatch.setenv("PYEDMCL_DEVICE", one_device)
    monkeypatch.chdir(tmp_path)
    result = RESULTS[name]()
    tried, foreign = 0, []
    for method, function in inspect.getmembers(type(result), inspect.isfunction):
        parameters = list(inspect.signature(function).parameters.values())[1:]
        if method.startswith("_") or method in _SEQUENCE:
            continue
        needed = {each.name: "a.csv" for each in parameters if each.default is each.empty and each.kind < 2}
        for parameter in (each for each in parameters if each.kind in (1, 3)):
            for value in ODD:
                tried += 1
                try:
                    getattr(result, method)(**needed | {parameter.name: value})
                except PyedmclError:
                    pass
                except Exception as error:
                    foreign.append(f"{method}({parameter.name}={value!r:.40}): {type(error).__name__}: {error}")
                pyplot.close("all")
    assert not foreign, "\n".join(foreign)
    assert tried > 20
