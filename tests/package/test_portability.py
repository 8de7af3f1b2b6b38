"""A small part of bench/portability.py: other runtimes, the simulator's reports, and compilers for GPUs not at hand."""

from __future__ import annotations

import functools
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "bench"))

import portability
import portability_calls as calls
import portability_compile as offline
import portability_execute as runtimes
import portability_programs as programs
import portability_tables as tables

from pyedmcl import kernels
from pyedmcl.device import nvrtc
from pyedmcl.export.kernel_source import _ENTRY

ROOT = runtimes.ROOT
#: A task of every call; the calls whose kernels look for neighbours.
ALL = [(name, 3, 3, "float32") for name in calls.CALLS]
DOUBLE = [(name, 3, 3, "float64") for name in calls.CALLS]
SEARCHES = [(name, 3, 3, "float32") for name in ("knn", "simplex", "xmap")]
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


def judged(runtime, run, tasks):
    """What went wrong, after a look at whether anything went right."""
    why = runtimes.absent(runtime)
    if why is not None:
        pytest.skip(why)
    records = list(runtimes.execute(runtime, run, tasks, 1, together=True))
    assert any(r.get("ended") == "passed" for r in records), records
    return [r for r in records if r.get("ended") == "failed" or r.get("ok") is False]


def test_a_call_stands_for_every_kernel():
    assert {kernel for call in calls.CALLS.values() for kernel in call.kernels} == set(programs.kernel_names())


@pytest.mark.parametrize(("runtime", "parameters", "tasks"), [
    ("pocl", "default", ALL + DOUBLE),
    # With float64 where it has that (Mesa 25), whose fma() of doubles rounds twice.
    ("rusticl", "default", ALL + DOUBLE), ("rusticl", "gpu-unroll16-tile512", SEARCHES),
])  # fmt: skip
def test_runtimes_of_debian_agree_with_the_oracles(runtime, parameters, tasks):
    assert judged(runtime, runtimes.Run(parameters), tasks) == []


@pytest.mark.parametrize("runtime", ["intel", "pocl"])
def test_the_path_of_gpus_agrees_with_the_oracles(runtime):
    assert judged(runtime, runtimes.Run("gpu-unroll4-tile256"), SEARCHES) == []


def test_what_is_swapped_for_the_simulator_is_still_there():
    import portability_run

    texts = [path.read_text() for folder in ("templates", "clkernels") for path in (ROOT / folder).glob("*.*")]
    assert [old for old in portability_run.SWAPS if not any(old in text for text in texts)] == []


@pytest.mark.parametrize(
    ("parameters", "size", "watch", "tasks"),
    [("gpu", "tiny", "races", ALL), ("lanes4-wg32", "tiny", "races", SEARCHES),
     ("lanes8", "watched", "uninitialised", ALL), ("gpu-unroll4-tile256", "watched", "uninitialised", SEARCHES)],
)  # fmt: skip
def test_oclgrind_has_nothing_to_report(parameters, size, watch, tasks):
    assert judged("oclgrind", runtimes.Run(parameters, size, watch), tasks) == []


@pytest.mark.parametrize(("watch", "words"), [("races", "data race"), ("uninitialised", "uninitialized")])
def test_oclgrind_reports_what_is_wrong(watch, words, tmp_path):
    """Else the silence above would say nothing."""
    why = runtimes.absent("oclgrind")
    if why is not None:
        pytest.skip(why)
    log = tmp_path / "log"
    environ = runtimes.environment("oclgrind", watch, log)
    subprocess.run([sys.executable, "-c", RACE], env=environ, capture_output=True, check=True)
    found = runtimes.reports(log.read_text())
    assert any(words in report.lower() for report in found), found
    assert any("invalid write" in report.lower() for report in found), found


def test_a_process_that_ends_at_a_call_fails_that_call_only(tmp_path, monkeypatch):
    """The others are made by the next process."""
    monkeypatch.setattr(runtimes, "BENCH", tmp_path)
    (tmp_path / "portability_run.py").write_text(
        "import json, sys\n"
        "for call, E, tau, dtype in json.load(sys.stdin):\n"
        "    if call == 'crash': sys.exit('last words')\n"
        "    print(json.dumps({'call': call, 'ended': 'passed'}), flush=True)\n"
    )
    tasks = [*SEARCHES, ("crash", 1, 1, "float32"), ALL[-1]]
    records = list(runtimes.execute("intel", runtimes.Run("default"), tasks, 1))
    assert [(r["call"], r["ended"]) for r in records] == [
        ("knn", "passed"), ("simplex", "passed"), ("xmap", "passed"), ("crash", "failed"), (ALL[-1][0], "passed"),
    ]  # fmt: skip
    assert "code 1: last words" in records[3]["reason"]


