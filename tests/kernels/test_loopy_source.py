"""The second source producer: shipped texts, the cache, and what happens without loopy."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from device_helpers import NVIDIA
from loopy_helpers import needs_loopy
from tuning_helpers import run as run_trial

import pyedmcl
from pyedmcl.device.select import open_device
from pyedmcl.errors import BuildError, MissingExtraError
from pyedmcl.kernels import build, loopy_source, spec
from pyedmcl.kernels.specs.maps import CHUNK
from pyedmcl.kernels.texts import DTYPES, MAKERS, Maker
from pyedmcl.tuning import defaults
from pyedmcl.tuning.database import Database
from pyedmcl.tuning.records import tuning_key

CHECKOUT = Path(__file__).resolve().parents[2]
FOLDER = CHECKOUT / "clkernels" / "generated"
DEVICE = {"fma": "builtin", "minimum": "fmin"}
# No such combination is shipped.
OTHER = {"dtype": "float32", "chunk": 64, "wg": 16, **DEVICE}


@pytest.fixture
def fresh(monkeypatch, tmp_path):
    """An empty cache folder and a producer that remembers nothing; gives the folder."""
    monkeypatch.setenv("PYEDMCL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(loopy_source, "_bodies", {})
    return tmp_path / "cache" / "loopy"


@pytest.fixture
def without_loopy(monkeypatch):
    def version(package):
        if package in ("loopy", "islpy"):
            raise metadata.PackageNotFoundError(package)
        return metadata.version(package)

    monkeypatch.setattr(loopy_source.metadata, "version", version)
    monkeypatch.setitem(sys.modules, "loopy", None)


def refuse(*_):
    raise AssertionError("a text was generated that was there already")


def run(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=CHECKOUT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_loopy
def test_the_shipped_texts_are_what_loopy_writes():
    there = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.cl")}
    assert loopy_source.shipped_files() == there
    assert len(there) == sum(len(maker.shipped) for maker in MAKERS.values())


@needs_loopy
def test_texts_do_not_depend_on_hash_seeds():
    code = f"""
