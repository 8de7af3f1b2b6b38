"""Labels of groups: names of columns, levels and coordinates, labels as they are, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
import xarray
from series_helpers import driven

import pyedmcl
from pyedmcl.errors import InputError
from pyedmcl.series.groups import groups_of, take_groups

SIZES = (70, 45, 60)
X, Y = (column[: sum(SIZES)] for column in driven(200))
TABLE = np.column_stack([X, Y, X * Y])
LABELS = np.repeat(["b", "a", "c"], SIZES)


def same(found, expected):
    np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))


def test_names_of_columns_levels_and_coordinates(one_device):
    frame = pandas.DataFrame(TABLE, columns=["x", "y", "z"])
    frame["site"], frame["t"] = LABELS, np.concatenate([np.arange(size) for size in SIZES])
    levels = frame.set_index(["site", "t"])
    expected = pyedmcl.xmap(TABLE, E=2, groups=LABELS, device=one_device).rho
    for data in (frame.drop(columns="t"), levels, frame.drop(columns="t").set_index("site")):
        found = pyedmcl.xmap(data, E=2, groups="site", device=one_device)
        assert found.names == ("x", "y", "z")
        same(found.rho, expected)
    found = pyedmcl.simplex(levels["x"], target=levels["y"], E=2, groups="site", device=one_device)
    assert found.rho == pyedmcl.simplex(X, target=Y, E=2, groups=LABELS, device=one_device).rho
    array = xarray.DataArray(TABLE, dims=("time", "series"), coords={"site": ("time", LABELS)})
    for data in (array, {"site": LABELS, "x": X, "y": Y, "z": X * Y}):
        same(pyedmcl.xmap(data, E=2, groups="site", device=one_device).rho, expected)
    with pytest.raises(InputError, match="several levels; name those that tell recordings apart in groups="):
        pyedmcl.xmap(levels, E=2, device=one_device)


def test_labels_that_are_names_of_columns_too(one_device):
    codes = (LABELS == "a") + 2 * (LABELS == "c")
    expected = pyedmcl.xmap(TABLE, E=2, groups=LABELS, device=one_device).rho
    same(pyedmcl.xmap(pandas.DataFrame(TABLE), E=2, groups=codes, device=one_device).rho, expected)
    batch = pyedmcl.rqa_batch(pandas.DataFrame(TABLE), groups=codes, radius=0.1, device=one_device)
    assert len(batch) == 9


def test_labels():
    made = groups_of([("a", 1), ("b", 1), ("a", 1), float("nan"), None, float("nan")], 6, "x")
    assert made.codes.tolist() == [0, 1, 0, 2, 2, 2] and made.names.tolist()[:2] == ["a:1", "b:1"]
    _, groups = take_groups({"site": [3, 3, 1], "x": [1.0, 2, 3]}, "site", "x")
    assert groups.names.tolist() == [3, 1] and groups.sizes.tolist() == [2, 1]


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ("site", "groups='site': data has no column or level of this name"),
        (LABELS[:9], "groups has 9 labels and data 175 rows"),
        (5, "groups=5: names of columns of a DataFrame, or a label"),
        ([[1]] * 175, "or a label for each"),
        (np.arange(175) // 3, "groups: E=3, tau=2, Tp=0 needs 5 rows of a group, and there are fewer in '0 (3 rows)'"),
    ],
)
def test_bad_groups_are_refused_by_name(groups, said):
    with pytest.raises(InputError) as caught:
        pyedmcl.xmap(TABLE, E=3, tau=2, groups=groups)
    assert said in str(caught.value)


def test_a_missing_value_is_no_name_of_a_column():
    """Whether pandas.NA is equal to anything cannot be said."""
    pandas = pytest.importorskip("pandas", reason="frames as input need pandas")
    frame = pandas.DataFrame(TABLE).rename(columns=str)
    for data in (frame, {name: column.to_numpy() for name, column in frame.items()}):
        for groups in (pandas.NA, ["0", pandas.NA]):
            with pytest.raises(InputError, match="groups"):
                pyedmcl.xmap(data, E=2, groups=groups)


def test_labels_are_counted_before_groups_are_measured():
    pandas = pytest.importorskip("pandas", reason="frames as input need pandas")
    with pytest.raises(InputError, match="groups has 3 labels and data 175 rows"):
        pyedmcl.xmap(TABLE, E=2, groups=[1, 2, 3])
    frame = pandas.DataFrame(TABLE, columns=[f"c{i}" for i in range(TABLE.shape[1])]).assign(plot=LABELS)
    with pytest.raises(InputError, match="data has no column or level 'nope'; there are 'c0'"):
        pyedmcl.xmap(frame, E=2, groups=["plot", "nope"])