def test_no_cell_is_without_an_answer():
    made = {"how": "executed", "runtime": "a", "driver": "1", "parameters": "default", "size": "usual", "E": 3,
            "tau": 1}  # fmt: skip
    records = [
        {**made, "call": "knn", "dtype": "float32", "ended": "passed", "bits": "0"},
        {**made, "call": "xmap", "dtype": "float32", "ended": "failed", "reason": "wrong\nat length"},
        {**made, "call": "knn", "dtype": "float64", "ended": "not there", "reason": "no float64"},
    ]
    cells = tables.cells(records, "a")
    assert len(cells) == 16 * len(programs.kernel_names())
    assert cells["stage", 3, 1, "float32"] == ("passed", "")
    assert cells["knn", 3, 1, "float32"] == ("failed", "wrong")  # two calls stand for it
    assert cells["knn", 3, 1, "float64"] == ("not there", "no float64")
    assert cells["ccm", 3, 1, "float32"] == ("not run", "no call was made")
    assert "* a, failed: wrong (knn 1, lookup 1)" in tables.matrix(records)


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


@pytest.mark.parametrize("target", offline.NVIDIA)
def test_nvrtc_gives_every_text_the_local_memory_that_it_declares(target):
    """Local memory that lost its address space would be private, and compile; see pyedmcl/device/nvrtc.py."""
    if offline.nvidia_compiler() is None:
        pytest.skip("NVRTC is not installed: pip install 'pyedmcl[cuda]'")
    texts = programs.programs_for(offline.gpu(target), "normal")
    assert programs.uncovered(texts) == []
    with ThreadPoolExecutor(2) as pool:  # it compiles side by side
        made = list(pool.map(lambda text: offline.ptx_of(target, text.code), texts))
    for text, ptx in zip(texts, made, strict=True):
        assert set(_ENTRY.findall(text.code)) == set(nvrtc.entries(ptx)), text.label
    asked = [bytes_of for ptx in made for bytes_of in nvrtc.asked_bytes(ptx).values()]
    assert max(asked) > 48 << 10 if target == "sm_90" else max(asked) <= 48 << 10


@pytest.mark.parametrize("target", ["gfx90a", "gfx1100"])
def test_hip_takes_kernels(target):
    """The header and the converter are those of CUDA."""
    if offline.hip_compiler() is None:
        pytest.skip("clang with HIP's headers is not installed (Debian: libamdhip64-dev, rocm-device-libs)")
    only = () if target == "gfx90a" else SOME
    for kernel, text in {text.kernel: text for text in reversed(programs_of(target, *only))}.items():
        found = offline.hip_local_bytes(target, text.code)
        assert set(found) == set(_ENTRY.findall(text.code)), (kernel, text.label)
        for declared, there in found.values():  # arrays are aligned: none is lost to private memory
            assert declared <= there < declared + 128, (kernel, text.label, found)


def test_the_page_shows_the_recorded_results():
    records = portability.load(portability.RESULTS)
    assert {r["how"] for r in records} == {"executed", "watched", "compiled"}
    assert tables.tables(records) in (ROOT / "docs" / "portability.md").read_text()
    assert all(r["ok"] for r in records if r["how"] == "watched")
    assert not [r for r in records if r.get("ended") == "failed"]


def test_the_readme_claims_the_devices_of_the_matrix_word_for_word():
    said = " ".join((ROOT / "README.md").read_text().split())
    claimed = tables.claim(portability.load(portability.RESULTS))
    assert f"It is tested on {claimed}; other devices follow the OpenCL 1.2 standard." in said
    made = {"how": "executed", "call": "knn", "E": 3, "tau": 1, "dtype": "float32", "ended": "passed"}
    some = [{**made, "runtime": name} for name in ("intel", "pocl", "oclgrind", "NVIDIA H100 80GB HBM3")]
    assert tables.claim(some) == "the Intel CPU runtime, PoCL and an NVIDIA H100"
    assert tables.claim([*some[1:], {**made, "runtime": "NVIDIA H100 80GB HBM3", "ended": "failed"}]) == "PoCL"
