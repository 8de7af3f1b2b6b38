"""``pyedmcl bench``: the command, and what it makes of times and counts."""

from __future__ import annotations

import importlib.util
import json
import os
import re

import numpy as np
import pytest
from cli_helpers import shell
from device_helpers import INTEL
from typer.testing import CliRunner

from pyedmcl.cli.app import app
from pyedmcl.cli.bench import _row, rate_text
from pyedmcl.codegen.texts import read_text
from pyedmcl.device.session import open_device
from pyedmcl.engines.distances import distance_block
from pyedmcl.kernels import spec
from pyedmcl.tuner.memory import Keeping
from pyedmcl.tuner.problems import names, workload
from pyedmcl.tuner.problems.common import maps
from pyedmcl.tuner.workload import Case, Workload
from pyedmcl.workloads import bench, ceilings, peers
from pyedmcl.workloads.calls import WholeCall, call_names, whole_calls
from pyedmcl.workloads.ceilings import Ceiling

LIMITS = {
    "float32": Ceiling("float32", 1e9, "operations/s", {}),
    "device": Ceiling("device", 4e9, "bytes/s", {}),
    "local": Ceiling("local", 8e9, "bytes/s", {}),
}
needs_kedm = pytest.mark.skipif(importlib.util.find_spec("kedm") is None, reason="kedm is not installed")


def test_the_command_measures_limits_kernels_and_calls(one_device, tmp_path):
    file = tmp_path / "bench.jsonl"
    file.write_text('{"kind": "earlier"}\n')
    done = shell("bench", "xmap", "predict", "--quick", "--rounds", 2, "--no-peer", "--json", "-o", file,
                 "--device", one_device)  # fmt: skip
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    kept = [json.loads(line) for line in file.read_text().splitlines()]
    assert kept == [{"kind": "earlier"}, *told], "lines are appended"
    limits = {one["name"]: one for one in told if one["kind"] == "ceiling"}
    assert {"float32", "device", "local"} <= set(limits)
    assert all(one["per_second"] > 0 for one in limits.values())
    figures = [one for one in told if one["kind"] != "ceiling"]
    assert [(one["kind"], one["name"]) for one in figures] == [
        ("call", "xmap"),
        ("call", "xmap"),
        ("kernel", "predict"),
    ]
    for one in figures:
        assert len(one["rounds_s"]) == 2
        assert min(one["rounds_s"]) <= one["median_s"] <= max(one["rounds_s"])
        assert one["per_second"] == pytest.approx(one["count"] / one["median_s"])
        assert one["shares"]
        assert "peer" not in one
        assert one["grades"]
    predict = figures[-1]
    assert predict["shares"]["float32"] == pytest.approx(
        workload("predict").operations(workload("predict").cases("rapid", _info(one_device))[0])
        / predict["median_s"] / limits["float32"]["per_second"]
    )  # fmt: skip


def test_a_kernels_figure_is_of_its_own_launches():
    """A tuner may count other kernels' launches, too; then the figure must not."""
    for name in names():
        work = workload(name)
        assert set(work.shown()) <= set(work.timed())
        # From some number of regressors on the sums are those of another kernel.
        kernels = (name, "smap_shared") if name == "smap" else (name,)
        texts = [spec(one).text for one in kernels if spec(one).producer == "mako"]
        for entry in work.shown() if texts else ():
            assert any(re.search(rf"\b{entry}\(", read_text("templates", text)) for text in texts), (name, entry)


def test_memory_is_used_again_and_given_back(one_device):
    executor = open_device(one_device)
    before = executor.memory.held
    keeping = Keeping(executor)
    first = keeping.upload(np.arange(8.0))
    first.release()
    again, other = keeping.allocate(64), keeping.allocate(64)
    assert again is first and other is not first
    assert keeping.download(again, np.empty(8)).tolist() == list(range(8))
    keeping.release()
    assert executor.memory.held == before
    work = workload("distances")
    case = work.cases("rapid", executor.info)[0]
    x = maps(case.numbers["rows"], 2)
    np.testing.assert_array_equal(
        work.run(executor, case)["distances"],
        distance_block(executor, x[:, 0], x[:, 1], **case.numbers["given"])[-64:],
    )
    assert executor.memory.held == before


def _info(device):
    from pyedmcl.device.select import select

    return select(device).device


@needs_kedm
def test_a_peer_runs_beside_ours_and_leaves_our_threads_all_cores(one_device, monkeypatch):
    monkeypatch.setattr(ceilings, "ceilings", lambda executor: LIMITS)
    before = os.sched_getaffinity(0)
    done = CliRunner().invoke(app, ["bench", "embed_dimension", "--quick", "--rounds", "2", "--device", one_device])
    assert done.exit_code == 0, done.output
    (row,) = [line for line in done.stdout.splitlines() if line.startswith("embed_dimension()")]
    assert "kedm" in row
    assert "x  " in row.partition("kedm")[2]
    assert "limits measured: float32 1 Goperations/s" in done.stdout
    assert os.sched_getaffinity(0) == before


def test_an_unknown_name_gives_the_list_before_anything_runs():
    done = CliRunner().invoke(app, ["bench", "teapot"])
    assert done.exit_code == 3
    for name in (*call_names(), *names()):
        assert name in done.output


