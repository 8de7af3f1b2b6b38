"""Maps whose library and predicted rows are chosen, and cross-validated ones, against simplex and NumPy."""

from __future__ import annotations

import naive
import numpy as np
import pytest

import pyedmcl
from pyedmcl.errors import InputError, StoreMismatchError

N, LENGTH = 5, 150
DATA = naive.noisy_maps(N, LENGTH, 11)
GAPS = DATA.copy()
GAPS[60:63, 1] = np.nan
GAPS[130, 3] = np.nan
EVEN = np.arange(LENGTH) % 2 == 0
PLOTS = np.arange(LENGTH) // 50


def pairwise(data, E, **options):
    """rho of each pair by its own call."""
    n = data.shape[1]
    E = np.broadcast_to(E, n)
    return np.array([
        [pyedmcl.simplex(data[:, i], target=data[:, j], E=int(E[j]), **options).rho for j in range(n)] for i in range(n)
    ])  # fmt: skip


@pytest.mark.parametrize("data", [DATA, GAPS], ids=["whole", "gaps"])
@pytest.mark.parametrize(("lib_range", "pred_range"), [
    ((0, 100), (100, LENGTH)), ([(10, 40), (40, 70), (100, 140)], (20, 120)), (EVEN, (3, 150)), (None, (0, 40)),
    ((50, 150), None), ((0, 100), [(10, 30), (60, 61), (90, 140)]), (None, EVEN),
])  # fmt: skip
def test_each_cell_is_that_of_simplex(data, lib_range, pred_range, one_device):
    result = pyedmcl.xmap(data, E=2, lib_range=lib_range, pred_range=pred_range, device=one_device)
    expected = pairwise(data, 2, Tp=0, lib_range=lib_range, pred_range=pred_range, device=one_device)
    np.testing.assert_allclose(result.rho, expected, atol=2e-5)


@pytest.mark.parametrize(("few", "enough", "said"), [
    ({"folds": 75}, {"folds": 30}, "folds=75"), ({"pred_range": (20, 22)}, {"pred_range": (20, 23)}, "pred_range"),
])  # fmt: skip
def test_too_few_rows_for_a_correlation_are_told(few, enough, said, one_device, recwarn):
    options = {"E": 1, "device": one_device}
    assert np.isfinite(pyedmcl.xmap(DATA, **enough, **options).rho).all()
    assert np.isfinite(pyedmcl.xmap(DATA, **few, skill="rmse", **options).rho).all() and not recwarn.list
    with pytest.warns(RuntimeWarning, match=f"^{said} leaves fewer than 3 rows to predict with E=1, tau=1"):
        assert np.isnan(pyedmcl.xmap(DATA, **few, **options).rho).all()


@pytest.mark.parametrize("Tp", [0, 2, -1])
def test_dimensions_horizons_and_devices(device, Tp):
    rows = {"lib_range": [(0, 50), (70, 120)], "pred_range": (40, 140)}
    mixed = [3, 1, 2, 3, 1]
    result = pyedmcl.xmap(DATA, E=mixed, Tp=Tp, exclusion_radius=2, **rows, device=device)
    expected = pairwise(DATA, mixed, Tp=Tp, exclusion_radius=2, lib_range=rows["lib_range"],
                        pred_range=rows["pred_range"], device=device)  # fmt: skip
    np.testing.assert_allclose(result.rho, expected, atol=2e-5)


def test_holes_have_the_bits_of_ranges_that_touch(device):
    own = {"E": [1, 3, 2, 3, 1], "Tp": 1, "lib_range": (0, 90), "device": device}
    whole = pyedmcl.xmap(GAPS, pred_range=(20, 120), **own)
    parted = pyedmcl.xmap(GAPS, pred_range=[(70, 120), (20, 70)], **own)
    np.testing.assert_array_equal(parted.rho, whole.rho)
    holes = pyedmcl.xmap(GAPS, pred_range=[(20, 40), (100, 120)], dtype="float64", **own)
    predictions = pyedmcl.xmap(GAPS, pred_range=[(20, 40), (100, 120)], predictions=True, dtype="float64", **own)
    np.testing.assert_allclose(holes.rho, predictions.rho, atol=1e-12)
    assert set(np.flatnonzero(np.isfinite(predictions.predictions[0, 0]))) == {*range(21, 41), *range(101, 121)}


@pytest.mark.parametrize("rows", [
    {"lib_range": (0, 100)}, {"lib_range": [(0, 50), (60, 140)], "pred_range": (40, 130)},
    {"pred_range": [(10, 30), (70, 90), (95, 150)]},
])  # fmt: skip
def test_rows_of_groups(rows, one_device):
    own = {"Tp": 1, "exclusion_radius": 3, "groups": PLOTS, "device": one_device} | rows
    found = pyedmcl.xmap(GAPS, E=3, **own)
    np.testing.assert_allclose(found.rho, pairwise(GAPS, 3, **own), atol=2e-5)


