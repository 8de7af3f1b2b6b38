"""``bench/run.py``: the command, and what it makes of times and counts."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import calls
import figures
import peers
import pytest
import run
from calls import WholeCall, call_names, whole_calls
from ceilings import Ceiling, ceilings
from counts import COUNTS, Count, counted, own_entries
from device_helpers import INTEL
from peers import Peer
from untuned import UNTUNED, every_problem

from pyedmcl.device.select import open_device
from pyedmcl.kernels import spec
from pyedmcl.kernels.texts import read_text
from pyedmcl.tuner.problem import TuningCase, TuningProblem
from pyedmcl.tuner.problems import problem

LIMITS = {
    "float32": Ceiling("float32", 1e9, "operations/s", {}),
    "device": Ceiling("device", 4e9, "bytes/s", {}),
    "local": Ceiling("local", 8e9, "bytes/s", {}),
}
COMMAND = Path(run.__file__)
needs_kedm = pytest.mark.skipif(importlib.util.find_spec("kedm") is None, reason="kedm is not installed")


def test_the_command_measures_limits_kernels_and_calls(one_device, tmp_path):
    file = tmp_path / "bench.jsonl"
    file.write_text('{"kind": "earlier"}\n')
    done = subprocess.run(
        [sys.executable, COMMAND, "xmap", "predict", "--quick", "--rounds", "2", "--no-peer", "--out", file, "--device",
         one_device], capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    earlier, *records = [json.loads(line) for line in file.read_text().splitlines()]
    assert earlier == {"kind": "earlier"}, "lines are appended"
    limits = {record["name"]: record for record in records if record["kind"] == "ceiling"}
    assert {"float32", "device", "local"} <= set(limits)
    assert all(record["per_second"] > 0 for record in limits.values())
    measured = [record for record in records if record["kind"] != "ceiling"]
    assert [(record["kind"], record["name"]) for record in measured] == [
        ("call", "xmap"),
        ("call", "xmap"),
        ("kernel", "predict"),
    ]
    for record in measured:
        assert record["problem"] in done.stdout
        assert len(record["rounds_s"]) == 2
        assert min(record["rounds_s"]) <= record["median_s"] <= max(record["rounds_s"])
        assert record["per_second"] == pytest.approx(record["count"] / record["median_s"])
        assert record["shares"]
        assert "peer" not in record
        assert record["grades"]
    case = problem("predict").cases("rapid", open_device(one_device).info)[0]
    share = counted(case).work["float32"] / measured[-1]["median_s"] / limits["float32"]["per_second"]
    assert measured[-1]["shares"]["float32"] == pytest.approx(share)


def test_ceilings_are_measured_in_every_shape(one_device):
    executor = open_device(one_device)
    before = executor.memory.held
    found = ceilings(executor, seconds=0.0)
    assert {"float32", "device", "local"} <= set(found)
    assert all(limit.rate > 0 and limit.shape for limit in found.values())
    assert executor.memory.held == before


@pytest.mark.parametrize("name", UNTUNED)
def test_kernels_without_anything_to_tune_give_the_oracles_answer(name, device):
    executor = open_device(device)
    for case in UNTUNED[name].cases("exhaustive", executor.info):
        UNTUNED[name].verify(executor, case)


def test_every_kernel_is_counted():
    assert set(COUNTS) == set(every_problem())
    for work in every_problem().values():
        for mode in ("rapid", "normal", "exhaustive"):
            for case in work.cases(mode, INTEL):
                count = counted(case)
                assert count.amount > 0
                assert set(count.work) & {"device", "local"}
                assert all(amount > 0 for amount in count.work.values())


def test_a_kernels_figure_is_of_its_own_launches():
    """A tuner may count other kernels' launches, too; then the figure must not."""
    for name, work in every_problem().items():
        entries = own_entries(name, work.timed())
        assert set(entries) <= set(work.timed())
        # From some number of regressors on the sums are those of another kernel.
        kernels = (name, "smap_shared") if name == "smap" else (name,)
        texts = [spec(one).text for one in kernels if spec(one).producer == "mako"]
        for entry in entries if texts else ():
            assert any(re.search(rf"\b{entry}\(", read_text("templates", text)) for text in texts), (name, entry)


@needs_kedm
def test_a_peer_runs_beside_ours_and_leaves_our_threads_all_cores(one_device, monkeypatch, capsys):
    monkeypatch.setattr(run, "ceilings", lambda executor: LIMITS)
    before = os.sched_getaffinity(0)
    run.main(["embed_dimension", "--quick", "--rounds", "2", "--device", one_device])
    told = capsys.readouterr().out
    (row,) = [line for line in told.splitlines() if line.startswith("embed_dimension()")]
    assert re.search(r"[\d.]+x kedm", row)
    assert "limit float32: 1 Goperations/s" in told
    assert os.sched_getaffinity(0) == before


def test_an_unknown_name_gives_the_list_before_anything_runs(capsys):
    with pytest.raises(SystemExit):
        run.main(["teapot"])
    told = capsys.readouterr().err
    for name in (*call_names(), *every_problem()):
        assert name in told


