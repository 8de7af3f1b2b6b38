"""Recordings one below the other: the same bits as with gaps between them, and nothing of one in another."""

from __future__ import annotations

import numpy as np
import pandas
import pytest
from series_helpers import driven
from typer.testing import CliRunner

import pyedmcl
from pyedmcl.cli.app import app
from pyedmcl.convergence.ccm import drawn_groups
from pyedmcl.engines.ccm import CcmPair
from pyedmcl.errors import InputError

SIZES = (70, 45, 60)
X, Y = (column[: sum(SIZES)] for column in driven(200))
TABLE = np.column_stack([X, Y, X * Y])
LABELS = np.repeat(["b", "a", "c"], SIZES)


def apart(values, gap=2):
    """With rows of NaN between groups."""
    parts = np.split(np.asarray(values, float), np.cumsum(SIZES)[:-1])
    nothing = np.full((gap, *np.shape(values)[1:]), np.nan)
    return np.concatenate([parts[0], nothing, parts[1], nothing, parts[2]])


def same(found, expected):
    np.testing.assert_array_equal(np.asarray(found), np.asarray(expected))


def test_every_function_has_the_bits_of_gaps_between_groups(device):
    own, other = {"E": 2, "tau": 2, "groups": LABELS, "device": device}, {"E": 2, "tau": 2, "device": device}
    x, y, table = apart(X), apart(Y), apart(TABLE)
    same(pyedmcl.xmap(TABLE, **own).rho, pyedmcl.xmap(table, **other).rho)
    same(pyedmcl.ccm_matrix(TABLE, lib_sizes=[20], sample=3, seed=1, **own).at(20),
         pyedmcl.ccm_matrix(table, lib_sizes=[20], sample=3, seed=1, **other).at(20))  # fmt: skip
    sampled = {"lib_sizes": [10, 60], "sample": 4, "seed": 3}
    found, expected = pyedmcl.ccm(X, Y, **sampled, **own), pyedmcl.ccm(x, y, **sampled, **other)
    same(found.rho, expected.rho)
    assert found.n_rows == expected.n_rows
    for theta, call in ((None, pyedmcl.simplex), (1.5, pyedmcl.smap)):
        more = {} if theta is None else {"theta": theta}
        found, expected = call(X, target=Y, **more, **own), call(x, target=y, **more, **other)
        same([found.rho, found.mae, found.rmse], [expected.rho, expected.mae, expected.rmse])
        shown = np.isfinite(expected.predicted)
        same(found.predicted[np.isfinite(found.predicted)], expected.predicted[shown])
        assert len(found.time) == sum(size - 2 for size in SIZES)


def test_the_skill_of_each_dimension_and_what_is_varied(one_device):
    x, table = apart(X), apart(TABLE)
    found = pyedmcl.embed_dimension(TABLE, E_max=3, tau=2, groups=LABELS, device=one_device)
    same(found.rho, pyedmcl.embed_dimension(table, E_max=3, tau=2, device=one_device).rho)
    found = pyedmcl.embed_dimension(TABLE, target=Y, E_max=2, tau=2, groups=LABELS, device=one_device)
    same(found.rho, pyedmcl.embed_dimension(table, target=apart(Y), E_max=2, tau=2, device=one_device).rho)
    found = pyedmcl.predict_nonlinear(X, E=2, theta=[0, 1], groups=LABELS, device=one_device)
    same(found.rho, pyedmcl.predict_nonlinear(apart(X, 1), E=2, theta=[0, 1], device=one_device).rho)
    found = pyedmcl.predict_interval(X, E=2, Tp=[2], groups=LABELS, device=one_device)
    same(found.rho, pyedmcl.predict_interval(x, E=2, Tp=[2], device=one_device).rho)
    radius = pyedmcl.predict_exclusion_radius(X, E=2, exclusion_radius=[2], groups=LABELS, device=one_device)
    same(radius.rho, pyedmcl.predict_exclusion_radius(x, E=2, exclusion_radius=[2], device=one_device).rho)
    lagged = pyedmcl.ccm_lagged(X, Y, E=2, Tp=[-2, 0], groups=LABELS, device=one_device)
    same(lagged.rho, pyedmcl.ccm_lagged(x, apart(Y), E=2, Tp=[-2, 0], device=one_device).rho)


