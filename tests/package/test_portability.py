"""A small part of bench/portability.py: other runtimes, the simulator's reports, and compilers for GPUs not at hand."""

from __future__ import annotations

import functools
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

import portability
import portability_compile as offline
import portability_programs as programs

from pyedmcl import kernels

ROOT = portability.ROOT
SMALL = """
import sys
import portability_run as run
device, name, size = sys.argv[1:]
run.patch(name, device == "oclgrind", size == "watched")
n = 600 if size == "full" else 80
staged = run.SETS[name].get("class") == "gpu"
good = [run.check_knn(device, "float32", n, 3, 3, staged)[0], run.check_simplex(device, 80, 3, 1)[0]]
good += [run.check_xmap(device, 80, [3] * 8, 1, gaps)[0] for gaps in (False, True)]
print(*good)
"""
RACE = """
import pyopencl as cl
device = cl.get_platforms()[0].get_devices()[0]
context = cl.Context([device])
queue = cl.CommandQueue(context)
text = "kernel void f(global int* a, global int* b) { int u; a[0] = get_global_id(0); a[9] = 1; if (b[1]) a[2] = 2; }"
a, b = (cl.Buffer(context, cl.mem_flags.READ_WRITE, 16) for _ in range(2))
cl.Kernel(cl.Program(context, text).build(["-cl-opt-disable"]), "f")(queue, (4,), (1,), a, b)
queue.finish()
"""


def small(runtime, parameters, size, watch="", log=None):
    """The checks of SMALL, each True where the device agrees with the oracle."""
    why = portability.absent(runtime)
    if why is not None:
        pytest.skip(why)
    environ = portability.environment(runtime, watch, log)
    environ["PYTHONPATH"] += f":{ROOT / 'bench'}"
    done = subprocess.run([sys.executable, "-c", SMALL, runtime, parameters, size], env=environ, capture_output=True,
                          text=True, timeout=200, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.parametrize("parameters", ["gpu-unroll4-tile256", "gpu-unroll16-tile512"])
def test_rusticl_agrees_with_the_oracles(parameters):
    assert small("rusticl", parameters, "full") == ["True"] * 4


@pytest.mark.parametrize("runtime", ["intel", "pocl"])
def test_the_path_of_gpus_agrees_with_the_oracles(runtime):
    assert small(runtime, "gpu-unroll4-tile256", "full") == ["True"] * 4


def test_what_is_swapped_for_the_simulator_is_still_there():
    import portability_run

    texts = [path.read_text() for folder in ("templates", "clkernels") for path in (ROOT / folder).glob("*.*")]
    assert [old for old in portability_run.SWAPS if not any(old in text for text in texts)] == []


@pytest.mark.parametrize(
    ("parameters", "size", "watch"),
    [("default", "tiny", "races"), ("gpu-unroll16-tile512", "tiny", "races"),
     ("lanes4-wg32", "tiny", "races"), ("lanes8", "watched", "uninitialised"),
     ("gpu-unroll4-tile256", "watched", "uninitialised")],
)  # fmt: skip
def test_oclgrind_has_nothing_to_report(parameters, size, watch, tmp_path):
    log = tmp_path / "log"
    assert small("oclgrind", parameters, size, watch, log) == ["True"] * 4
    found = portability.reports(log.read_text()) if log.exists() else []
    assert not found, f"{len(found)} reports, the first: {found[0]}"


@pytest.mark.parametrize(("watch", "words"), [("races", "data race"), ("uninitialised", "uninitialized")])
def test_oclgrind_reports_what_is_wrong(watch, words, tmp_path):
    """Else the silence above would say nothing."""
    why = portability.absent("oclgrind")
    if why is not None:
        pytest.skip(why)
    log = tmp_path / "log"
    environ = portability.environment("oclgrind", watch, log)
    subprocess.run([sys.executable, "-c", RACE], env=environ, capture_output=True, check=True)
    found = portability.reports(log.read_text())
    assert any(words in report.lower() for report in found), found
    assert any("invalid write" in report.lower() for report in found), found


@functools.cache
def programs_of(target, *only):
    """Programs for a target with default parameters: of some kernels, or of all."""
    return programs.programs_for(offline.gpu(target), "rapid", only=only)


def test_a_program_stands_for_every_kernel(monkeypatch):
    texts = programs_of(offline.TARGETS[0])
    assert set(kernels.NAMES) < set(programs.kernel_names())
    assert programs.uncovered(texts) == []
    assert len({text.code for text in texts}) == len(texts)
    monkeypatch.setattr(kernels, "NAMES", (*kernels.NAMES, "teapot"))
    assert programs.uncovered(texts) == ["teapot"]


def test_variants_turn_options_and_keep_to_the_constraints():
    texts = programs.programs_for(offline.gpu("Xe-HPG"), "normal", only=["knn", "recurrence_image"])
    labels = {kernel: {text.label for text in texts if text.kernel == kernel} for kernel in ("knn", "recurrence_image")}
    assert any("masked" in label.split() for label in labels["knn"])
    assert any("tau=3" in label.split() for label in labels["knn"])
    assert any("listed" in label.split() for label in labels["recurrence_image"])
    # A corridor is one for all columns, and this target has no double precision.
    assert not any({"corridor", "per_column"} <= set(label.split()) for label in labels["recurrence_image"])
    assert {text.dtype for text in texts} == {"float32"}


def recorded():
    """(target, kernel, label, number type) -> record of a program that was compiled before."""
    return {(r["target"], r["kernel"], r["for"], r["dtype"]): r
            for r in portability.load(portability.RESULTS) if r["how"] == "compiled"}  # fmt: skip


# All kernels are compiled for the first target, and these for the others: it is the front ends that differ.
SOME = ("knn", "lookup", "pruned")


@pytest.mark.parametrize("target", offline.TARGETS)
def test_kernels_compile_and_spill_no_more_than_recorded(target):
    why = offline.missing(target)
    if why is not None:
        pytest.skip(why)
    table, only = recorded(), () if target == offline.TARGETS[0] else SOME
    first = {text.kernel: text for text in reversed(programs_of(target, *only))}
    for kernel in only or programs.kernel_names():
        text = first[kernel]
        result = offline.compile_program(target, text)
        assert result["ok"], (kernel, text.label, result)
        # Another text or version of a tool may spill somewhat more where it spilt already, but not begin to.
        before = table.get((target, kernel, text.label, text.dtype))
        if before is not None and before["ok"]:
            assert result["spills"] <= 2 * before["spills"], (kernel, text.label, before, result)


def test_the_page_shows_the_recorded_results():
    records = portability.load(portability.RESULTS)
    assert {r["how"] for r in records} == {"executed", "watched", "compiled"}
    assert portability.table(records) in (ROOT / "docs" / "portability.md").read_text()
    assert all(r["ok"] for r in records if r["how"] != "compiled")
