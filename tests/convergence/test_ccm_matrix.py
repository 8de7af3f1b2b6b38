"""Convergent cross mapping of all pairs: the same numbers as pair by pair, and a store that survives."""

from __future__ import annotations

import naive
import numpy as np
import pytest
from series_helpers import driven

import pyedmcl
from pyedmcl.convergence import matrix_problem
from pyedmcl.errors import InputError, Interrupted, StoreForeignError, StoreMismatchError
from pyedmcl.reference import edm as oracle
from pyedmcl.states import arguments
from pyedmcl.statistics import kendall


def data(n=130, gaps=False):
    x = naive.noisy_maps(4, n, 3)
    if gaps:
        x[20, 0] = x[60:63, 2] = np.nan
    return x


OPTIONS = {"E": [2, 3, 2, 1], "lib_sizes": [90, 15], "sample": 3, "seed": 8}


@pytest.mark.parametrize("gaps", [False, True])
def test_each_pair_is_the_oracles(device, gaps):
    x = data(gaps=gaps)
    result = pyedmcl.ccm_matrix(x, Tp=1, exclusion_radius=1, device=device, **OPTIONS)
    assert result.rho.shape == (2, 4, 4) and np.isnan(result.rho[:, range(4), range(4)]).all()
    for i, j in ((0, 1), (2, 0), (3, 2)):
        for place, size in enumerate((90, 15)):
            expected = np.mean([
                oracle.ccm_skill(x[:, i], x[:, j], size, E=OPTIONS["E"][i], Tp=1, exclusion_radius=1, seed=8,
                                 library=i, target=j, sample=sample) for sample in range(3)
            ])  # fmt: skip
            assert result.rho[place, i, j] == pytest.approx(expected, abs=2e-5)
    assert result.at(15) is result.matrices[1]
    np.testing.assert_allclose(result.gain, result.rho[0] - result.rho[1])
    with pytest.raises(InputError, match="size=16"):
        result.at(16)


def test_the_first_pair_is_ccm(one_device):
    x = data()[:, :2]
    both = pyedmcl.ccm(x[:, 0], x[:, 1], E=2, lib_sizes=[15, 60], sample=5, seed=1, device=one_device)
    matrix = pyedmcl.ccm_matrix(x, E=2, lib_sizes=[15, 60], sample=5, seed=1, device=one_device)
    np.testing.assert_allclose(matrix.rho[:, 0, 1], both.mean[0], atol=1e-7)
    np.testing.assert_allclose(matrix.rho[:, 1, 0], both.mean[1], atol=1e-7)


def test_ranks(one_device, tmp_path):
    """As ccm measures its sub-libraries, in windows too, and of the rows that are predicted."""
    x = data(gaps=True)[:, :2]
    call = {"E": 2, "Tp": 1, "lib_sizes": [15, 40], "sample": 3, "seed": 1, "skill": "spearman", "device": one_device}
    both = pyedmcl.ccm(x[:, 0], x[:, 1], **call)
    matrix = pyedmcl.ccm_matrix(x, out=tmp_path / "m", **call)
    np.testing.assert_allclose(matrix.rho[:, 0, 1], both.mean[0], atol=1e-6)
    np.testing.assert_allclose(matrix.rho[:, 1, 0], both.mean[1], atol=1e-6)
    assert matrix.skill == pyedmcl.open_ccm_matrix(tmp_path / "m").skill == "spearman"
    made = pyedmcl.ccm(x[:, 0], x[:, 1], predictions=True, **call).predictions[0]
    chosen = slice(61, 121)
    ranked = arguments.measure("spearman", made[..., chosen].reshape(6, -1), x[chosen, 1])
    found = pyedmcl.ccm_matrix(x, pred_range=(60, 120), **call)
    np.testing.assert_allclose(found.rho[:, 0, 1], ranked.reshape(2, 3).mean(axis=1), atol=1e-6)
    moving = pyedmcl.ccm_matrix(x, windows=(100, 30), **call)
    np.testing.assert_array_equal(moving.rho[1], pyedmcl.ccm_matrix(x[30:], **call).rho.astype(np.float32))
    with pytest.raises(InputError, match="skill='mae': convergence is of correlations"):
        pyedmcl.ccm_matrix(x, **call | {"skill": "mae"})
    with pytest.raises(InputError, match="skill='spearman': method='smap'"):
        pyedmcl.ccm_matrix(x, method="smap", **call)


