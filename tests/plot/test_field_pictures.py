"""Skill of a field is drawn as a map of its places."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed; pip install 'pyedmcl[plot]' brings it")

from picture_helpers import look_at

from pyedmcl.crossmap.results import XmapResult
from pyedmcl.series.fields import Grid

LAT, LON = np.array([-10.0, 0.0, 10.0]), np.array([140.0, 145.0, 150.0, 160.0])
GRID = Grid(("lat", "lon"), (3, 4), {"lat": LAT, "lon": LON}, np.array([0, 1, 2, 4, 5, 6, 7, 9, 10, 11]))


def result(others, turned=False):
    rho = np.random.default_rng(0).uniform(0, 1, (10, others))
    names = tuple(f"index {i}" for i in range(others))
    if turned:
        return XmapResult(rho.T, np.full(10, 3), names, targets=GRID.names, grids=(None, GRID))
    return XmapResult(rho, np.full(others, 3), GRID.names, targets=names, grids=(GRID, None))


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("others", [1, 4])
def test_each_series_has_a_map_in_the_coordinates_of_the_field(others, turned):
    found = result(others, turned)
    figure = found.plot()
    look_at(figure)
    panels = [ax for ax in figure.axes if ax.get_xlabel() == "lon"]
    assert len(panels) == others and all(ax.get_ylabel() == "lat" for ax in panels)
    for number, ax in enumerate(panels):
        (mesh,) = ax.collections
        cells = np.ma.filled(mesh.get_array(), np.nan).ravel()
        expected = np.full(12, np.nan)
        expected[GRID.cells] = np.asarray(found.rho)[number] if turned else np.asarray(found.rho)[:, number]
        np.testing.assert_allclose(cells, expected)
        assert f"index {number}" in ax.get_title() and ("each cell drives" in ax.get_title()) is turned
        assert ax.get_xlim()[0] == pytest.approx(137.5) and ax.get_ylim() == pytest.approx((-15, 15))


def test_a_field_against_many_series_stays_a_heat_map():
    assert result(8).plot().axes[0].get_xlabel() == "cause (target)"


def test_the_lag_of_a_map_is_said():
    found = XmapResult(np.eye(2), np.array([2, 2]), ("a", "b"), provenance={"arguments": {"Tp": -1}})
    assert "Tp = -1" in repr(found).splitlines()[0]
    assert any("Tp = -1" in ax.get_ylabel() for ax in [*found.plot().axes, *found.plot().axes[0].child_axes])