from pyedmcl.kernels.loopy_source import generate, shaping_values
print(generate("skill", shaping_values("skill", {OTHER})))
"""
    texts = {run(code, PYTHONHASHSEED=str(seed)) for seed in (1, 2, 3)}
    assert len(texts) == 1


@pytest.mark.parametrize("defaults_for", ["cpu", "gpu"])
def test_defaults_need_no_loopy(defaults_for, fresh, without_loopy):
    for dtype in DTYPES:
        values = {"dtype": dtype, "chunk": CHUNK, **spec("skill").defaults(defaults_for), **DEVICE}
        text = build.source(spec("skill"), values)
        assert re.search(r"__kernel .* skill\(", text)
    assert not fresh.exists()


def test_tuned_parameters_are_tied_to_the_text():
    for name in MAKERS:
        assert (CHECKOUT / "clkernels" / spec(name).example).is_file()
        assert len(spec(name).digest()) == 16


def test_a_text_that_is_not_shipped_says_what_to_install(fresh, without_loopy):
    with pytest.raises(MissingExtraError, match=r"chunk = 64.*'loopy'.*pip install 'pyedmcl\[loopy\]'"):
        loopy_source.produce("skill", OTHER)


@pytest.mark.usefixtures("data_dir")
def test_tuned_parameters_without_a_text_are_passed_over(fresh, without_loopy, one_device, caplog):
    """They may come from other people, or from before loopy was uninstalled."""
    info = open_device(one_device).info
    run_trial(Database(), tuning_key(spec("skill"), {"dtype": "float32", "chunk": 256}, info), {"wg": 16}, final=True)
    caplog.set_level("INFO", logger="pyedmcl.tuning")
    result = pyedmcl.embed_dimension(np.random.default_rng(1).standard_normal(200), E_max=2, device=one_device)
    assert [one["grade"] for one in result.provenance["tuning"]["skill"]] == ["default"]
    assert "pip install 'pyedmcl[loopy]'" in caplog.text
    # A device that takes small groups only is given one whose text there is.
    assert defaults.defaults(spec("skill"), {"dtype": "float32", "chunk": 256}, NVIDIA, 48)["wg"] == 1


@needs_loopy
def test_with_loopy_groups_are_as_large_as_a_device_takes(fresh):
    assert defaults.defaults(spec("skill"), {"dtype": "float32", "chunk": 256}, NVIDIA, 48)["wg"] == 32


def test_a_loopy_that_cannot_be_imported_is_missing_too(fresh, monkeypatch):
    monkeypatch.setattr(loopy_source.metadata, "version", {"loopy": "2025.2", "islpy": "2025.2.5"}.__getitem__)
    monkeypatch.setitem(sys.modules, "loopy", None)
    with pytest.raises(MissingExtraError, match="'loopy'"):
        loopy_source.produce("skill", OTHER)


@pytest.mark.parametrize(
    ("loopy", "islpy", "said"),
    [
        ("2025.2", "2026.2.2", r"islpy>=2025\.2\.5,<2026, but islpy 2026\.2\.2"),
        ("2025.2", "2025.2.4", r"islpy 2025\.2\.4"),
        ("2025.1", "2025.2.5", r"loopy>=2025\.2,<2026, but loopy 2025\.1"),
        ("2026.1.dev0", "2025.2.5", r"loopy 2026\.1\.dev0"),
    ],
)
def test_versions_that_do_not_work_together_are_named(loopy, islpy, said, fresh, monkeypatch):
    monkeypatch.setattr(loopy_source.metadata, "version", {"loopy": loopy, "islpy": islpy}.__getitem__)
    with pytest.raises(MissingExtraError, match=said):
        loopy_source.produce("skill", OTHER)


@needs_loopy
def test_a_generated_text_is_kept_and_found_again(fresh, monkeypatch):
    text = loopy_source.produce("skill", OTHER)
    (file,) = fresh.iterdir()
    assert file.read_text() in text
    generate = loopy_source.generate
    monkeypatch.setattr(loopy_source, "generate", refuse)
    assert loopy_source.produce("skill", OTHER) == text  # from this process
    loopy_source._bodies.clear()
    assert loopy_source.produce("skill", OTHER) == text  # from the file
    # A harmed file is not believed, nor is a text of another version of the maker.
    file.write_text(file.read_text()[:-20])
    loopy_source._bodies.clear()
    with pytest.raises(AssertionError, match="generated"):
        loopy_source.produce("skill", OTHER)
    monkeypatch.setattr(loopy_source, "generate", generate)
    assert loopy_source.produce("skill", OTHER) == text
    assert file.read_text() in text
    old = MAKERS["skill"]
    newer = Maker(old.version + 1, old.names, old.make, old.shipped)
    monkeypatch.setattr(loopy_source, "MAKERS", {**MAKERS, "skill": newer})
    loopy_source._bodies.clear()
    assert f'"maker": {newer.version}' in loopy_source.produce("skill", OTHER)
    assert len(list(fresh.iterdir())) == 2
    # Nor is a text made by other source of the makers, whatever number they carry.
    monkeypatch.setattr(loopy_source, "_makers_digest", lambda: "edited")
    loopy_source._bodies.clear()
    loopy_source.produce("skill", OTHER)
    assert len(list(fresh.iterdir())) == 3


@needs_loopy
def test_a_shipped_text_of_another_version_is_not_used(fresh, monkeypatch):
    old = MAKERS["skill"]
    monkeypatch.setattr(loopy_source, "MAKERS", {"skill": Maker(old.version + 1, old.names, old.make, ())})
    values = {"dtype": "float32", "chunk": 256, "wg": 64, **DEVICE}
    assert f'"maker": {old.version + 1}' in loopy_source.produce("skill", values)
    assert len(list(fresh.iterdir())) == 1


@needs_loopy
def test_a_cache_that_cannot_be_written_is_no_failure(fresh):
    fresh.parent.parent.mkdir(exist_ok=True)
    fresh.parent.write_text("a file where the folder should be")
    assert "skill(" in loopy_source.produce("skill", OTHER)


@needs_loopy
def test_a_failure_of_loopy_is_a_build_error(fresh, monkeypatch):
    def broken(lp, values):
        raise KeyError("inner trouble")

    old = MAKERS["skill"]
    monkeypatch.setattr(loopy_source, "MAKERS", {"skill": Maker(99, old.names, broken, ())})
    with pytest.raises(BuildError, match=r"loopy could not write .*chunk = 64.*inner trouble"):
        loopy_source.produce("skill", OTHER)


def test_devices_differ_in_the_head_only():
    values = {"dtype": "float64", "chunk": 256, "wg": 1}
    texts = [
        loopy_source.produce("skill", {**values, "fma": fma, "minimum": minimum}).splitlines()
        for fma in ("builtin", "contract")
        for minimum in ("fmin", "select")
    ]
    defines = [[line for line in text if line.startswith(("#define FMA_C", "#define MIN_S"))] for text in texts]
    assert [[int(line.split()[-1]) for line in found[:2]] for found in defines] == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert texts[0][:2] == ["#define LANES 1", "#define REAL_BITS 64"]
    assert len({tuple(text[4:]) for text in texts}) == 1
    assert "#include" not in "\n".join(texts[0])


def test_texts_count_in_64_bits_and_keep_their_precision():
    for path in FOLDER.glob("*.cl"):
        text = path.read_text(encoding="utf-8")
        assert "((long) get_local_id(N))" in text
        assert "((long) get_group_id(N))" in text
        signature = re.search(r"__kernel .*", text)[0]
        assert re.findall(r"(\w+) const \w+[,)]", signature.replace("*__restrict__ ", "* ")).count("int") == 0
        body = text[text.index("__kernel") :]
        if "float32" in path.name:
            assert "double" not in body
            assert re.findall(r"\d\.\d*(?!\d|f)", body) == []  # no literal that would drag in double
        else:
            assert "float" not in body


def test_bad_values_are_named():
    good = {"dtype": "float32", "chunk": 256, "wg": 64, **DEVICE}
    assert "skill(" in loopy_source.produce("skill", good)
    with pytest.raises(BuildError, match="no loopy maker 'knn'"):
        loopy_source.produce("knn", good)
    for missing in ("dtype", "chunk", "fma", "minimum"):
        with pytest.raises(BuildError, match=f"no value for {missing}"):
            loopy_source.produce("skill", {k: v for k, v in good.items() if k != missing})
    for key, value in (("dtype", "float16"), ("chunk", 0), ("chunk", -1), ("wg", 0)):
        with pytest.raises(BuildError, match=f"{key} = {value!r}"):
            loopy_source.produce("skill", {**good, key: value})


def test_loopy_is_not_imported_for_a_shipped_text(one_device):
    code = f"""