def test_no_device_is_told_as_everywhere():
    done = CliRunner().invoke(app, ["bench", "knn", "--device", "abacus"])
    assert done.exit_code == 4
    assert "abacus" in done.output


def test_a_file_that_cannot_be_written_is_told_before_anything_runs(one_device, tmp_path):
    done = CliRunner().invoke(app, ["bench", "predict", "-o", str(tmp_path / "no" / "file"), "--device", one_device])
    assert done.exit_code == 3
    assert "--output" in done.output


def test_what_was_measured_before_ctrl_c_is_kept(one_device, tmp_path, monkeypatch):
    def figures(*args, **kwargs):
        yield bench.Figure("kernel", "knn", "a problem", "pairs", 1e6, (0.5, 0.7, 0.5))
        raise KeyboardInterrupt

    monkeypatch.setattr(bench, "figures", figures)
    monkeypatch.setattr(ceilings, "ceilings", lambda executor: LIMITS)
    file = tmp_path / "bench.jsonl"
    done = CliRunner().invoke(app, ["bench", "knn", "predict", "--quick", "-o", str(file), "--device", one_device])
    assert done.exit_code == 130
    assert "1 of 2 problems were timed" in done.output
    assert "500 ms" in done.output
    assert [json.loads(line)["name"] for line in file.read_text().splitlines()] == [*LIMITS, "knn"]


class _Event:
    seconds = 0.01

    def wait(self):
        pass


class _Executor:
    """Every launch takes ten milliseconds."""

    info = INTEL

    def launch(self, *args):
        return _Event()

    def finish(self):
        pass


class _Counted(Workload):
    kernel = "counted"
    memory = "local"

    def cases(self, mode, info):
        return [Case("counted", "one", {"given": {}})]

    def open(self, executor, case):
        from contextlib import nullcontext
        from types import SimpleNamespace

        def go():
            executor.launch(SimpleNamespace(name="counted"), (1,), None, ())
            executor.launch(SimpleNamespace(name="another"), (1,), None, ())
            return {}

        return nullcontext(go)

    def verify(self, executor, case):
        pass

    def operations(self, case):
        return 2.5e6

    def bytes(self, case):
        return 4e7

    def pairs(self, case):
        return 1e6


def test_shares_are_counts_over_the_kernels_own_time_over_limits():
    work = _Counted()
    figure = bench._of_kernel(_Executor(), work, work.cases("rapid", INTEL)[0], LIMITS, 3)
    assert figure.seconds == pytest.approx((0.01,) * 3)
    assert figure.rate == pytest.approx(1e8)
    assert figure.spread == pytest.approx(0.0)
    assert dict(figure.shares) == pytest.approx({"float32": 0.25, "local": 0.5})
    without = bench._shares({"float64": 1e9, "device": 0.0}, 1.0, LIMITS)
    assert without == {}, "what was not measured or not counted is left out"


def _call(peer):
    return WholeCall("xmap", "a problem", "pairs", 1e6, lambda: None, peer, 1e3)


def test_a_peer_that_fails_is_told_and_the_bench_goes_on():
    def broken():
        raise RuntimeError("no licence")

    for peer in (lambda: ("other 1.0", broken), broken):
        figure = bench._of_call(_call(peer), LIMITS, 2, True)
        assert "no licence" in figure.note
        assert figure.ratio is None
        assert len(figure.seconds) == 2


def test_a_slow_peer_is_timed_once(monkeypatch):
    asked = []
    monkeypatch.setattr(bench, "_PEER_SECONDS", -1.0)
    figure = bench._of_call(_call(lambda: ("other 1.0", lambda: asked.append(1))), LIMITS, 3, True)
    assert len(figure.peer_seconds) == 1
    assert len(asked) == 2, "once to warm up, once timed"
    monkeypatch.setattr(bench, "_PEER_SECONDS", 10.0)
    assert len(bench._of_call(_call(lambda: ("other 1.0", lambda: None)), LIMITS, 3, True).peer_seconds) == 3
    assert bench._of_call(_call(lambda: ("other 1.0", lambda: None)), LIMITS, 3, False).peer == ""


def test_every_call_has_a_name_and_counts_its_work():
    for quick in (False, True):
        calls = whole_calls(INTEL, quick)
        assert {call.name for call in calls} == set(call_names())
        assert all(call.count > 0 for call in calls)
        assert len({(call.name, call.problem) for call in calls}) == len(calls)


def test_a_peer_that_is_not_installed_is_none(monkeypatch):
    monkeypatch.setattr(peers, "_installed", lambda *packages: None)
    assert peers.kedm("xmap") is None
    assert peers.pyrqa(INTEL, None, m=1, tau=1, radius=0.1) is None
    assert peers.names() == []


def test_a_kernel_shows_its_own_grade_and_a_call_those_of_all_its_kernels():
    grades = {"knn": ["exact"], "lookup": ["shipped", "exact"]}
    row = {kind: _row(bench.Figure(kind, "knn", "a problem", "pairs", 1.0, (1.0,), grades=grades))[-1]
           for kind in ("kernel", "call")}  # fmt: skip
    assert row == {"kernel": "exact", "call": "exact, shipped"}


@pytest.mark.parametrize(("rate", "text"), [(1.5e12, "1.5 Tpairs/s"), (999.0, "999 pairs/s"), (2e4, "20 kpairs/s")])
def test_rates_are_written_for_people(rate, text):
    assert rate_text(rate, "pairs/s") == text
