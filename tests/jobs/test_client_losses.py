"""``client=`` where workers die, at any moment: the same bits, and nothing that is stored is lost."""

import contextlib
import json
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from client_helpers import Deadly, Plain, PlainFuture, loky_pool, spawned

import pyedmcl
from pyedmcl.errors import ClientError
from pyedmcl.jobs.client import ClientRunner, DaskPool, SubmitPool
from pyedmcl.jobs.runner import ArraySink


def test_a_worker_of_dask_that_is_killed_costs_nothing(dask, values, one_device, tmp_path, small_blocks):
    wanted = pyedmcl.xmap(values, E=3, device=one_device)
    pids = set(dask.run(os.getpid).values())

    def kill(done, total, unit):
        if done and pids:
            os.kill(pids.pop(), signal.SIGKILL)
            pids.clear()

    found = pyedmcl.xmap(values, E=3, device=one_device, client=dask, progress=kill, out=tmp_path / "out")
    assert not pids
    np.testing.assert_array_equal(np.asarray(found.rho), wanted.rho)


def test_a_client_and_another_process_share_a_store_while_a_worker_is_killed(
    dask, values, one_device, tmp_path, small_blocks
):
    call = {"E": 3, "device": one_device, "out": tmp_path / "out", "join": True}
    pids, others = set(dask.run(os.getpid).values()), []

    def kill(done, total, unit):
        if done and pids:
            others.append(threads.submit(pyedmcl.xmap, values, **call))
            os.kill(pids.pop(), signal.SIGKILL)
            pids.clear()

    with ThreadPoolExecutor(1) as threads:
        found = pyedmcl.xmap(values, client=dask, progress=kill, **call)
        other = others[0].result()
    wanted = pyedmcl.xmap(values, E=3, device=one_device).rho
    for one in (found, other, pyedmcl.open_xmap(tmp_path / "out")):
        np.testing.assert_array_equal(np.asarray(one.rho), wanted)
    assert not list((tmp_path / "out").rglob(".pyedmcl-*"))
    journal = (tmp_path / "out" / "rho" / "blocks.jsonl").read_text().splitlines()
    assert [json.loads(line)["block"] for line in journal] == list(range(23))


def test_what_a_pool_that_broke_had_claimed_is_computed_by_others(values, one_device, tmp_path, small_blocks):
    call = {"E": 3, "device": one_device, "out": tmp_path / "out", "join": True}
    with loky_pool() as pool:

        def kill(done, total, unit):
            if 0 < done < total:
                for pid in list(pool._processes):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)

        with pytest.raises(ClientError, match=r"(?s)pool of client= is broken.*Of the job, \d+ of 23 blocks"):
            pyedmcl.xmap(values, client=pool, progress=kill, **call)
    found = pyedmcl.xmap(values, client=Plain(), **call)
    np.testing.assert_array_equal(np.asarray(found.rho), pyedmcl.xmap(values, E=3, device=one_device).rho)


def test_a_task_may_kill_four_workers_over(dask, one_device, tmp_path):
    problem, out = Deadly(6, str(tmp_path), fatal=3, kills=4), np.full(6, -1)
    ClientRunner(dask, one_device).run(problem, ArraySink(problem.blocks(), [out]))
    np.testing.assert_array_equal(out, np.arange(6))
    assert len(list(tmp_path.iterdir())) == 4


def test_a_pool_that_breaks_keeps_what_is_stored(values, one_device, tmp_path, small_blocks):
    calls = {"E": 3, "device": one_device, "out": tmp_path / "out"}
    with spawned(1) as pool:

        def kill(done, total, unit):
            if 0 < done < total:
                for process in list(pool._processes.values()):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(process.pid, signal.SIGKILL)

        with pytest.raises(ClientError, match=r"pool of client= is broken.*Of the job, \d+ of \d+ blocks"):
            pyedmcl.xmap(values, client=pool, progress=kill, **calls)
    found = pyedmcl.xmap(values, client=Plain(), **calls)
    np.testing.assert_array_equal(np.asarray(found.rho), pyedmcl.xmap(values, E=3, device=one_device).rho)


def test_a_result_that_is_lost_before_it_is_fetched_is_waited_for(one_device, tmp_path, monkeypatch):
    """As Dask has it: a future that was finished is no more, since its worker died with what it gave."""
    monkeypatch.setattr(SubmitPool, "result", DaskPool.result)
    waited = []

    class Fleeting(PlainFuture):
        def __init__(self, future):
            self.future, self.asked = future, 0
            self.done = lambda: future.done() and self.asked != 1

        def result(self, timeout=None):
            self.asked += 1
            if self.asked < 2:
                waited.append(self)
                threading.Timer(0.1, self.found).start()
                raise TimeoutError
            return self.future.result()

        def found(self):
            self.asked = 2

    monkeypatch.setattr("client_helpers.PlainFuture", Fleeting)
    problem, out = Deadly(6, str(tmp_path)), np.full(6, -1)
    client = Plain()
    ClientRunner(client, one_device).run(problem, ArraySink(problem.blocks(), [out]))
    np.testing.assert_array_equal(out, np.arange(6))
    blocks = [block[0] for task in client.tasks[1:] for block in task["blocks"]]
    assert len(waited) == len(client.tasks) and sorted(blocks) == list(range(6)), "no task was given out twice"


def lost(number, answer):
    raise ConnectionResetError("the line is dead")


def test_a_block_that_is_always_lost_ends_the_run_by_its_name(one_device, tmp_path):
    problem = Deadly(2, str(tmp_path))
    client = Plain(lambda number, answer: answer if number == 0 or answer["results"][0].arrays[0][0] else lost(0, 0))
    with pytest.raises(ClientError, match=r"block 0 \(rows 0 to 1\) was lost 5 times.*the line is dead"):
        ClientRunner(client, one_device).run(problem, ArraySink(problem.blocks(), [np.empty(2)]))
