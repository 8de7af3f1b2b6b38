"""Shares of the best known speed: which wisdom stands for another device, what is measured, and the table in docs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import performance_portability as portability
import pytest
from calls import WholeCall
from device_helpers import ARC, INTEL, POCL31

from pyedmcl.device.select import open_device
from pyedmcl.errors import InputError
from pyedmcl.tuner.measure import Bench
from pyedmcl.tuner.problems import problem
from pyedmcl.tuning.parameters import source

ROOT = Path(portability.__file__).parents[1]


def record(device, name, kind="kernel", **seconds):
    return {"device": device, "runtime": "pocl", "kind": kind, "name": name, "problem": "p", "seconds": seconds}


def test_wisdom_of_another_device_is_that_of_its_class_but_its_own():
    of_intel, of_pocl = portability.of_class(INTEL), portability.of_class(POCL31)
    assert of_intel and of_pocl and of_intel != of_pocl
    assert {entry.key.device.runtime for entry in of_intel} == {"intel-cpu"}
    assert not {entry.parameters.get("lanes") for entry in of_pocl if entry.key.kernel == "knn"} - {4, 8, 16}
    gpu = replace(ARC, runtime="nvidia", name="NVIDIA H100 80GB HBM3")
    assert len(portability.of_class(gpu)) > len(of_intel)
    assert portability.of_class(replace(gpu, name="NVIDIA H200")) == ()


def test_each_way_has_its_own_knowledge(one_device, tmp_path):
    bench = Bench(open_device(one_device))
    case = problem("predict").cases("rapid", bench.executor.info)[0]
    asked = bench.describe(case, None).asked[0]
    other = portability.of_class(bench.executor.info)
    better = [replace(entry, parameters={"wg": 32}) for entry in other if entry.key.kernel == "predict"][:1]
    ways = [portability.Way("defaults", str(tmp_path)), portability.Way("other", str(tmp_path), tuple(better)),
            portability.Way("best", str(tmp_path))]  # fmt: skip
    found = portability.of_kernel(bench, case, ways, 1)
    assert found["parameters"] == {"defaults": asked.parameters, "other": {"wg": 32}, "best": asked.parameters}
    assert found["seconds"]["defaults"] == found["seconds"]["best"] > 0  # the same parameters run once
    modes = []
    call = WholeCall("xmap", "p", "", 1, lambda: modes.append(source.mode_in_force()), lambda: None)
    assert set(portability.of_call(call, ways, 2)["seconds"]) == {"defaults", "other", "best"}
    assert modes.count("never") == 6 and modes.count("cached") == 12


def test_shares_are_of_the_best_time_and_means_are_harmonic():
    lines = [
        record("A", "knn", defaults=9.0, tuned=9.0, best=9.0),
        record("A", "knn", defaults=2.0, tuned=1.0, best=1.25),  # the last line of a workload counts
        record("A", "lookup", defaults=1.0, tuned=1.0, best=1.0),
        record("B", "xmap", "call", defaults=4.0, other=2.0, tuned=4.0, alone=5.0, best=2.0),
    ]
    shown = portability.table(lines)
    assert "| A (pocl) | 2 kernels | 0.67, least 0.50 | not measured | 1.00, least 1.00 | not measured |" in shown
    assert "| B (pocl) | 1 calls | 0.50, least 0.50 | 1.00, least 1.00 | 0.50, least 0.50 | 0.40, least 0.40 |" in shown
    assert "| | 0.57, least 0.50 | 1.00, least 1.00 | 0.67, least 0.50 | 0.40, least 0.40 |" in shown
    assert "Defaults lose more than 1.5x: knn (p) on A 2.00x; xmap (p) on B 2.00x." in shown


def test_workloads_that_are_not_there_are_counted_apart():
    absent = {**record("A", "smap"), "absent": "no double precision"}
    del absent["seconds"]
    shown = portability.table([record("A", "knn", defaults=2.0, best=1.0), absent, {**absent, "kind": "call"}])
    assert "| A (pocl) | 1 kernels, 1 not there | 0.50, least 0.50 | not measured |" in shown
    assert "| A (pocl) | 0 calls, 1 not there | not measured |" in shown
    assert "knn (p) on A 2.00x." in shown


def test_what_a_device_cannot_run_is_recorded_with_its_reason():
    def refused():
        raise InputError("no double precision")

    call = WholeCall("smap", "p", "pairs", 1.0, refused, lambda: None)
    found = portability.of_call(call, [portability.Way("defaults", "/nonexistent")], rounds=1)
    assert found == {"kind": "call", "name": "smap", "problem": "p", "absent": "no double precision"}
    failed = SimpleNamespace(status="failed", note="BuildError: no\nlog")
    bench = SimpleNamespace(describe=lambda case, parameters: failed)
    case = SimpleNamespace(kernel="smap", name="p")
    found = portability.of_kernel(bench, case, [], rounds=1)
    assert found == {"kind": "kernel", "name": "smap", "problem": "p", "absent": "BuildError: no"}


def test_a_tuning_begins_with_the_wisdom_of_its_way(monkeypatch, tmp_path):
    """What stands for the command tells the shipped wisdom that it would begin with."""
    told = tmp_path / "told"
    known = "len(wisdom.shipped('any', 'knn'))"
    app = f"app = lambda words: pathlib.Path({str(told)!r}).write_text(repr(({known}, words[:2])))"
    command = portability._COMMAND.replace("from pyedmcl.cli.app import app", app)
    monkeypatch.setattr(portability, "_COMMAND", command)
    shipped = portability.of_class(INTEL)[:2]
    portability.tune(portability.Way("tuned", str(tmp_path), shipped), "0:0", ["knn"], 60.0)
    assert told.read_text() == "(2, ['tune', 'knn'])"
    portability.tune(portability.Way("alone", str(tmp_path)), "0:0", ["knn"], 60.0)
    assert told.read_text() == "(0, ['tune', 'knn'])"


def test_a_tuning_that_fails_is_told(monkeypatch, tmp_path):
    monkeypatch.setattr(portability.subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=4))
    with pytest.raises(SystemExit, match=r"'pyedmcl tune knn .* --budget 60s --quiet' ended with code 4"):
        portability.tune(portability.Way("tuned", str(tmp_path)), "0:0", ["knn"], 60.0)


def test_the_page_shows_the_recorded_shares():
    records = portability.load(str(ROOT / "bench" / "results" / "performance-portability.jsonl"))
    assert portability.table(records) in (ROOT / "docs" / "bench.md").read_text()
