"""kEDM's scripts on our adapter: each function beside the installed kEDM on random arguments, and its own tests."""

from __future__ import annotations

import inspect
import os
import re
import shlex
import subprocess
import sys
import tarfile
from pathlib import Path

import naive
import numpy as np
import pytest

import pyedmcl
from pyedmcl.errors import InputError

# Tests of kEDM that pin what the adapter does not copy (docs/kedm.md), with the reason; of 0.10.1 there is none.
PINNED: dict[str, str] = {}
NAMES = ("ccm", "ccm_naive", "edim", "eval_simplex", "eval_smap", "get_kokkos_config", "simplex", "smap", "xmap")


@pytest.fixture
def adapter(one_device, monkeypatch):
    from pyedmcl.compat import kedm as found

    monkeypatch.setenv("PYEDMCL_DEVICE", one_device)
    return found


def walk(n, rng):
    """A random walk: no two states are equal."""
    return np.cumsum(rng.standard_normal(n)).astype(np.float32)


def cases(count, seed):
    """Random lengths, embeddings and series that two functions are compared on."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        n, m = (int(rng.integers(60, 160)) for _ in range(2))
        # Of few kinds, since each embedding has kernels of its own to be compiled.
        given = {"E": int(rng.choice([1, 3])), "tau": int(rng.integers(1, 3)), "Tp": int(rng.integers(0, 4))}
        yield rng, given, walk(n, rng), walk(m, rng), walk(n, rng)


def skill(predicted, observed, E, tau, Tp):
    """rho of kEDM's own predictions, in float64: its eval_* sum in one pass of float32."""
    seen = observed[(E - 1) * tau + Tp :]
    n = min(len(seen), len(predicted))
    return np.corrcoef(predicted[:n].astype(float), seen[:n].astype(float))[0, 1]


def test_names_and_defaults_are_its_own(kedm, adapter):
    theirs = {name for name in dir(kedm) if not name.startswith("_") and name != "os"}
    assert theirs == set(adapter.__all__) == set(NAMES)
    assert (adapter.__version__, adapter.__version_info__) == (kedm.__version__, kedm.__version_info__)
    for name in NAMES:
        said = re.search(rf"{name}\((.*)\) ->", getattr(kedm, name).__doc__).group(1)
        text = re.sub(r"typing\.Annotated\[.*?\]|collections\.abc\.Sequence\[.*?\]|typing\.\w+", "", said)
        parts = [part for part in text.split(",") if part.strip()]
        wanted = {re.split("[:=]", part)[0].strip(): part.partition("=")[2].strip() for part in parts}
        ours = inspect.signature(getattr(adapter, name)).parameters
        assert [part for part in wanted if part != "*"] == list(ours)
        for parameter in ours.values():
            default, keywords = wanted[parameter.name], list(wanted)
            if not default:
                assert parameter.default is inspect.Parameter.empty
            else:
                assert str(parameter.default) in (default, {"[]": "()"}.get(default)), (name, parameter)
            keyword = "*" in wanted and keywords.index(parameter.name) > keywords.index("*")
            assert (parameter.kind is parameter.KEYWORD_ONLY) == keyword


def test_simplex(kedm, adapter):
    for rng, given, x, y, z in cases(6, 1):
        own, other = kedm.simplex(x, x, **given), adapter.simplex(x, x, **given)
        assert other.dtype == own.dtype == np.float32 and other.shape == own.shape
        np.testing.assert_allclose(other, own, rtol=0, atol=1e-5)
        for more, observed in (({}, y), ({"target": z}, z)):
            theirs = kedm.simplex(x, y, **more, **given)
            np.testing.assert_allclose(adapter.simplex(x, y, **more, **given), theirs, rtol=0, atol=1e-5)
            rho = adapter.eval_simplex(x, y, **more, **given)
            assert rho == pytest.approx(skill(theirs, observed, **given), abs=1e-5)
            assert rho == pytest.approx(kedm.eval_simplex(x, y, **more, **given), abs=2e-3)
        long = np.append(z, walk(int(rng.integers(1, 9)), rng))
        np.testing.assert_allclose(adapter.simplex(list(x), y.tolist(), target=long, **given),
                                   kedm.simplex(x, y, target=long, **given), rtol=0, atol=1e-5)  # fmt: skip