def test_choosing_an_embedding(one_device):
    table = apart(TABLE, 3)
    scan = {"E": [1, 2], "tau": [1, 3], "device": one_device}
    same(pyedmcl.embedding_scan(TABLE, groups=LABELS, **scan).rho, pyedmcl.embedding_scan(table, **scan).rho)
    own = {"E_max": 2, "tau": 3, "device": one_device}
    same(pyedmcl.false_neighbors(TABLE, groups=LABELS, **own).share, pyedmcl.false_neighbors(table, **own).share)
    states = pyedmcl.embed(TABLE, E=2, tau=3, groups=LABELS).values
    laid = pyedmcl.embed(table, E=2, tau=3).values
    same(states, np.concatenate([laid[:70], laid[73:118], laid[121:]]))


def test_surrogates_of_each_group():
    found = pyedmcl.surrogate(X, "shuffle", n=3, seed=2, groups=LABELS)
    for label in "bac":
        rows = label == LABELS
        same(np.sort(found[:, rows], axis=1), np.tile(np.sort(X[rows]), (3, 1)))
    same(found[:, :70], pyedmcl.surrogate(X[:70], "shuffle", n=3, seed=2))
    frame = pandas.DataFrame({"x": X, "site": LABELS})
    same(pyedmcl.surrogate(frame, "phase", n=2, seed=1, groups="site"),
         pyedmcl.surrogate(X, "phase", n=2, seed=1, groups=LABELS))  # fmt: skip
    with pytest.raises(InputError, match="x, group True: series 'x0' has 3 values"):
        pyedmcl.surrogate(X, groups=np.arange(175) >= 172)
    with pytest.raises(InputError, match="groups has 9 labels and x 175 rows"):
        pyedmcl.surrogate(X, groups=LABELS[:9])


def test_ranges_and_masks_are_those_of_the_rows_as_given(one_device):
    lib, pred, valid = (10, 100), [(60, 80), (130, 170)], np.arange(175) % 5 > 0
    own = pyedmcl.simplex(X, E=2, lib_range=lib, pred_range=pred, valid_lib=valid, groups=LABELS, device=one_device)
    apart_valid = np.nan_to_num(apart(valid, 1)) > 0
    expected = pyedmcl.simplex(
        apart(X, 1), E=2, lib_range=[(10, 70), (71, 101)], pred_range=[(60, 70), (71, 81), (132, 172)],
        valid_lib=apart_valid, device=one_device,
    )  # fmt: skip
    assert own.rho == expected.rho
    np.testing.assert_array_equal(own.group, ["b"] * 10 + ["a"] * 9 + ["c"] * 40)
    np.testing.assert_array_equal(own.time, [*range(61, 71), *range(2, 11), *range(16, 56)])


def test_groups_may_be_interleaved_and_a_long_radius_stays_within_one(one_device):
    order = np.argsort(np.concatenate([np.arange(size) for size in SIZES]), kind="stable")
    mixed = pyedmcl.simplex(X[order], E=2, exclusion_radius=50, groups=LABELS[order], device=one_device)
    # Group a has fewer rows than the radius: all its neighbours are of other groups.
    expected = pyedmcl.simplex(apart(X, 50), E=2, exclusion_radius=50, device=one_device)
    assert mixed.rho == expected.rho
    assert mixed.to_frame().groupby("group").size().to_dict() == {"b": 69, "a": 44, "c": 59}


def test_another_series_in_the_same_groups(one_device):
    frame = pandas.DataFrame({"x": X, "site": LABELS})
    found = pyedmcl.simplex(frame, frame.iloc[20:90], E=2, groups="site", device=one_device)
    assert found.group.tolist() == ["b"] * 49 + ["a"] * 19
    alone = pyedmcl.simplex(apart(X, 1), X[20:70], E=2, device=one_device)
    np.testing.assert_array_equal(found.predicted[:49], alone.predicted)