@pytest.mark.parametrize("labels", [PLOTS, np.arange(LENGTH) % 3], ids=["stacked", "interleaved"])
def test_folds_of_groups(labels, one_device):
    """Stacked, each fold leaves one group out; interleaved, a stretch of all of them."""
    own = {"E": 2, "tau": 2, "Tp": 1, "groups": labels, "device": one_device}
    result = pyedmcl.xmap(DATA, folds=3, **own)
    for fold in range(3):
        rows = np.arange(fold * 50, fold * 50 + 50)
        library = np.zeros(LENGTH, bool)
        for label in range(3):
            own_rows = np.flatnonzero(labels == label)
            step = np.arange(len(own_rows))
            inside = np.flatnonzero(np.isin(own_rows, rows))
            far = np.ones(len(step), bool)
            if len(inside):  # states of 3 rows, and a target one ahead: three rows are kept free on both sides
                far = (step < inside[0] - 3 - 1) | (step >= inside[-1] + 1 + 3 + 2)
            library[own_rows[far]] = True
        expected = pyedmcl.xmap(DATA, lib_range=library, pred_range=(fold * 50, fold * 50 + 50), **own)
        np.testing.assert_array_equal(result.folds[fold], expected.rho)


def test_other_measures_of_folds_and_ranges(one_device, tmp_path):
    own = {"E": 2, "Tp": 1, "device": one_device}
    found = pyedmcl.xmap(GAPS, folds=3, skill="mae", predictions=True, **own)
    assert found.folds.shape == (3, N, N) and found.predictions.shape == (N, N, LENGTH)
    for fold in range(3):
        begin, end = fold * 50, fold * 50 + 50
        library = [pair for pair in ((0, begin - 2), (end + 2, LENGTH)) if pair[0] < pair[1]]
        alone = pyedmcl.xmap(GAPS, lib_range=library, pred_range=(begin, end), skill="mae", predictions=True, **own)
        np.testing.assert_array_equal(found.folds[fold], alone.rho)
        led_to = slice(begin + 1, end + 1)
        np.testing.assert_array_equal(found.predictions[..., led_to], alone.predictions[..., led_to])
        one = pyedmcl.simplex(GAPS[:, 2], target=GAPS[:, 1], lib_range=library, pred_range=(begin, end), **own)
        assert alone.rho[2, 1] == pytest.approx(one.mae, abs=1e-5)
    np.testing.assert_allclose(found.rho, found.folds.mean(axis=0), atol=1e-6)
    pyedmcl.xmap(GAPS, folds=3, skill="mae", out=tmp_path / "m", **own)
    np.testing.assert_array_equal(pyedmcl.open_xmap(tmp_path / "m").rho[:], found.rho)


def fitted(data, E, theta, lib_range, pred_range, **options):
    """rho of each pair by its own local linear fits."""
    n = data.shape[1]
    return np.array([
        [pyedmcl.smap(data[:, i], target=data[:, j], E=E, theta=theta, lib_range=lib_range, pred_range=pred_range,
                      **options).rho for j in range(n)] for i in range(n)
    ])  # fmt: skip


@pytest.mark.parametrize("data", [DATA, GAPS], ids=["whole", "gaps"])
@pytest.mark.parametrize(("lib_range", "pred_range"), [
    ((0, 100), (100, LENGTH)), ([(10, 60), (60, 140)], [(5, 30), (70, 150)]), (EVEN, None), (None, EVEN),
])  # fmt: skip
def test_local_linear_fits(data, lib_range, pred_range, one_device):
    own = {"Tp": 1, "exclusion_radius": 1, "device": one_device, "lib_range": lib_range, "pred_range": pred_range}
    found = pyedmcl.xmap(data, E=2, method="smap", theta=[0.0, 2.0], **own)
    for place, theta in enumerate((0.0, 2.0)):
        np.testing.assert_allclose(found.rho[place], fitted(data, 2, theta, **own), atol=2e-5)


def test_folds_of_local_linear_fits(one_device, tmp_path):
    own = {"method": "smap", "theta": 1.5, "Tp": 1, "groups": PLOTS, "device": one_device}
    found = pyedmcl.xmap(GAPS, E=2, folds=3, **own)
    for fold in range(3):
        library = [(begin, begin + 50) for begin in (0, 50, 100) if begin != 50 * fold]
        alone = pyedmcl.xmap(GAPS, E=2, lib_range=library, pred_range=(50 * fold, 50 * fold + 50), **own)
        np.testing.assert_array_equal(found.folds[fold], alone.rho)
    grid = pyedmcl.xmap_grid(
        GAPS, E=[2], theta=[0.5, 1.5], Tp=1, folds=3, groups=PLOTS, out=tmp_path / "g", device=one_device
    )
    np.testing.assert_array_equal(grid.sel(E=2, theta=1.5).rho, found.folds)