def test_simplex_of_several_columns(kedm, adapter):
    for _, given, x, y, z in cases(5, 2):
        n = min(len(x), len(y))
        lib, pred = np.stack([x, z], axis=1), np.stack([y[:n], z[:n]], axis=1)
        ours = adapter.simplex(lib, pred, target=z, **given)
        np.testing.assert_allclose(ours, kedm.simplex(lib, pred, target=z, **given), rtol=0, atol=1e-5)


def test_rows_that_lib_and_pred_share(kedm, adapter):
    """Pieces of one series: a row is not its own neighbour, which only distance zero tells."""
    for rng, given, x, _, _ in cases(5, 3):
        a, b = len(x) * 2 // 3, int(rng.integers(5, len(x) // 2))
        ours, theirs = (package.simplex(x[:a], x[b:], **given) for package in (adapter, kedm))
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)
        lib, pred = x[:a], x[b:]
        ours = adapter.smap(lib, pred, theta=2.5, **given)
        np.testing.assert_allclose(ours, kedm.smap(lib, pred, target=lib, theta=2.5, **given), rtol=0, atol=1e-4)


def test_quantised_pieces_drop_every_twin(adapter):
    """Many rows at distance zero: the nearest of the others, and the earlier one where they tie."""
    rng = np.random.default_rng(4)
    lib, pred = (np.round(2 * rng.standard_normal(n)).astype(np.float32) for n in (150, 60))
    for E, tau, Tp in ((1, 1, 1), (2, 3, 0)):
        first = (E - 1) * tau
        states, asked = (np.stack([x[first - e * tau : len(x) - e * tau] for e in range(E)], axis=1)
                         for x in (lib, pred))  # fmt: skip
        states = states[: len(states) - Tp]
        far = np.sqrt(((asked[:, None] - states).astype(float) ** 2).sum(axis=2))
        far[far == 0] = np.inf
        near = np.argsort(far, axis=1, kind="stable")[:, : E + 1]
        d = np.take_along_axis(far, near, 1)
        weight = np.exp(-d / d[:, :1])
        expected = (weight * lib[near + first + Tp]).sum(axis=1) / weight.sum(axis=1)
        np.testing.assert_allclose(adapter.simplex(lib, pred, E=E, tau=tau, Tp=Tp), expected, rtol=0, atol=1e-5)
        ours = adapter.smap(lib, pred, E=E, tau=tau, Tp=Tp, theta=1.5)
        for row in (0, 17, 40):
            there = np.isfinite(far[row])
            w = np.exp(-1.5 * far[row, there] * len(states) / far[row, there].sum())
            table = np.column_stack([np.ones(there.sum()), states[there]])
            fit = np.linalg.lstsq(table * w[:, None], lib[first + Tp :][: len(states)][there] * w, rcond=None)[0]
            assert ours[row] == pytest.approx(fit[0] + asked[row] @ fit[1:], abs=1e-4)


def test_smap(kedm, adapter):
    for rng, given, x, y, z in cases(6, 5):
        theta = float(rng.choice([0.3, 1.0, 4.0]))
        ours, theirs = (package.smap(x, x, theta=theta, **given) for package in (adapter, kedm))
        assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
        scale = np.abs(theirs).max()
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=2e-5 * scale)
        cross = {"target": z, "theta": theta, **given}
        far = kedm.smap(x, y, **cross)
        np.testing.assert_allclose(adapter.smap(x, y, **cross), far, rtol=0, atol=1e-4 * scale)
        rho = adapter.eval_smap(x, x, theta=theta, **given)
        assert rho == pytest.approx(skill(theirs, x, **given), abs=2e-5)
        assert rho == pytest.approx(kedm.eval_smap(x, x, theta=theta, **given), abs=2e-3)
        assert adapter.eval_smap(x, y, **cross) == pytest.approx(skill(far, z, **given), abs=1e-4)