def test_sub_libraries_of_whole_groups(one_device):
    code, legal = np.repeat([0, 1, 2, -1], [30, 20, 25, 5]), np.ones(80, bool)
    legal[75:] = False
    legal[[3, 40]] = False
    drawn = drawn_groups(code, legal, CcmPair(0, 1, (0, 1)), 40, 50, 1)
    assert (drawn.sum(axis=1) == 40).all() and not drawn[:, ~legal].any()
    shares = np.stack([drawn[:, (code == group) & legal].mean(axis=1) for group in range(3)], axis=1)
    assert ((shares > 0) & (shares < 1)).sum(axis=1).max() == 1  # only the last group is drawn in part
    part = drawn[0][(code == np.argmax((shares[0] > 0) & (shares[0] < 1))) & legal]
    assert np.abs(np.diff(part.astype(int))).sum() <= 2  # of rows that follow each other
    np.testing.assert_array_equal(drawn[:7], drawn_groups(code, legal, CcmPair(3, 9, (0, 1)), 40, 7, 1))
    whole = {"E": 2, "lib_sizes": [60, 172], "sample": 6, "seed": 2, "groups": LABELS, "device": one_device}
    by_group, by_row = (pyedmcl.ccm(X, Y, draw=draw, **whole).rho for draw in ("groups", "rows"))
    same(by_group[:, 1], by_row[:, 1])  # all rows are all rows
    assert (by_group[:, 0] != by_row[:, 0]).any()
    fits = pyedmcl.ccm(X, Y, method="smap", draw="groups", **whole).rho
    assert np.isfinite(fits).all() and len(np.unique(fits[1, 0])) > 1


def test_short_groups_are_named_and_take_no_part(one_device):
    labels = LABELS.copy()
    labels[-3:] = "s"
    with pytest.warns(RuntimeWarning, match=r"needs 4 rows of a group, and there are fewer in 's \(3 rows\)'"):
        found = pyedmcl.simplex(X, E=3, groups=labels, device=one_device)
    rest = pyedmcl.simplex(X[:-3], E=3, groups=labels[:-3], device=one_device)
    np.testing.assert_allclose(found.predicted[:-1], rest.predicted, rtol=1e-5)
    with pytest.raises(InputError, match="draw='groups': groups= is needed"):
        pyedmcl.ccm(X, Y, E=2, draw="groups")
    with pytest.raises(InputError, match="continue one group at a time"):
        pyedmcl.simplex(X, E=2, generate_steps=2, groups=LABELS)


def test_neighbours_are_rows_of_the_data(one_device):
    """Those of data with gaps between groups, by their rows in the table; the rows of groups may be mixed."""
    own = {"E": 2, "tau": 2, "k": 3, "Tp": 1, "device": one_device}
    mixed = np.random.default_rng(0).permutation(len(X))
    labels = np.array(LABELS)[mixed]
    order = np.concatenate([np.flatnonzero(labels == name) for name in dict.fromkeys(labels)])
    apart, places = [], []
    for name in dict.fromkeys(labels):
        places += (np.arange((labels == name).sum()) + len(apart)).tolist()
        apart += [*X[mixed][labels == name], np.nan, np.nan]
    plain = pyedmcl.knn(np.array(apart), **own)
    found = pyedmcl.knn(X[mixed], groups=labels, **own)
    row_of = np.full(len(apart), -1)
    row_of[places] = order
    expected = plain.indices[places]
    np.testing.assert_array_equal(found.indices[order], np.where(expected < 0, -1, row_of[expected]))
    np.testing.assert_array_equal(found.distances[order], plain.distances[places])
    with pytest.raises(InputError, match="groups= with query="):
        pyedmcl.knn(X, E=2, groups=LABELS, query=Y)


