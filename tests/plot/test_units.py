"""Units of series: on axes and in frames, from the argument, from attributes of the data, or from names of columns."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
from cli_helpers import inside

import pyedmcl
from pyedmcl.errors import InputError

RNG = np.random.default_rng(3)
X = RNG.random((60, 2)).cumsum(axis=0) % 1.3


def labels(figure):
    return [text for ax in figure.axes for text in (ax.get_xlabel(), ax.get_ylabel()) if text]


def test_units_of_xarray(one_device):
    xarray = pytest.importorskip("xarray")
    array = xarray.DataArray(X[:, 0], dims="time", name="tos", attrs={"units": "degC"})
    found = pyedmcl.simplex(array, E=2, device=one_device)
    assert "tos [degC]" in labels(found.plot()) and found.provenance["data"]["lib"]["units"] == {"tos": "degC"}
    data = xarray.Dataset({"u": ("time", X[:, 0], {"units": "m s-1"}), "v": ("time", X[:, 1])})
    assert pyedmcl.xmap(data, E=2, device=one_device).provenance["data"]["data"]["units"] == {"u": "m s-1"}
    both = xarray.DataArray(X, dims=("time", "depth"), attrs={"units": "degC"})
    found = pyedmcl.xmap(both, E=2, device=one_device)
    assert found.provenance["data"]["data"]["units"] == {"x0": "degC", "x1": "degC"}


def test_units_of_attributes_stand_on_axes_and_in_frames(one_device):
    series = pandas.Series(X[:, 0], name="tos")
    series.attrs["units"] = "degC"
    found = pyedmcl.simplex(series, E=2, device=one_device)
    assert {"tos [degC]", "observed tos [degC]", "predicted tos [degC]"} <= set(labels(found.plot()))
    units = found.to_frame().attrs["units"]
    assert (units["observed"], units["variance"]) == ("degC", "(degC)^2")
    assert found.provenance["data"]["lib"]["units"] == {"tos": "degC"}
    frame = pandas.DataFrame(X, columns=["a", "b"])
    frame.attrs["units"] = {"a": "m/s", "b": "K", "time": "rows"}
    both = pyedmcl.smap(frame, target=frame["b"], E=1, state=["a", "b"], theta=1, device=one_device)
    titles = [ax.get_title(loc="left") for ax in both.plot_coefficients().axes]
    assert titles == ["C0 [K]", "d / d a(t-0) [K / m/s]", "d / d b(t-0) [K / K]"]


def test_units_that_are_given_and_those_of_names(one_device, tmp_path):
    found = pyedmcl.simplex(pandas.Series(X[:, 0], name="temp [degC]"), E=2, device=one_device)
    assert "temp [degC]" in labels(found.plot()), "a name that has its unit stays as it is"
    plain = pyedmcl.simplex(pandas.Series(X[:, 0], name="temp"), E=2, device=one_device)
    assert "temp" in labels(plain.plot()) and "temp [K]" in labels(plain.plot(units="K"))
    assert "temp [K]" in labels(plain.plot(units={"temp": "K", "other": "m"}))
    assert "distance [K]" in labels(pyedmcl.knn(X[:, 0], E=2, k=2, device=one_device).plot(units="K"))
    assert labels(pyedmcl.embed(pandas.Series(X[:, 0], name="a"), E=2).plot(units={"a": "mV"})) == [
        "a(t-0) [mV]", "a(t-1) [mV]"
    ]  # fmt: skip
    with pytest.raises(InputError, match="units=5: a text"):
        plain.plot(units=5)
    path = tmp_path / "in.csv"
    pandas.DataFrame(X, columns=["temp [degC]", "flow [m3/s]"]).to_csv(path, index=False)
    done = inside("xmap", path, "-o", tmp_path / "m.zarr", "--E", 2, "--edges", 2, "--device", one_device)
    assert done.returncode == 0 and "temp [degC]" in done.stdout and "flow [m3/s]" in done.stdout, done.stderr