def test_edim(kedm, adapter):
    for _, given, x, _, _ in cases(2, 6):
        most = given.pop("E") + 2
        assert adapter.edim(x, most, **given) == kedm.edim(x, most, **given)
        assert isinstance(adapter.edim(x, E_max=most), int)


def test_xmap(kedm, adapter):
    rng = np.random.default_rng(7)
    data = np.stack([walk(150, rng) for _ in range(4)], axis=1)
    for tau in (1, 2):
        ours, theirs = (package.xmap(data, [1, 3, 3, 1], tau) for package in (adapter, kedm))
        assert ours.dtype == theirs.dtype == np.float32
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)


def test_ccm_draws_what_kedm_draws(kedm, adapter):
    for rng, given, x, _, z in cases(3, 8):
        n, reach = len(x), (given["E"] - 1) * given["tau"] + given["Tp"]
        seed = int(rng.choice([1, 42, -7, 2**31 - 1]))
        sizes = [given["E"] + 4 + reach, 30, 30, n - 1, n]
        options = {"lib_sizes": sizes, "sample": 20, "seed": seed, **given}
        ours, theirs = adapter.ccm(x, z, **options), kedm.ccm(x, z, **options)
        assert isinstance(ours, list) and isinstance(ours[0], float)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=5e-6)
        options["lib_sizes"] = [given["E"] + 4, 25, n - reach]
        np.testing.assert_allclose(adapter.ccm_naive(x, z, **options), kedm.ccm_naive(x, z, **options), rtol=0,
                                   atol=5e-6)  # fmt: skip
    assert adapter.ccm(x, z) == kedm.ccm(x, z) == []


def test_ccm_is_repeatable_only_with_a_seed(adapter):
    x, y = (walk(80, np.random.default_rng(seed)) for seed in (9, 10))
    options = {"lib_sizes": [20], "sample": 2, "E": 2}
    assert adapter.ccm(x, y, seed=3, **options) == adapter.ccm(x, y, seed=3, **options)
    assert adapter.ccm(x, y, **options) != adapter.ccm(x, y, **options)
    assert adapter.ccm(x, y, seed=3, accuracy=0.5, **options) == adapter.ccm(x, y, seed=3, **options)


# What kEDM 0.10.1 does otherwise (docs/kedm.md), each beside what it does.


def test_defect_theta_zero_lets_rows_fit_themselves(kedm, adapter):
    x = walk(60, np.random.default_rng(11))
    ours = pyedmcl.smap(x, E=2, theta=0).predicted
    np.testing.assert_allclose(adapter.smap(x, x, E=2, theta=0), ours, rtol=0, atol=1e-5)
    assert np.abs(kedm.smap(x, x, E=2, theta=0) - ours).max() > 1e-3


def test_defect_smap_predicts_pred_from_lib_unless_told(kedm, adapter):
    rng = np.random.default_rng(12)
    x, y = walk(80, rng), walk(80, rng)
    np.testing.assert_array_equal(adapter.smap(x, y, E=2), adapter.smap(x, y, target=x, E=2))
    np.testing.assert_array_equal(kedm.smap(x, y, E=2), kedm.smap(x, y, target=y, E=2))


def test_defect_xmap_with_Tp_counts_what_is_not_there(kedm, adapter):
    rng = np.random.default_rng(13)
    data = np.stack([walk(120, rng) for _ in range(3)], axis=1)
    ours, theirs = (package.xmap(data, [2, 2, 2], 1, 2) for package in (adapter, kedm))
    assert ours[0, 1] == pytest.approx(adapter.eval_simplex(data[:, 0], data[:, 0], target=data[:, 1], E=2, Tp=2),
                                       abs=1e-5)  # fmt: skip
    assert np.abs(ours - theirs).max() > 1e-3