def test_what_was_measured_before_ctrl_c_is_kept(one_device, tmp_path, monkeypatch, capsys):
    def measured(*args, **kwargs):
        yield figures.Figure("kernel", "knn", "a problem", "pairs", 1e6, (0.5, 0.7, 0.5))
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "figures", measured)
    monkeypatch.setattr(run, "ceilings", lambda executor: LIMITS)
    file = tmp_path / "bench.jsonl"
    with pytest.raises(SystemExit) as stop:
        run.main(["knn", "predict", "--quick", "--out", str(file), "--device", one_device])
    assert stop.value.code == 130
    told = capsys.readouterr()
    assert "1 of 2 problems were timed" in told.err
    assert "500.000 ms" in told.out
    assert [json.loads(line)["name"] for line in file.read_text().splitlines()] == [*LIMITS, "knn"]


class _Event:
    seconds = 0.01

    def wait(self):
        pass


class _Executor:
    """Every launch takes ten milliseconds."""

    info = INTEL

    def launch(self, *_, **arguments):
        return _Event()

    def finish(self):
        pass


class _Counted(TuningProblem):
    kernel = "knn"

    def case(self, info):
        return TuningCase("knn", "one", {"given": {}})

    def open(self, executor, case):
        from contextlib import nullcontext

        def go():
            executor.launch(SimpleNamespace(name="knn"), (1,), None)
            executor.launch(SimpleNamespace(name="another"), (1,), None)
            return {}

        return nullcontext(go)

    def ragged(self, case):
        return iter(())

    computed = expected = None


def test_shares_are_counts_over_the_kernels_own_time_over_limits(monkeypatch):
    count = Count("pairs", lambda n, g: 1e6, lambda n, g: 4e7, lambda n, g: 2.5e6, memory="local")
    monkeypatch.setitem(COUNTS, "knn", count)
    work = _Counted()
    figure = figures.of_kernel(_Executor(), work, work.case(INTEL), LIMITS, 3)
    assert figure.seconds == pytest.approx((0.01,) * 3)
    assert figure.rate == pytest.approx(1e8)
    assert figure.spread == pytest.approx(0.0)
    assert dict(figure.shares) == pytest.approx({"float32": 0.25, "local": 0.5})
    without = figures.shares({"float64": 1e9, "device": 0.0}, 1.0, LIMITS)
    assert without == {}, "what was not measured or not counted is left out"


def _call(peer):
    return WholeCall("xmap", "a problem", "pairs", 1e6, lambda: None, peer, 1e3)


def test_a_peer_that_fails_is_told_and_the_bench_goes_on():
    def broken():
        raise RuntimeError("no licence")

    for peer in (lambda: Peer("other 1.0", broken), broken):
        figure = figures.of_call(_call(peer), LIMITS, 2, True)
        assert "no licence" in figure.note
        assert figure.ratio is None
        assert len(figure.seconds) == 2


def test_a_slow_peer_is_timed_once(monkeypatch):
    runs = []
    monkeypatch.setattr(figures, "_PEER_SECONDS", -1.0)
    figure = figures.of_call(_call(lambda: Peer("other 1.0", lambda: runs.append(1))), LIMITS, 3, True)
    assert len(figure.peer_seconds) == 1
    assert len(runs) == 2, "once to warm up, once timed"
    monkeypatch.setattr(figures, "_PEER_SECONDS", 10.0)
    quick = _call(lambda: Peer("other 1.0", lambda: None))
    assert len(figures.of_call(quick, LIMITS, 3, True).peer_seconds) == 3
    assert figures.of_call(quick, LIMITS, 3, False).peer == ""


def test_every_call_has_a_name_and_counts_its_work():
    for quick in (False, True):
        some = whole_calls(INTEL, quick)
        assert {call.name for call in some} == set(call_names())
        assert all(call.count > 0 for call in some)
        assert len({(call.name, call.problem) for call in some}) == len(some)


def test_a_peer_that_is_not_installed_is_none(monkeypatch):
    monkeypatch.setattr(peers, "installed", lambda *packages: None)
    assert peers.kedm("xmap") is None
    assert peers.pyedm("CCM", {"x": [1.0]}) is None
    assert peers.pyrqa(INTEL, None, m=1, tau=1, radius=0.1) is None
    assert all(call.peer() is None for call in calls.whole_calls(INTEL, quick=True))


def test_a_kernel_shows_its_own_grade_and_a_call_those_of_all_its_kernels():
    grades = {"knn": ["exact"], "lookup": ["shipped", "exact"]}
    shown = {kind: run.line(figures.Figure(kind, "knn", "a problem", "pairs", 1.0, (1.0,), grades=grades))
             for kind in ("kernel", "call")}  # fmt: skip
    assert shown["kernel"].endswith("[exact]")
    assert shown["call"].endswith("[exact, shipped]")


@pytest.mark.parametrize(("rate", "text"), [(1.5e12, "1.5 Tpairs/s"), (999.0, "999 pairs/s"), (2e4, "20 kpairs/s")])
def test_rates_are_written_for_people(rate, text):
    assert run.rate_text(rate, "pairs/s") == text