def test_views_of_groups(one_device):
    table = np.column_stack([X, Y, X * Y])
    own = {"D": 2, "E": 2, "Tp": 1, "device": one_device, "n_views": 3}
    found = pyedmcl.multiview(table, 0, groups=LABELS, **own)
    apart, shown = [], []
    for name in dict.fromkeys(LABELS):
        rows = table[np.array(LABELS) == name]
        shown += (len(apart) + np.arange(1, len(rows))).tolist()
        apart += [*rows, np.full(3, np.nan)]
    plain = pyedmcl.multiview(np.array(apart), 0, **own)
    assert found.views == plain.views and found.rho == plain.rho
    kept = np.isin(plain.time - 1, shown)
    for name in ("predicted", "observed", "variance"):
        np.testing.assert_array_equal(getattr(found, name), getattr(plain, name)[kept])
    assert found.group[0] == LABELS[0] and found.time[0] == 2
    part = pyedmcl.multiview(table, 0, groups=LABELS, pred_range=(0, 20), lib_range=(20, len(X)), **own)
    assert set(part.group) == set(LABELS[:20])


@pytest.mark.parametrize("method", ["shuffle", "auto"])
def test_surrogates_of_groups_as_targets(method, one_device):
    """Each pair is tested against surrogates that every group has of its own rows."""
    # In noise nothing is found; what several series share is found in all of them together, and not in one alone.
    x, y = (X, Y) if method == "shuffle" else np.random.default_rng(1).standard_normal((2, len(X)))
    table = np.column_stack([x, y])
    own = {"E": 2, "device": one_device, "groups": LABELS}
    made = pyedmcl.surrogate(x, method, n=19, seed=5, groups=LABELS)
    skill = pyedmcl.xmap(table, targets=made.T, **own).rho
    found = pyedmcl.xmap_significance(table, n=19, seed=5, surrogate=method, **own)
    assert found.p_value[1, 0] == (1 + (skill[1] >= found.rho[1, 0]).sum()) / 20
    np.testing.assert_array_equal(found.rho[1, 0], pyedmcl.xmap(table, **own).rho[1, 0])
    assert bool(found.reasons) == (method == "auto")
    pair = pyedmcl.ccm_significance(y, x, n=19, seed=5, surrogate=method, **own)
    np.testing.assert_allclose(pair.surrogates[0], skill[1], atol=2e-5)


def test_commands_take_the_names_of_columns(tmp_path, one_device):
    table = tmp_path / "t.csv"
    rows = [f"{label},{x!r},{y!r}" for label, x, y in zip(LABELS, X.tolist(), Y.tolist(), strict=True)]
    table.write_text("site,x,y\n" + "\n".join(rows) + "\n")
    out = tmp_path / "p.csv"
    line = ["simplex", str(table), "--E", "2", "--groups", "site", "--device", one_device, "-o", str(out)]
    assert CliRunner().invoke(app, [*line, "--column", "x"]).exit_code == 0
    written = pandas.read_csv(out)
    expected = pyedmcl.simplex(X, E=2, groups=LABELS, device=one_device)
    assert written["group"].tolist() == expected.group.tolist() and written["time"].tolist() == expected.time.tolist()
    np.testing.assert_allclose(written["predicted"], expected.predicted)
    refused = CliRunner().invoke(app, line)
    assert refused.exit_code == 2 and "--groups needs --column" in " ".join(refused.stderr.split())
    line = ["surrogate-test", str(table), "--E=2", "--groups", "site", "--columns", "x,y", "--n", "19", "--seed", "5"]
    assert CliRunner().invoke(app, [*line, "--device", one_device, "-o", str(out)]).exit_code == 0
    expected = pyedmcl.xmap_significance({"x": X, "y": Y}, E=2, n=19, seed=5, groups=LABELS, device=one_device)
    held = pandas.read_csv(out).set_index(["cause", "effect"])["p_value"]
    assert held["x", "y"] == expected.p_value[1, 0] and held["y", "x"] == expected.p_value[0, 1]
    line = ["xmap-grid", str(table), "--E", "1:2", "--groups", "site", "--columns", "x,y", "--device", one_device]
    done = CliRunner().invoke(app, [*line, "-o", str(tmp_path / "grid"), "--folds", "2"])
    assert done.exit_code == 0
    expected = pyedmcl.xmap_grid(
        {"x": X, "y": Y}, E=[1, 2], groups=LABELS, folds=2, device=one_device
    )  # fmt: skip
    np.testing.assert_array_equal(pyedmcl.open_xmap_grid(tmp_path / "grid").rho, expected.rho)