def test_defect_equal_states_of_a_series_are_neighbours(kedm, adapter):
    x = np.round(3 * np.random.default_rng(14).standard_normal(200)).astype(np.float32)
    expected = naive.simplex(x, E=2)["predicted"]
    np.testing.assert_allclose(adapter.simplex(x, x, E=2)[:-1], expected[:-1], rtol=0, atol=2e-5)
    assert np.abs(kedm.simplex(x, x, E=2)[:-1] - expected[:-1]).max() > 0.1


def test_defect_offset_spoils_rho(kedm, adapter):
    x = (1e4 + np.sin(np.arange(300) / 5)).astype(np.float32)
    assert adapter.eval_simplex(x[:150], x[150:], E=2) > 0.99
    assert adapter.ccm(x, x, lib_sizes=[300], E=2)[0] > 0.99
    assert not kedm.ccm(x, x, lib_sizes=[300], E=2)[0] > 0.99


def test_gaps_are_gaps(adapter):
    x = walk(120, np.random.default_rng(15))
    x[[20, 70]] = np.nan
    for predicted in (adapter.simplex(x, x, E=3), adapter.smap(x, x, E=3)):
        assert np.flatnonzero(np.isnan(predicted)).tolist() == [18, 19, 20, 68, 69, 70]
    ours = pyedmcl.simplex(x, E=3).predicted
    np.testing.assert_allclose(adapter.simplex(x, x, E=3), ours, rtol=0, atol=1e-5)
    piece = adapter.simplex(x[:100], x[60:], E=3)
    assert np.flatnonzero(np.isnan(piece)).tolist() == [8, 9, 10]


X, Y = np.arange(30.0), np.arange(40.0)


@pytest.mark.parametrize(
    ("name", "arguments", "options", "words"),
    [
        ("simplex", (X, Y), {"E": 0}, "E must be greater than zero: simplex got E=0"),
        ("simplex", (X, Y), {"tau": -1}, "tau must be greater than zero"),
        ("simplex", (X, Y), {"Tp": -1}, "Tp must be greater or equal to zero"),
        ("simplex", (X[:3], Y), {"E": 3}, "lib size is too small"),
        ("simplex", (X, Y[:2]), {"E": 3}, "pred size is too small"),
        ("simplex", (X, np.ones((4, 2))), {}, "lib and pred must have same dimensionality"),
        ("simplex", (np.ones((4, 2, 2)), np.ones((4, 2, 2))), {}, "lib and pred must be 1D or 2D arrays"),
        ("simplex", (X, Y), {"target": X[:10]}, "lib must have no more time steps than target"),
        ("simplex", (X, Y), {"target": np.ones((30, 2))}, "target must be a 1D array"),
        ("eval_simplex", (np.ones((9, 2)), np.ones((9, 2))), {}, "lib and pred must be 1D arrays"),
        ("smap", (X, Y), {"target": X[:10]}, "lib and target must have same number of time steps"),
        ("smap", (X[:2], Y), {}, "lib size is too small"),
        ("smap", (np.ones((9, 2)), np.ones((9, 2))), {}, "lib and pred must be 1D arrays"),
        ("edim", (np.ones((9, 2)),), {}, "Expected a 1D array"),
        ("edim", (X,), {}, "lib size is too small"),
        ("edim", (X,), {"E_max": 0}, "E_max must be greater than zero"),
        ("xmap", (X, [1]), {}, "Expected a 2D array"),
        ("xmap", (np.ones((30, 2)), [1]), {}, "Number of time series must match the number of embedding dimensions"),
        ("xmap", (np.ones((30, 2)), [1, 0]), {}, "All embedding dimensions must be larger than zero"),
        ("ccm", (np.ones((9, 2)), X), {}, "lib and target must be 1D arrays"),
        ("ccm", (X, Y), {}, "lib and target must have same number of time steps"),
        ("ccm", (X, X), {"lib_sizes": [5, -1]}, "All lib_sizes must be larger than zero"),
        ("ccm", (X, X), {"lib_sizes": [500]}, "All lib_sizes must not exceed lib size"),
        ("ccm", (X, X), {"lib_sizes": [5], "sample": 0}, "sample must be larger than zero"),
        ("ccm", (X, X), {"lib_sizes": [5], "accuracy": 1.5}, "accuracy must be between zero and one"),
    ],
)  # fmt: skip
def test_errors_begin_with_its_words(kedm, adapter, name, arguments, options, words):
    with pytest.raises(ValueError, match=re.escape(words)):
        getattr(adapter, name)(*arguments, **options)
    if (name, arguments[0].shape) != ("smap", (2,)):  # where kEDM speaks of the target's size
        with pytest.raises(ValueError, match=re.escape(words.split(": ")[0])):
            getattr(kedm, name)(*arguments, **options)