import sys
import numpy as np
import pyedmcl
assert pyedmcl.embed_dimension(np.sin(np.arange(200.0)), E_max=2, device={one_device!r}).rho.max() > 0.9
assert not {{"loopy", "islpy", "pymbolic"}} & set(sys.modules)
"""
    run(code)


@needs_loopy
def test_generating_first_hides_no_device(tmp_path, one_device):
    # loopy imports a part of PyOpenCL; the runtimes of wheels must still be found afterwards.
    code = f"""
from pyedmcl.kernels.loopy_source import produce
produce("skill", {OTHER})
from pyedmcl.device.select import discover
print(*[(info.platform, info.driver) for info in discover()], sep="\\n")
"""
    listed = "from pyedmcl.device.select import discover\n" + code[code.rindex("print(") :]
    assert run(code, PYEDMCL_CACHE_DIR=str(tmp_path)) == run(listed, PYEDMCL_CACHE_DIR=str(tmp_path))


@needs_loopy
def test_the_maintainers_command_finds_no_difference():
    command = [sys.executable, "-m", "pyedmcl.kernels.loopy_source"]
    done = subprocess.run([*command, "--check"], cwd=CHECKOUT, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert ", 0 of " in done.stdout
    usage = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=120, check=False)
    assert usage.returncode == 2
    assert "--write" in usage.stderr
