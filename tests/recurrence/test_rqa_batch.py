"""Many series in one call: each row is what ``rqa`` gives for its series alone, in counts and in every measure."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest

import pyedmcl
import pyedmcl.recurrence.measures
from pyedmcl.device.quirks import quirks_for
from pyedmcl.device.select import open_device
from pyedmcl.errors import InputError, ReadingWarning, RecurrenceWarning
from pyedmcl.kernels.build import noting
from pyedmcl.recurrence import batch_problem
from pyedmcl.recurrence.batch_problem import BatchSweep
from pyedmcl.recurrence.measures import SHORT_NAMES


def series(n, seed=0):
    return np.cumsum(np.random.default_rng(seed).standard_normal(n)) / 3


def alone(x, y=None, *, device, **options):
    """Results of a loop over the series, a list of one for each series and radius."""
    found = []
    for place, one in enumerate(x):
        result = pyedmcl.rqa(one, None if y is None else y[place], device=device, **options)
        found += [result] if isinstance(result, pyedmcl.recurrence.measures.RecurrenceResult) else list(result)
    return found


def assert_same(batch, wanted):
    assert len(batch) == len(wanted)
    for row, (one, other) in enumerate(zip(batch, wanted, strict=True)):
        assert one.counts == other.counts, (row, one.counts.differences(other.counts))
        assert one.radius == other.radius or (one.radius != one.radius and other.radius != other.radius)
        assert (one.theiler, one.lmin, one.symmetric) == (other.theiler, other.lmin, other.symmetric)
        for mine, its in zip(one.complete, other.complete, strict=True):
            np.testing.assert_array_equal(mine, its)
    for short, long in SHORT_NAMES.items():
        measured = batch.measure(short)
        np.testing.assert_array_equal(measured, [result[long] for result in wanted], err_msg=long)


@pytest.mark.parametrize("radius", [0.5, [0.2, 0.5]])
def test_coordinates_of_a_field_are_kept(one_device, radius):
    xarray = pytest.importorskip("xarray")
    values = np.random.default_rng(1).standard_normal((50, 3, 2))
    lat, lon = [10.0, 20.0, 30.0], ["east", "west"]
    field = xarray.DataArray(values, dims=("time", "lat", "lon"), coords={"lat": lat, "lon": lon})
    batch = pyedmcl.rqa_batch(field, radius=radius, device=one_device)
    assert batch.labels == {"lat": tuple(np.repeat(lat, 2)), "lon": tuple(lon * 3)}
    found = batch.to_xarray()
    for at, here in enumerate(lat):
        for beside, there in enumerate(lon):
            wanted = pyedmcl.rqa(values[:, at, beside], radius=radius, device=one_device)
            rates = [one.RR for one in wanted] if isinstance(radius, list) else wanted.RR
            np.testing.assert_array_equal(found.recurrence_rate.sel(lat=here, lon=there), rates)
    if isinstance(radius, list):
        assert found.radius.values.tolist() == radius
    turned = field.transpose("lat", "lon", "time")
    assert pyedmcl.rqa_batch(turned, axis=-1, radius=radius, device=one_device).labels == batch.labels
    with pytest.raises(InputError, match="axis=0: that is 'lat'; give axis=2"):
        pyedmcl.rqa_batch(turned, radius=radius, device=one_device)


def test_labels_that_are_no_grid_are_coordinates_of_series(one_device):
    pytest.importorskip("xarray")
    frame, _ = dyads()
    given = {"groups": ["dyad", "person"], "partners": "person", "theiler": 0, "device": one_device}
    found = pyedmcl.rqa_batch(frame[frame.columns.drop("head")], radius=0.5, pseudo=1, **given).to_xarray()
    assert found.determinism.dims == ("number",)
    assert found.person_y.values.tolist() == ["a0", "a1", "a2", "a3", "a1", "a2", "a3", "a0"]


def dyads(order=("b", "a"), n=4):
    """A frame of dyads, rows of which stand in any order, and their series."""
    pd = pytest.importorskip("pandas")
    held, rows = {}, []
    for dyad in range(n):
        for place, person in enumerate(order):
            held[dyad, place] = np.random.default_rng([dyad, place]).standard_normal((60 + 5 * dyad, 2))
            one = pd.DataFrame(held[dyad, place], columns=["hand", "head"])
            rows.append(one.assign(dyad=dyad, person=f"{person}{dyad}"))
    return pd.concat(rows, ignore_index=True), held


@pytest.mark.parametrize("pseudo", [0, 1, 3])
def test_dyads_of_a_frame_and_pseudo_dyads(one_device, pseudo):
    frame, held = dyads()
    given = {"groups": ["dyad", "person"], "partners": "person", "pseudo": pseudo, "radius": 0.5, "theiler": 0}
    batch = pyedmcl.rqa_batch(frame, device=one_device, **given)
    true = [(dyad, dyad, at) for dyad in range(4) for at in range(2)]
    wanted = true + [(dyad, (dyad + step) % 4, at) for dyad, _, at in true for step in range(1, pseudo + 1)]
    assert_same(batch, alone(
        [held[x, 0][:, at] for x, _, at in wanted], [held[y, 1][:, at] for _, y, at in wanted],
        device=one_device, radius=0.5, theiler=0,
    ))  # fmt: skip
    table = batch.to_dict()
    assert table["dyad"] == [x for x, _, _ in wanted] and table["series"] == [("hand", "head")[at] for *_, at in wanted]
    assert table["person"] == [f"b{x}" for x, _, _ in wanted] and table["person_y"] == [f"a{y}" for _, y, _ in wanted]
    if pseudo:
        assert table["pseudo"] == [False] * 8 + [True] * 8 * pseudo
        assert table["dyad_y"] == [y for _, y, _ in wanted]
    else:
        assert not {"pseudo", "dyad_y"} & set(table)


def test_pseudo_dyads_of_lists(one_device):
    x, y = ([np.random.default_rng([side, at]).standard_normal(50) for at in range(3)] for side in (1, 2))
    batch = pyedmcl.rqa_batch(x, y, pseudo=2, radius=0.5, theiler=0, device=one_device)
    pairs = [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2), (1, 0), (2, 0), (2, 1)]
    assert_same(batch, alone([x[at] for at, _ in pairs], [y[at] for _, at in pairs], device=one_device, radius=0.5,
                             theiler=0))  # fmt: skip
    assert list(zip(batch.labels["series"], batch.labels["series_y"], strict=True)) == pairs


@pytest.mark.parametrize(("options", "match"), [
    ({"partners": "who"}, "name one of groups"), ({"partners": ["person"]}, "name one of groups"),
    ({"groups": ["person"]}, "others tell the dyads apart"), ({"pseudo": 4}, "there are 3"),
    ({"partners": None, "pseudo": 1}, "dyads are needed"), ({"pseudo": -1}, "pseudo=-1"),
    ({"drop": "a2"}, r"the dyad dyad=2 has \['b2'\]"), ({"y": [1]}, "leave y out"),
], ids=str)  # fmt: skip
def test_what_are_no_dyads_is_refused(options, match):
    frame, _ = dyads()
    options = dict(options)
    if "drop" in options:
        frame = frame[frame["person"] != options.pop("drop")]
    given = {"groups": ["dyad", "person"], "partners": "person", "radius": 0.5, "theiler": 0}
    with pytest.raises(InputError, match=match):
        pyedmcl.rqa_batch(frame, **{**given, **options})


LENGTHS = (90, 40, 333, 64, 65, 97, 12, 200)
CASES = {
    "plain": {"radius": 0.8},
    "lags": {"m": 3, "tau": 2, "radius": [1.3, 0.4], "theiler": 4, "metric": "maximum"},
    "everywhere": {"m": 2, "radius": 1.0, "theiler": 5, "convention": "recurrenceanalysis", "lmin": 3, "vmin": 4},
    "crqa": {"radius": 0.6, "theiler": 2, "convention": "crqa"},
    "identity": {"radius": 0.5, "theiler": 0, "metric": "manhattan", "exact": False},
    "accrqa": {"radius": 0.5, "convention": "accrqa", "dtype": "float64"},
    "corridor": {"m": 2, "radius": [(0.3, 1.1), (0.1, 0.2)], "threshold": "corridor"},
    "rate": {"radius": [0.2, 0.1], "threshold": "recurrence_rate"},
    "neighbours": {"radius": [3, 2], "threshold": "neighbours"},
    "std": {"m": 2, "radius": [0.2, 0.3], "radius_unit": "std"},
    "zscore": {"m": 2, "radius": 0.2, "normalize": "zscore", "radius_unit": "range"},
    "far": {"m": 2, "radius": 0.2, "radius_unit": "max_distance"},
    "cosine": {"m": 2, "radius": 0.3, "metric": "cosine"},
    "nothing": {"radius": 1e-9},
}


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_each_series_is_what_it_is_alone(device, case, gaps):
    x = [series(n, n) for n in LENGTHS]
    if gaps:
        for one in x[1:4]:
            one[[0, len(one) // 2, -1]] = np.nan
    batch = pyedmcl.rqa_batch(x, device=device, **CASES[case])
    assert_same(batch, alone(x, device=device, **CASES[case]))


@pytest.mark.parametrize("case", ["lags", "everywhere", "corridor", "rate", "std", "zscore", "far", "plain"])
def test_pairs_are_what_they_are_alone(device, case):
    x = [series(n, n) for n in LENGTHS[1:]]
    y = [series(n, n + 1) for n in LENGTHS[:-1]]
    y[2][5] = np.nan
    batch = pyedmcl.rqa_batch(x, y, device=device, **CASES[case])
    assert_same(batch, alone(x, y, device=device, **CASES[case]))
    assert not batch[0].symmetric


def test_lines_that_end_with_a_word(device):
    """Lines of 64 and 128 cells that are black, white or both to the last cell."""
    x = [np.zeros(64), np.zeros(128), np.arange(128.0), np.arange(128.0) % 2, np.repeat([0.0, 9.0, 0.0], [60, 64, 68])]
    y = [np.zeros(128), np.ones(64), np.arange(64.0), np.arange(64.0) % 3, np.repeat([0.0, 9.0], [128, 64])]
    for options in ({"radius": 0.5}, {"radius": 0.5, "theiler": 0}, {"radius": 0.5, "theiler": 63}):
        assert_same(pyedmcl.rqa_batch(x, device=device, **options), alone(x, device=device, **options))
    assert_same(pyedmcl.rqa_batch(x, y, radius=0.5, device=device), alone(x, y, radius=0.5, device=device))


def test_states_of_several_coordinates(one_device):
    x = [np.stack([series(n, 1), series(n, n)], axis=1) for n in (60, 80, 45)]
    options = {"radius": [0.6, 1.5], "radius_unit": "std", "device": one_device}
    assert_same(pyedmcl.rqa_batch(x, m=2, tau=3, **options), alone(x, m=2, tau=3, **options))
    assert_same(pyedmcl.rqa_batch(x, embedded=True, **options), alone(x, embedded=True, **options))
    mixed = [series(60), series(50).tolist(), series(40).astype(np.float32), np.arange(30)]
    assert_same(pyedmcl.rqa_batch(mixed, radius=1.0, device=one_device), alone(mixed, radius=1.0, device=one_device))


def test_directions_in_an_array(one_device):
    x = np.stack([series(60, seed) for seed in range(3)])
    given = {"m": 2, "radius": 0.3, "metric": "cosine", "device": one_device}
    assert_same(pyedmcl.rqa_batch(x, axis=1, **given), alone(x, **given))


@pytest.mark.parametrize("form", ["lags", "planes", "corridor", "gaps"])
def test_cells_on_the_limit_are_decided_in_float64(device, form):
    """Distances of rounded numbers are often equal to the radius, which float32 cannot see."""
    x = [np.round(3 * series(n, n)) / 10 for n in (97, 160, 64)]
    given = {"m": 3, "tau": 2, "radius": 0.3, "metric": "maximum", "device": device}
    if form == "planes":
        x = [np.stack([one, one[::-1]], axis=1) for one in x]
        given = {"radius": 0.5, "device": device}
    elif form == "corridor":
        given |= {"threshold": "corridor", "radius": [(0.2, 0.5)]}
    elif form == "gaps":
        x[1][20:23] = np.nan
    with noting() as built:
        found = pyedmcl.rqa_batch(x, **given)
    host = quirks_for(open_device(device).info).on_host  # GPUs count a matrix cell by cell, in the series' precision
    assert [(values["screened"], values["embedded"]) for _, values in built] == [(host, host and form == "planes")]
    assert_same(found, alone(x, **given))


def test_offsets_beyond_float32_are_not_screened(one_device):
    x = [1e6 + np.round(series(80, seed)) / 10 for seed in range(2)]
    given = {"m": 2, "radius": 0.3, "device": one_device}
    with noting() as built:
        found = pyedmcl.rqa_batch(x, **given)
    assert [values["screened"] for _, values in built] == [False]
    assert_same(found, alone(x, **given))


def test_long_series_go_the_usual_way(one_device, monkeypatch):
    monkeypatch.setattr(batch_problem, "LONGEST", 80)
    x = [series(n, n) for n in LENGTHS]
    assert_same(pyedmcl.rqa_batch(x, radius=[0.8, 0.2], device=one_device),
                alone(x, radius=[0.8, 0.2], device=one_device))  # fmt: skip
    pair = {"radius": 0.5, "device": one_device, "m": 2}
    assert_same(pyedmcl.rqa_batch(x, x[::-1], **pair), alone(x, x[::-1], **pair))


def test_blocks_and_memory_change_nothing(one_device, monkeypatch):
    x = [series(n, n) for n in LENGTHS]
    options = {"m": 2, "radius": [0.8, 0.3], "device": one_device}
    whole = pyedmcl.rqa_batch(x, **options)
    monkeypatch.setattr(batch_problem, "_BLOCK_CELLS", 1)
    seen = []
    assert_same(pyedmcl.rqa_batch(x, progress=lambda *at: seen.append(at), **options), list(whole))
    assert seen == [(n, 8, "series") for n in range(9)]
    monkeypatch.setattr(batch_problem, "_BLOCK_CELLS", 1 << 40)
    monkeypatch.setenv("PYEDMCL_MEMORY_LIMIT", "100000")
    assert_same(pyedmcl.rqa_batch(x, **options), list(whole))


def test_short_launches_change_nothing(device, monkeypatch):
    """More matrices than groups: a counter is set back, and results are appended to those of earlier launches."""
    x = [series(n, n) for n in LENGTHS] * 6
    options = {"m": 2, "radius": [0.8, 0.3], "device": device}
    whole = list(pyedmcl.rqa_batch(x, **options))
    monkeypatch.setattr("pyedmcl.recurrence.batch_problem.Pacer.units", lambda self, cost: 1)
    opened, launches = BatchSweep.__init__, []

    def with_two_groups(self, *arguments):
        opened(self, *arguments)
        self._groups = 2

    monkeypatch.setattr(BatchSweep, "__init__", with_two_groups)
    monkeypatch.setattr("pyedmcl.recurrence.batch_problem.Pacer.launched", lambda self, *what: launches.append(what))
    assert_same(pyedmcl.rqa_batch(x, **options), whole)
    assert len(launches) > 2


def test_several_devices_share_the_series(both_devices, monkeypatch):
    x = [series(n, n) for n in LENGTHS]
    options = {"m": 2, "radius": [0.8, 0.3]}
    whole = pyedmcl.rqa_batch(x, device=both_devices[0], **options)
    assert_same(pyedmcl.rqa_batch(x, device=list(both_devices), **options), list(whole))


@pytest.mark.parametrize("exponent", [-1000, 900])
def test_scale_does_not_matter(one_device, exponent):
    x = [np.ldexp(series(n, n), exponent) for n in LENGTHS[:3]] + [series(50), np.zeros(30)]
    options = {"m": 2, "radius": math.ldexp(0.7, exponent), "device": one_device}
    assert_same(pyedmcl.rqa_batch(x, **options), alone(x, **options))
    y = x[1:] + x[:1]
    assert_same(pyedmcl.rqa_batch(x, y, **options), alone(x, y, **options))


def test_order_of_lines_does_not_matter(one_device):
    """Groups end in any order, so that the lines of a matrix may lie anywhere; some matrices lack a kind of line."""
    x = [np.zeros(30), series(90, 1), np.arange(40.0), series(60, 2), np.zeros(50), np.arange(30.0), series(80, 3)]
    for options in ({"theiler": 0}, {"convention": "accrqa"}, {"convention": "crqa"}):
        batch = pyedmcl.rqa_batch(x, radius=0.5, device=one_device, **options)
        counts = batch.counts
        places = np.array([4, 2, 6, 0, 5, 1, 3])
        pieces = [counts.lines[counts.begins[at] : counts.begins[at] + counts.lengths[at]] for at in places]
        begins = np.empty(len(x), np.int64)
        begins[places] = np.cumsum(counts.lengths[places]) - counts.lengths[places]
        moved = replace(counts, begins=begins, lines=np.concatenate(pieces))
        assert_same(replace(batch, counts=moved), list(batch))


def test_arrays_and_mappings(one_device):
    options = {"radius": 0.6, "device": one_device}
    table = np.stack([series(70, n) for n in range(6)], axis=1)
    wanted = alone(list(table.T), **options)
    columns = pyedmcl.rqa_batch(table, **options)
    assert_same(columns, wanted)
    assert columns.labels == {"series": tuple(range(6))}
    epochs = table.T.reshape(2, 3, 70)
    batch = pyedmcl.rqa_batch(epochs, axis=-1, **options)
    assert_same(batch, wanted)
    assert batch.labels == {"axis_0": (0, 0, 0, 1, 1, 1), "axis_1": (0, 1, 2, 0, 1, 2)}
    named = pyedmcl.rqa_batch({"a": table[:, 0], "b": table[:60, 1]}, **options)
    assert named.labels == {"series": ("a", "b")} and named[1].counts.n_rows == 60
    only = pyedmcl.rqa_batch(table[:, 0], **options)
    assert len(only) == 1 and only[-1].counts == wanted[0].counts
    halves = pyedmcl.rqa_batch(table, groups=["first"] * 40 + ["second"] * 30, **options)
    assert halves.labels["group"] == ("first",) * 6 + ("second",) * 6
    assert halves[7].counts == pyedmcl.rqa(table[40:, 1], **options).counts


def test_frames_in_groups(one_device):
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    options = {"radius": [0.6, 0.3], "device": one_device}
    parts = {("s2", "Cz"): 50, ("s1", "Cz"): 70, ("s1", "Fz"): 60}
    frame = pandas.concat(
        [pandas.DataFrame({"subject": s, "channel": c, "uV": series(n, n), "vV": series(n, n + 9)})
         for (s, c), n in parts.items()], ignore_index=True
    )  # fmt: skip
    frame = frame.iloc[np.random.default_rng(0).permutation(len(frame))].reset_index(drop=True)
    batch = pyedmcl.rqa_batch(frame, groups=["subject", "channel"], **options)
    wanted = [part[name].to_numpy() for _, part in frame.groupby(["subject", "channel"], sort=False)
              for name in ("uV", "vV")]  # fmt: skip
    assert_same(batch, alone(wanted, **options))
    table = batch.to_frame()
    assert list(table.columns[:5]) == ["subject", "channel", "series", "radius", "radius_used"]
    order = frame[["subject", "channel"]].drop_duplicates()
    assert table["subject"].tolist()[::4] == order["subject"].tolist()
    assert table["series"].tolist()[:4] == ["uV"] * 2 + ["vV"] * 2
    np.testing.assert_array_equal(table["determinism"], batch.measure("DET"))
    assert batch.with_minimum(lmin=4)[1].DET == batch[1].with_minimum(lmin=4).DET
    indexed = pyedmcl.rqa_batch(frame.set_index(["subject", "channel"]), groups=["subject", "channel"], **options)
    assert indexed.labels == batch.labels
    one = pyedmcl.rqa_batch(frame, groups="subject", columns=["uV"], **options)
    assert one.labels == {"subject": tuple(order["subject"].drop_duplicates()), "series": ("uV", "uV")}


@pytest.mark.parametrize(
    ("given", "message"),
    [({"series": []}, "series: there is no series in it"),
     ({"series": [series(30), [1.0]]}, r"series \(series=1\): m=2, tau=1 needs at least 3 values"),
     ({"series": [series(30), np.r_[series(30), np.inf]]}, r"series \(series=1\).* is infinite in row 30"),
     ({"series": [series(30), "text"]}, r"series \(series=1\)"),
     ({"series": np.zeros((2, 2, 2, 2))}, "one to three dimensions is needed"),
     ({"series": series(30), "axis": 2}, "axis=2: series has 1 axes"),
     ({"series": [series(30)], "groups": "a"}, "groups='a': the series of series are apart already"),
     ({"series": series(30), "groups": [1, 2]}, "a label for each of the 30 rows"),
     ({"series": [series(30)], "columns": ["a"]}, "columns=.* chooses columns of a DataFrame"),
     ({"series": [series(30)], "y": [series(30)] * 2}, "y: 2 series, and there are 1 of series"),
     ({"series": [series(30), series(9)], "theiler": 8}, r"series=1\): theiler=8 leaves no cell of a 8 x 8"),
     ({"series": [series(30), np.ones(30)], "radius_unit": "std"}, r"series \(series=1\): radius_unit='std' cannot"),
     ({"series": [series(30)], "radius_unit": "sd"}, "radius_unit='sd'"),
     ({"series": [series(30)], "radius": -1}, "radius=-1"),
     ({"series": [series(30), np.ones((30, 2))]}, "its points have 4 coordinates, and those of series"),
     ({"series": [series(30)], "progress": 3}, "progress=3: a function is needed"),
     ({"series": [series(30), series(5)], "threshold": "neighbours", "radius": 9}, r"series \(series=1\): radius=9")],
)  # fmt: skip
def test_bad_input(one_device, given, message):
    with pytest.raises(InputError, match=message):
        pyedmcl.rqa_batch(device=one_device, **{"m": 2, "radius": 0.5, "errors": "raise", **given})


BAD = {
    "gaps": np.full(60, np.nan), "empty": np.empty(0), "short": series(3), "infinite": np.r_[series(30), np.inf],
    "complex": np.full(40, 1j), "window": series(12),
}  # fmt: skip
THRESHOLDS = {
    "fixed": {"radius": 0.5}, "two": {"radius": [0.2, 0.5]}, "std": {"radius": 0.3, "radius_unit": "std"},
    "range": {"radius": 0.1, "radius_unit": "range"}, "largest": {"radius": 0.1, "radius_unit": "max_distance"},
    "rate": {"radius": 0.1, "threshold": "recurrence_rate"}, "neighbours": {"radius": 4, "threshold": "neighbours"},
    "corridor": {"radius": (0.1, 0.5), "threshold": "corridor"},
    "corridor of largest": {"radius": (0.1, 0.5), "threshold": "corridor", "radius_unit": "max_distance"},
}  # fmt: skip


@pytest.mark.parametrize("bad", [*BAD, "constant"])
@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_one_bad_series_is_a_row_of_nan(one_device, threshold, bad):
    options = {"m": 2, "tau": 3, "theiler": 10, "device": one_device, **THRESHOLDS[threshold]}
    good = [series(60), series(90, seed=3)]
    held = np.ones(60) if bad == "constant" else BAD[bad]
    if bad == "constant" and threshold not in ("std", "range", "largest", "corridor of largest"):
        return  # it recurs everywhere
    with pytest.warns(RecurrenceWarning, match=r"1 of 3 series cannot be used.*series=1.*errors='raise' refuses"):
        batch = pyedmcl.rqa_batch([good[0], held, good[1]], **options)
    rows = len(batch) // 3
    assert list(batch.failed) == [1]
    for place, one in ((0, good[0]), (2, good[1])):
        alone = pyedmcl.rqa_batch([one], **options)
        assert [row.counts for row in batch[place * rows : (place + 1) * rows]] == [row.counts for row in alone]
    frame = batch.to_frame()
    assert frame.iloc[rows : 2 * rows, 3:].isna().all().all() and not frame["recurrence_rate"].drop(
        frame.index[rows : 2 * rows]).isna().any()  # fmt: skip
    with pytest.raises(InputError, match="series=1"):
        pyedmcl.rqa_batch([good[0], held, good[1]], errors="raise", **options)
    with pytest.raises(InputError, match="theiler=10 leaves no cell" if bad == "window" else "series=0"):
        pyedmcl.rqa_batch([held], **options)


def test_one_bad_partner_is_a_row_of_nan(one_device):
    x = [series(60), series(50, seed=1), series(40, seed=2)]
    y = [series(60, seed=3), np.full(50, np.nan), series(40, seed=4)]
    with pytest.warns(RecurrenceWarning, match="1 of 3 series"):
        batch = pyedmcl.rqa_batch(x, y, radius=0.5, theiler=0, device=one_device)
    assert np.isnan(batch.measure("DET")).tolist() == [False, True, False]
    assert batch[2].counts == pyedmcl.rqa(x[2], y[2], radius=0.5, theiler=0, device=one_device).counts


@pytest.mark.parametrize("threshold", [name for name in THRESHOLDS if name != "two"])
def test_radii_of_each_series_own(device, threshold):
    options = {"device": device, "theiler": 2, **THRESHOLDS[threshold]}
    first = options.pop("radius")
    second = tuple(2 * part for part in first) if isinstance(first, tuple) else 2 * first
    x = [series(60), series(90, seed=3)]
    batch = pyedmcl.rqa_batch(x, radius=np.array([[first, second], [second, first]]), **options)
    wanted = [pyedmcl.rqa(one, radius=radius, **options) for one, radius in
              zip([x[0], x[0], x[1], x[1]], [first, second, second, first], strict=True)]  # fmt: skip
    assert [row.counts for row in batch] == [row.counts for row in wanted]
    assert batch.to_dict()["radius"] == [first, second, second, first]
    with pytest.raises(InputError, match="radii of each series' own, and there are 2 series"):
        pyedmcl.rqa_batch(x, radius=np.array([[first, second]]), **options)


def _forms(values):
    """Two series (2, n) in each form that a batch takes."""
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"a": values[0], "b": values[1]})
    return {
        "array": {"series": values.T}, "array with axis": {"series": values, "axis": 1},
        "list of arrays": {"series": list(values)}, "lists": {"series": values.tolist()},
        "mapping": {"series": {"a": values[0], "b": values[1]}}, "frame": {"series": frame},
        "groups of a frame": {"series": frame.assign(g=["u", "v"] * (len(frame) // 2)), "groups": "g"},
        "groups of an array": {"series": values.T, "groups": ["u", "v"] * (len(frame) // 2)},
        "y": {"series": list(np.zeros(values.shape)), "y": list(values)},
    }  # fmt: skip


@pytest.mark.parametrize("form", _forms(np.zeros((2, 2))))
def test_what_the_door_tells_of_values_is_told_in_every_form(form):
    """Digits that float64 does not hold, and numbers that stand for gaps; nothing of values that are neither."""
    steps = np.random.default_rng(1).integers(0, 50, (2, 60))
    coded = np.where(steps < 2, -9999, steps).astype(float)
    with pytest.warns(ReadingWarning, match="in the last digits that float64 holds"):
        pyedmcl.rqa_batch(**_forms(2**60 + steps)[form], radius=3.0)
    with pytest.warns(ReadingWarning, match="-9999 occurs"):
        pyedmcl.rqa_batch(**_forms(coded)[form], radius=3.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ReadingWarning)
        pyedmcl.rqa_batch(**_forms(steps)[form], radius=3.0)


def test_masked_values_of_a_list_are_gaps():
    values = np.ma.masked_array(series(80), mask=np.arange(80) == 7)
    batch = pyedmcl.rqa_batch([values, values], radius=0.5)
    assert batch[0].counts == pyedmcl.rqa(values, radius=0.5).counts


def test_a_frame_is_read_as_everywhere():
    """Numbers as texts and their gaps; a column that is the time is no series."""
    pandas = pytest.importorskip("pandas")
    numbers = series(60).round(3)
    texts = [str(value).replace(".", ",") for value in numbers.tolist()]
    frame = pandas.DataFrame({"date": pandas.date_range("2001-01-01", periods=60), "a": texts})
    frame.loc[5, "a"] = "#N/A"
    with pytest.warns(ReadingWarning, match="#N/A"):
        batch = pyedmcl.rqa_batch(frame, radius=0.5)
    numbers[5] = np.nan
    assert batch.labels == {"series": ("a",)}
    assert batch[0].counts == pyedmcl.rqa(numbers, radius=0.5).counts


def test_groups_of_pandas_are_series():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"who": ["u", "v"] * 40, "x": series(80)})
    batch = pyedmcl.rqa_batch(frame.groupby("who")["x"], radius=0.5)
    assert batch.labels == {"series": ("u", "v")}
    assert batch[1].counts == pyedmcl.rqa(frame["x"][1::2].to_numpy(), radius=0.5).counts


def test_series_of_other_steps_are_told():
    pandas = pytest.importorskip("pandas")
    days = pandas.Series(series(60), pandas.date_range("2001-01-01", periods=60))
    with pytest.warns(ReadingWarning, match="x has a row every day, and y every 2 days"):
        pyedmcl.rqa_batch([days], [days.set_axis(pandas.date_range("2001-01-01", periods=60, freq="2D"))], radius=0.5)