@pytest.mark.parametrize(
    ("name", "arguments", "options", "words"),
    [
        ("simplex", (X, Y), {"E": 2.0}, "E=2.0; an integer is needed"),
        ("simplex", ("abc", Y), {}, "lib is no array of real numbers"),
        ("simplex", (X, np.append(Y, np.inf)), {}, r"pred is infinite at \[40\]"),
        ("simplex", (np.ones((9, 2)), np.ones((9, 2))), {}, "target=None"),
        ("simplex", (np.ones((9, 2)), np.ones((9, 3))), {"target": X}, "2 columns and pred 3"),
        ("smap", (X, X), {"theta": -1}, "theta=-1"), ("eval_smap", (X, X), {"theta": 1e308}, r"theta=1e\+308"),
        ("ccm", (X, X), {"lib_sizes": 5}, "lib_sizes=5; a sequence"),
        ("ccm", (X, X), {"lib_sizes": [5], "sample": 2**31}, "ccm: sample=2147483648"),
        ("ccm_naive", (X, X), {"lib_sizes": [5], "sample": 2**62}, "ccm_naive: sample=4611686018427387904"),
        ("ccm", (X, X), {"lib_sizes": [5], "Tp": -1}, "Tp must be greater or equal to zero"),
    ],
)  # fmt: skip
def test_what_kedm_lets_pass_is_named(adapter, name, arguments, options, words):
    with pytest.raises(InputError, match=words):
        getattr(adapter, name)(*arguments, **options)


def test_without_a_step_to_compare_skill_is_nan(adapter):
    for function in (adapter.eval_simplex, adapter.eval_smap):
        assert np.isnan(function(X, Y[:1]))


def test_configuration_names_the_device(adapter):
    from pyedmcl.device.select import open_device

    assert open_device(None).info.name in adapter.get_kokkos_config()


def sources():
    """Where a source distribution of kEDM, or its tree, may lie on this machine: nothing is downloaded."""
    given = os.environ.get("PYEDMCL_KEDM_SOURCE")
    if given:
        yield Path(given)
    listed = subprocess.run([sys.executable, "-m", "pip", "config", "list"], capture_output=True, text=True).stdout
    places = re.findall(r"(?m)^\S+find-links='(.*)'$", listed)
    for place in shlex.split(" ".join([os.environ.get("PIP_FIND_LINKS", ""), *places])):
        yield from sorted(Path(place.removeprefix("file://")).glob("kedm-0.10.1.tar.gz"))


def test_its_own_suite(adapter, tmp_path):
    source = next((path for path in sources() if path.exists()), None)
    if source is None:
        pytest.skip("the sources of kedm 0.10.1, which hold its tests, are not here (PyPI has wheels only): name their "
                    "folder or archive in PYEDMCL_KEDM_SOURCE")  # fmt: skip
    if source.is_file():
        with tarfile.open(source) as archive:
            archive.extractall(tmp_path, filter="data")
        source = next(tmp_path.glob("*/python/tests")).parents[1]
    path = os.pathsep.join(filter(None, [str(Path(pyedmcl.__file__).parents[1]), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, str(Path(__file__).with_name("kedm_suite.py")), str(source)],
                          capture_output=True, text=True, timeout=280, env=environment)  # fmt: skip
    outcome = {name: word for word, name in re.findall(r"^(PASSED|FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)}
    assert outcome, done.stdout[-3000:] + done.stderr[-3000:]
    failed = {name for name, word in outcome.items() if word != "PASSED"}
    assert failed <= set(PINNED), done.stdout[-6000:]