@pytest.mark.parametrize("E", [1, 3])
def test_folds_are_predicted_from_what_is_far_enough(one_device, E):
    k, width = 3, (E - 1) + 1
    result = pyedmcl.xmap(DATA, E=E, Tp=1, folds=k, device=one_device)
    assert result.folds.shape == (k, N, N)
    for fold in range(k):
        begin, end = fold * LENGTH // k, (fold + 1) * LENGTH // k
        lib_range = [pair for pair in ((0, begin - width), (end + width, LENGTH)) if pair[0] < pair[1]]
        own = pyedmcl.xmap(DATA, E=E, Tp=1, lib_range=lib_range, pred_range=(begin, end), device=one_device)
        np.testing.assert_array_equal(result.folds[fold], own.rho)
    np.testing.assert_array_equal(result.rho, result.folds.mean(axis=0, dtype=np.float64).astype(np.float32))


def test_stores_edges_and_targets(one_device, tmp_path):
    call = {"E": 2, "folds": 3, "device": one_device}
    whole = pyedmcl.xmap(DATA, **call)
    out = tmp_path / "map.zarr"
    stored = pyedmcl.xmap(DATA, out=out, **call)
    np.testing.assert_array_equal(np.asarray(stored.rho), whole.rho)
    assert stored.folds is None
    with pytest.raises(StoreMismatchError, match="folds"):
        pyedmcl.xmap(DATA, out=out, **{**call, "folds": 4})
    kept = pyedmcl.xmap(DATA, keep="rho>0.2", **call)
    np.testing.assert_array_equal(kept.rho, whole.rho[kept.library, kept.target])
    part = pyedmcl.xmap(DATA, columns=[0, 1], targets=[3], **call)
    np.testing.assert_array_equal(part.rho, whole.rho[:2, 3:4])
    out = tmp_path / "rows.zarr"
    rows = {"E": 2, "lib_range": EVEN, "pred_range": (20, 90), "device": one_device}
    stored = pyedmcl.xmap(DATA, out=out, **rows)
    np.testing.assert_array_equal(np.asarray(stored.rho), pyedmcl.xmap(DATA, **rows).rho)
    with pytest.raises(StoreMismatchError, match="lib_range"):
        pyedmcl.xmap(DATA, out=out, **{**rows, "lib_range": ~EVEN})


def test_E_is_found_before_folds(one_device):
    result = pyedmcl.xmap(DATA, E_max=3, folds=3, device=one_device)
    expected = pyedmcl.xmap(DATA, E=result.E.tolist(), folds=3, device=one_device)
    np.testing.assert_array_equal(result.folds, expected.folds)


def test_few_library_rows(one_device):
    """Fewer neighbours than E + 1, and rows that have none within the exclusion radius."""
    rows = {"lib_range": (60, 64), "pred_range": (50, 100)}
    result = pyedmcl.xmap(DATA, E=2, exclusion_radius=2, **rows, device=one_device)
    expected = pairwise(DATA, 2, Tp=0, exclusion_radius=2, lib_range=(60, 64), pred_range=(50, 100), device=one_device)
    np.testing.assert_allclose(result.rho, expected, atol=2e-5)


@pytest.mark.parametrize(("options", "what"), [
    ({"folds": 1}, "folds=1"), ({"folds": 3, "lib_range": (0, 10)}, "leave lib_range and pred_range out"),
    ({"folds": LENGTH}, "folds="),
    ({"folds": 2, "method": "smap", "theta": "best"}, "theta='best' with folds=2: it takes one map"),
    ({"lib_range": (5, 6)}, "lib_range=.* holds no library row for E=2"),
    ({"lib_range": (0, 151)}, "lib_range: the range"),
    ({"pred_range": (0, 1)}, "pred_range=.*none of its rows"),
    ({"lib_range": np.zeros(LENGTH, bool)}, "lib_range is a mask of 150 rows"),
    ({"lib_range": "x"}, "lib_range='x'"), ({"groups": PLOTS, "pred_range": (50, 51)}, "pred_range=.*none of its rows"),
    ({"groups": PLOTS, "pred_range": (0, 151)}, "pred_range: the range"),
])  # fmt: skip
def test_bad_rows(options, what, one_device):
    with pytest.raises(InputError, match=what):
        pyedmcl.xmap(DATA, **{"E": 2, "device": one_device} | options)