def test_rows_that_are_predicted(one_device):
    """Skill over the chosen rows of what the sub-libraries of ccm predict."""
    x = data(gaps=True)[:, :2]
    call = {"E": 2, "Tp": 1, "lib_sizes": [15, 40], "sample": 3, "seed": 1, "device": one_device, "lib_range": (0, 80)}
    made = pyedmcl.ccm(x[:, 0], x[:, 1], predictions=True, **call).predictions[0]
    matrix = pyedmcl.ccm_matrix(x, pred_range=(60, 120), **call)
    chosen = slice(61, 121)  # where rows 60 to 119 lead to
    each = arguments.pearson(made[..., chosen].reshape(6, -1), np.tile(x[chosen, 1], (6, 1)))
    np.testing.assert_allclose(matrix.rho[:, 0, 1], each.reshape(2, 3).mean(axis=1), atol=2e-6)
    own = {"groups": np.arange(130) // 65, "E": 2, "lib_sizes": 20, "sample": 2, "seed": 4, "device": one_device}
    for more in ({}, {"method": "smap", "theta": 2.0}):
        folds = pyedmcl.ccm_matrix(x, folds=2, **own, **more)
        each = [pyedmcl.ccm_matrix(x, lib_range=a, pred_range=b, **own, **more).rho
                for a, b in (((65, 130), (0, 65)), ((0, 65), (65, 130)))]  # fmt: skip
        np.testing.assert_allclose(folds.rho, np.mean(each, axis=0), atol=1e-7)
    with pytest.raises(InputError, match=r"one range of rows without holes.*or call once for each"):
        pyedmcl.ccm_matrix(x, E=2, pred_range=[(0, 20), (40, 60)])
    with pytest.raises(InputError, match="sort the rows by group"):
        pyedmcl.ccm_matrix(x, E=2, folds=3, groups=np.arange(130) % 2)
    with pytest.raises(InputError, match="lib_sizes: 100"):
        pyedmcl.ccm_matrix(x, E=2, folds=2, lib_sizes=100)


@pytest.mark.parametrize("lib", [(20, 90), [(0, 50), (50, 110)], np.arange(130) % 3 > 0])
def test_libraries_are_drawn_from_the_rows_that_were_chosen(one_device, lib):
    x = data()[:, :2]
    call = {"E": 2, "lib_sizes": [15, 40], "sample": 5, "seed": 1, "device": one_device}
    both = pyedmcl.ccm(x[:, 0], x[:, 1], lib_range=lib, **call)
    matrix = pyedmcl.ccm_matrix(x, lib_range=lib, **call)
    np.testing.assert_allclose(matrix.rho[:, 0, 1], both.mean[0], atol=1e-7)
    np.testing.assert_allclose(matrix.rho[:, 1, 0], both.mean[1], atol=1e-7)


@pytest.mark.parametrize(("options", "what"), [
    ({"lib_range": (5, 6)}, "lib_range=.* holds no library row"),
    ({"lib_range": (0, 50), "lib_sizes": 60}, "lib_sizes: 60"),
    ({"lib_range": (0, 50), "groups": np.arange(130) // 65, "lib_sizes": 60}, "lib_sizes: 60"),
])  # fmt: skip
def test_bad_rows(options, what):
    with pytest.raises(InputError, match=what):
        pyedmcl.ccm_matrix(data(), E=2, **options)


def test_batches_change_nothing(one_device, monkeypatch):
    whole = pyedmcl.ccm_matrix(data(), device=one_device, **OPTIONS).rho
    monkeypatch.setattr(matrix_problem, "_PAIRS", 1)
    monkeypatch.setattr(matrix_problem, "_BLOCK_PAIRS", 1)
    np.testing.assert_array_equal(pyedmcl.ccm_matrix(data(), device=one_device, **OPTIONS).rho, whole)


def test_dimensions_and_sizes_by_themselves(one_device):
    x, y = driven(160)
    told = []
    result = pyedmcl.ccm_matrix({"x": x, "y": y}, sample=8, E_max=4, seed=1, device=one_device,
                                progress=lambda *a: told.append(a))  # fmt: skip
    np.testing.assert_array_equal(result.E, pyedmcl.embed_dimension(np.column_stack([x, y]), E_max=4,
                                                                    device=one_device).E)  # fmt: skip
    assert len(result.lib_sizes) == 8 and result.lib_sizes[-1] == 157 and told[-1] == (2, 2, "series")
    for i, j in ((0, 1), (1, 0)):
        assert result.trend[i, j] == kendall(result.rho[:, i, j, None])
    assert result.converging()[1, 0] and np.isnan(result.trend[0, 0])
    pytest.importorskip("pandas", reason="pandas is not installed")
    frame = result.to_frame()
    roles = ["cause", "effect", "library", "target"]
    assert list(frame.columns) == [*roles, "rho", "gain", "trend", "E", "E_of"]
    assert frame.cause.equals(frame.target.rename("cause")) and set(frame.E_of) == {"effect"}
    assert frame["library"][0] == "y" and frame["trend"][0] == result.trend[1, 0]


class Stop:
    """Ctrl-C after some blocks."""

    def __init__(self, after):
        self.left = after

    def __call__(self, done, total, unit):
        if unit == "series" and done:
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt


def test_an_interrupted_run_continues(one_device, tmp_path, monkeypatch):
    monkeypatch.setattr(matrix_problem, "_BLOCK_PAIRS", 4)  # a library a block
    options = {**OPTIONS, "device": one_device}
    expected = pyedmcl.ccm_matrix(data(), **options)
    out = tmp_path / "result"
    with pytest.raises(Interrupted, match="4 of 8 blocks"):
        pyedmcl.ccm_matrix(data(), out=out, progress=Stop(2), **options)
    partial = pyedmcl.open_ccm_matrix(out)
    assert np.isfinite(partial.at(90)[1, 0]) and np.isnan(np.asarray(partial.at(90)[2])).all()
    calls = []
    engine = matrix_problem.CcmMatrixEngine
    compute = engine.block
    monkeypatch.setattr(engine, "block", lambda self, block, *a: calls.append(block.begin) or compute(self, block, *a))
    result = pyedmcl.ccm_matrix(data(), out=out, **options)
    assert calls == [2, 3]
    np.testing.assert_array_equal(result.rho, expected.rho)
    # The seed is the stored one where none is given; other sizes are added, those that are there are kept.
    calls.clear()
    more = pyedmcl.ccm_matrix(data(), out=out, **{**options, "lib_sizes": [15, 40], "seed": None})
    assert more.seed == 8 and calls == [0, 1, 2, 3]
    np.testing.assert_array_equal(more.at(15), expected.at(15))
    again = pyedmcl.open_ccm_matrix(out)
    assert again.lib_sizes.tolist() == [15, 40, 90] and again.seed == 8 and again.E.tolist() == OPTIONS["E"]
    np.testing.assert_array_equal(again.at(40), more.at(40))


def test_what_does_not_fit_is_refused(one_device, tmp_path):
    options = {**OPTIONS, "device": one_device}
    out = tmp_path / "result"
    pyedmcl.ccm_matrix(data(), out=out, **options)
    with pytest.raises(StoreMismatchError, match="seed"):
        pyedmcl.ccm_matrix(data(), out=out, **{**options, "seed": 9})
    with pytest.raises(StoreMismatchError, match="input data"):
        pyedmcl.ccm_matrix(data() + 1, out=out, **options)
    afresh = pyedmcl.ccm_matrix(data() + 1, out=out, resume=False, **options)
    assert np.isfinite(afresh.gain[0, 1])
    with pytest.raises(StoreMismatchError, match="library size 90"):
        pyedmcl.ccm_matrix(data(), out=out, resume=False, **{**options, "lib_sizes": [15]})
    pyedmcl.ccm_matrix(data(), out=tmp_path / "b", **{**options, "lib_sizes": [15]})
    (tmp_path / "b" / "library_0000015").rename(out / "library_0000016")
    with pytest.raises(StoreMismatchError, match="library size 16"):
        pyedmcl.open_ccm_matrix(out)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.doc").write_text("mine")
    with pytest.raises(StoreForeignError, match=r"thesis\.doc"):
        pyedmcl.ccm_matrix(data(), out=tmp_path / "other", **options)
    with pytest.raises(StoreForeignError, match="not a folder"):
        pyedmcl.ccm_matrix(data(), out=tmp_path / "other" / "thesis.doc", **options)
    for place in ("nowhere", "other", "other/thesis.doc"):
        with pytest.raises(StoreForeignError, match="is no result of pyedmcl ccm-matrix"):
            pyedmcl.open_ccm_matrix(tmp_path / place)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"lib_sizes": [4]}, "lib_sizes: 4; from 5"),
        ({"lib_sizes": [131]}, "lib_sizes: 131; from 5 .* to 128"),
        ({"lib_sizes": []}, "lib_sizes"),
        ({"lib_sizes": [20, 20]}, "none twice"),
        ({"sample": 0}, "sample=0"),
        ({"seed": -1}, "seed=-1"),
        ({"E": [1, 2]}, "E has 2 values"),
        ({"knn": 200}, "too few"),
    ],
)
def test_bad_input_is_named(options, words):
    with pytest.raises(InputError, match=words):
        pyedmcl.ccm_matrix(data(), **{"E": 3, "lib_sizes": [20], "sample": 2, **options})


def test_maps_under_its_names_are_not_its_own(one_device, tmp_path):
    pyedmcl.xmap(naive.noisy_maps(3, 60, 1), E=2, out=tmp_path / "out" / "library_0000020", device=one_device)
    with pytest.raises(StoreForeignError, match="ccm-matrix did not write"):
        pyedmcl.open_ccm_matrix(tmp_path / "out")
    with pytest.raises(StoreMismatchError, match="computed from other data"):
        pyedmcl.ccm_matrix(naive.noisy_maps(3, 60, 1), E=2, lib_sizes=[30], out=tmp_path / "out", device=one_device)


def test_one_series_has_no_pairs():
    with pytest.raises(InputError, match="one series"):
        pyedmcl.ccm_matrix(data()[:, 0], E=2)


