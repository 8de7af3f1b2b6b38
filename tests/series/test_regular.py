"""Rows whose times are not regular: refused by name, or filled with gaps, or taken as they come where that is said."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest

import pyedmcl
from pyedmcl.errors import InputError, PyedmclWarning
from pyedmcl.functions import FUNCTIONS
from pyedmcl.series.regular import regular_times
from pyedmcl.series.series import Series, as_series

pandas = pytest.importorskip("pandas", reason="frames as input need pandas")

MONTHS = pandas.date_range("1990-01-01", periods=120, freq="MS")
LOST = [10, 11, 50]
VALUES = np.random.default_rng(3).random((120, 3))
WHOLE = pandas.DataFrame(VALUES, columns=["a", "b", "c"], index=MONTHS)
FRAME = WHOLE.drop(MONTHS[LOST])
#: Functions that make no states of rows, or read what was made.
_OTHERS = {"open_xmap", "open_xmap_grid", "open_ccm_matrix", "check", "compare", "false_discovery", "kernel_source",
           "open_result", "report"}  # fmt: skip
STATES = [name for name in FUNCTIONS if name not in _OTHERS]


@regular_times
def taken(data, pred=None, *, target=None, groups=None, lib_range=None, valid_lib=None, pred_range=None, regular=None):
    """What a function is given after its times were looked at."""
    return {name: value for name, value in locals().items() if value is not None}


def filled(data, **options):
    with pytest.warns(PyedmclWarning, match="regular='insert' put in"):
        return taken(data, regular="insert", **options)


def quiet(data, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return taken(data, **options)


@pytest.mark.parametrize("name", STATES)
def test_every_function_that_makes_states_refuses_missing_rows(name):
    """Before anything else is looked at, and nothing is computed."""
    function = getattr(pyedmcl, name)
    parameters = inspect.signature(function).parameters
    assert parameters["regular"].default is None and parameters["regular"].kind is inspect.Parameter.KEYWORD_ONLY
    first = next(iter(parameters))
    others = {key: 1 for key, one in parameters.items() if one.default is one.empty and key != first}
    data = FRAME if name in ("xmap", "ccm_matrix", "multiview", "rqa_batch", "causal_network") else FRAME["a"]
    with pytest.raises(InputError, match=rf"^{first}: 3 rows are missing in 2 places, before row 10 \(1991-01"):
        function(data, **others)
    with pytest.raises(InputError, match="regular='fill': one of 'insert', 'ignore'"):
        function(data, regular="fill", **others)


def test_functions_that_make_no_states_take_all_times():
    told = _OTHERS - {"check"}  # which says what is wrong with times, and refuses none
    assert not any("regular" in inspect.signature(getattr(pyedmcl, name)).parameters for name in told)
    assert pyedmcl.check(FRAME).remarks[0].code == "time-gaps"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (FRAME, r"3 rows are missing in 2 places, before row 10 \(1991-01-01\), 48 \(1994-04-01\).*'insert'.*'ignore'"),
        (FRAME.iloc[::-1], r"run from newest \(1999-12-01\) to oldest \(1990-01-01\)"),
        (pandas.concat([WHOLE, WHOLE]), r"the time goes back 1 time, first in row 120 \(1990-01-01\)"),
        (WHOLE.iloc[np.sort([*range(120), 7])], r"1 row has the time of the row before, row 8 \(1990-08-01\)"),
        (WHOLE.set_axis([*MONTHS[:5], pandas.NaT, *MONTHS[6:]]), "1 row has no time, row 5"),
        (WHOLE.set_axis(np.cumsum(np.where(np.arange(120) % 40, 1, 0.25))), r"less than half as long.*before row 40"),
        (WHOLE.set_axis(MONTHS.where(np.arange(120) != 9, MONTHS[9] + pandas.Timedelta(days=20))), "less than half"),
        (WHOLE.reset_index(drop=True).drop(index=[4]), r"1 row is missing in 1 place, before row 4 \(5\)"),
    ],
)  # fmt: skip
def test_what_is_refused_names_its_rows(data, words):
    with pytest.raises(InputError, match=words):
        taken(data)
    with pytest.warns(PyedmclWarning, match=words.partition(".*")[0]):
        assert taken(data, regular="ignore")["data"] is data


@pytest.mark.parametrize("kind", ["back", "doubled", "short"])
def test_rows_cannot_be_put_in_where_none_is_missing(kind):
    time = {"back": [0, 1, 0, 1, 2], "doubled": [0, 1, 1, 2, 3], "short": [0.0, 1, 1.2, 2, 3]}[kind]
    with pytest.raises(InputError, match=r"regular='ignore' takes the rows as they come$"):
        taken(pandas.Series(np.arange(5.0), index=time), regular="insert")


@pytest.mark.parametrize(
    "time",
    [
        MONTHS, MONTHS - pandas.Timedelta(days=1), pandas.date_range("1900", periods=120, freq="YS"),
        pandas.date_range("2000-03-31", periods=120, freq="QE"), pandas.period_range("1990-01", periods=120, freq="M"),
        np.round(1958 + np.arange(120) / 12, 2), np.arange(120) * 0.1, np.arange(120, 0, -1) * -0.001,
        pandas.date_range("2000-01-01", periods=120, freq="33ns"), pandas.timedelta_range("0s", periods=120, freq="7s"),
        pandas.date_range("2000-01-03", periods=120, freq="B"), [f"row {i}" for i in range(120)], np.arange(5, 125),
        np.float32(20_000) + np.float32(1e-3) * np.arange(120, dtype=np.float32),
    ],
)  # fmt: skip
def test_regular_times_pass(time):
    """Calendars, decimal years, rounding, names, and working days by their frequency."""
    data = WHOLE.set_axis(time)
    for wish in (None, "insert", "ignore"):
        assert quiet(data, regular=wish)["data"] is data


def test_data_without_times_are_never_refused():
    for data in (VALUES, VALUES.tolist(), dict(zip("abc", VALUES.T, strict=True)), WHOLE.reset_index(drop=True),
                 as_series(VALUES)):  # fmt: skip
        assert quiet(data)["data"] is data


def test_weekends_are_not_missing_among_working_days():
    days = pandas.DatetimeIndex(pandas.date_range("2000-01-03", periods=120, freq="B").to_numpy())
    assert taken(WHOLE.set_axis(days))["data"].shape == WHOLE.shape
    holiday = WHOLE.set_axis(days).drop(days[[7]])
    with pytest.raises(InputError, match=r"1 row is missing .* before row 7 \(2000-01-13\) \(steps are working days"):
        taken(holiday)
    assert (taken(holiday, regular="insert")["data"].index == days).all()


@pytest.mark.parametrize("freq", ["MS", "ME", "YS", "QE", "D", "7h"])
def test_rows_of_gaps_have_the_times_of_the_calendar(freq):
    dates = pandas.date_range("1995-12-31", periods=120, freq=freq)
    data = filled(pandas.DataFrame(VALUES, index=pandas.DatetimeIndex(dates.to_numpy())).drop(dates[LOST]))["data"]
    assert (data.index == dates).all() and np.flatnonzero(data.isna().any(axis=1)).tolist() == LOST


def test_a_long_gap_of_rounded_years():
    years = np.round(1958 + np.arange(300) / 12, 2)
    x = pandas.Series(np.arange(300.0), index=years)
    found = filled(x.drop(years[100:160]))["data"]
    assert len(found) == 300 and np.abs(found.index - years).max() < 0.01 and found.isna().sum() == 60


def test_too_many_rows_are_not_put_in():
    with pytest.raises(InputError, match="too many to put them in"):
        taken(pandas.Series(np.arange(5.0), index=[0, 1, 2, 3, 10**9]), regular="insert")


@pytest.mark.parametrize("kind", ["pandas", "series", "polars", "xarray", "field", "mapping"])
def test_containers_stay_of_their_kind(kind):
    dates = FRAME.index.to_numpy()
    if kind == "polars":
        polars = pytest.importorskip("polars", reason="polars is not installed")
        data = polars.DataFrame({"when": dates, "a": FRAME["a"].to_numpy(), "n": ["x"] * 117}).select("when", "n", "a")
    elif kind in ("xarray", "field"):
        xarray = pytest.importorskip("xarray", reason="xarray is not installed")
        values = FRAME.to_numpy() if kind == "xarray" else np.stack([FRAME.to_numpy()] * 2, axis=2).transpose(1, 0, 2)
        dims = ("time", "cell") if kind == "xarray" else ("lat", "time", "lon")
        data = xarray.DataArray(values.astype("f4"), dims=dims, coords={"time": dates}, attrs={"units": "K"})
    elif kind == "series":
        data = Series(np.ascontiguousarray(FRAME), tuple("abc"), dates, source="x.csv", units={"a": "K"})
    else:
        data = FRAME.assign(n="x") if kind == "pandas" else {"a": FRAME["a"], "b": FRAME["b"]}
    found = filled(data)["data"]
    assert type(found) is type(data)
    series = as_series(found, columns=None if kind in ("xarray", "field", "series", "mapping") else ["a"])
    assert series.n_steps == 120 and np.flatnonzero(np.isnan(series.values[:, 0])).tolist() == LOST
    np.testing.assert_allclose(series.values[12:50, 0], VALUES[12:50, 0], rtol=1e-6)
    if kind != "mapping":
        np.testing.assert_array_equal(series.time.astype("datetime64[D]"), MONTHS.to_numpy().astype("datetime64[D]"))
    if kind in ("xarray", "field", "series"):
        assert series.units and series.values.dtype == data.values.dtype
    if kind == "series":
        assert series.source == "x.csv"


def test_rows_of_ranges_and_masks_are_those_of_the_caller():
    mask = np.arange(117) > 20
    found = filled(FRAME, lib_range=(5, 60), pred_range=[(0, 10), (10, 117)], valid_lib=mask)
    assert found["lib_range"] == (5, 63) and found["pred_range"] == [(0, 10), (12, 120)]
    assert found["valid_lib"].sum() == mask.sum() and not found["valid_lib"][LOST].any()
    assert filled(FRAME, lib_range=(5, 600))["lib_range"] == (5, 600), "refused by what reads it"
    assert filled(FRAME, pred=VALUES, pred_range=(5, 60))["pred_range"] == (5, 60), "rows of another series"


def test_groups_have_times_of_their_own():
    one, other = WHOLE.assign(site="p"), FRAME.assign(site="q")
    assert quiet(pandas.concat([one, one.assign(site="r")]), groups="site")["groups"] == "site"
    both = pandas.concat([one, other])
    with pytest.raises(InputError, match=r"data: group q: 3 rows are missing in 2 places, before row 130 \(1991"):
        taken(both, groups="site")
    found = filled(both, groups="site", target=both[["b", "site"]])
    assert np.bincount(found["groups"].codes).tolist() == [120, 120] and list(found["data"]) == ["a", "b", "c"]
    assert len(found["target"]) == 240 and "site" not in found["target"]
    mixed = pandas.concat([one, other]).sort_index(kind="stable")  # rows of one between those of the other
    found = filled(mixed, groups=mixed["site"].to_numpy())
    for number in (0, 1):
        own = found["data"][found["groups"].codes == number]
        assert (own.index == MONTHS).all()
    levels = both.set_index("site", append=True)
    assert len(filled(levels, groups="site")["data"]) == 240


def test_the_same_thing_is_said_once(recwarn):
    taken(FRAME, target=FRAME["a"], regular="ignore")
    assert len(recwarn) == 1
    pyedmcl.rqa_batch([FRAME["a"].iloc[i:] for i in range(9)], radius=0.2, regular="ignore")
    assert len([one for one in recwarn if "are missing" in str(one.message)]) < 7, "of thousands a few are enough"


def test_the_result_is_that_of_rows_of_gaps(one_device):
    """With the caller's dates, and times of the rows that were put in; a call within a call is not asked again."""
    whole = WHOLE.copy()
    whole.iloc[LOST] = np.nan
    options = {"E": 2, "exclusion_radius": 3, "device": one_device}
    with pytest.warns(PyedmclWarning, match="put in 3 rows"):
        found = pyedmcl.simplex(FRAME["a"], target=FRAME["b"], regular="insert", **options)
    wanted = pyedmcl.simplex(whole["a"], target=whole["b"], **options)
    pandas.testing.assert_frame_equal(found.to_frame(), wanted.to_frame())
    assert found.provenance["arguments"]["regular"] == "insert" and found.provenance["data"]["lib"]["rows"] == 120
    with pytest.warns(PyedmclWarning, match="takes the rows as they come"):
        plain = pyedmcl.predict_interval(FRAME["a"], E=2, Tp=[1, 2], regular="ignore", device=one_device)
    expected = pyedmcl.predict_interval(FRAME["a"].to_numpy(), E=2, Tp=[1, 2], device=one_device)
    np.testing.assert_array_equal(plain.rho, expected.rho)


def test_groups_of_a_batch_keep_their_names(one_device):
    table = pandas.concat([WHOLE.assign(who=1, what="u"), FRAME.assign(who=2, what="v")])
    with pytest.warns(PyedmclWarning, match="put in 3 rows"):
        found = pyedmcl.rqa_batch(
            table, groups=["who", "what"], columns=["a"], radius=0.2, regular="insert", device=one_device
        )
    assert found.labels == {"who": (1, 2), "what": ("u", "v"), "series": ("a", "a")}
