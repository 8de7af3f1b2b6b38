"""``client=``: other processes compute the blocks; the same bits, whatever they are, and whatever becomes of them."""

import contextlib
import os
import pickle
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np
import pytest
from client_helpers import Deadly, Plain, Silent, loky_pool, spawned

import pyedmcl
from pyedmcl.errors import ClientError, InputError, Interrupted
from pyedmcl.jobs import client as answers
from pyedmcl.jobs import client as clients
from pyedmcl.jobs import runner
from pyedmcl.jobs.client import ClientRunner, DaskPool, SubmitPool, pool_of
from pyedmcl.jobs.runner import ArraySink
from pyedmcl.jobs.worker import compute, identity, spooled

CALLS = {
    "xmap": lambda x, **more: pyedmcl.xmap(x, E=3, **more).rho,
    "mixed": lambda x, **more: pyedmcl.xmap(x, E="auto", E_max=4, **more).rho,
    "embed_dimension": lambda x, **more: pyedmcl.embed_dimension(x, E_max=5, **more).rho,
    "ccm_matrix": lambda x, **more: np.stack(
        pyedmcl.ccm_matrix(x[:, :6], E=2, lib_sizes=[20, 60], sample=7, seed=3, **more).matrices
    ),
    "multiview": lambda x, **more: pyedmcl.multiview(x[:, :4], 0, D=2, E=2, **more).view_predictions,
    "xmap_significance": lambda x, **more: pyedmcl.xmap_significance(x[:, :4], E=2, n=5, seed=1, **more).p_value,
    "ccm_significance": lambda x, **more: pyedmcl.ccm_significance(
        x[:, 0], x[:, 1], E=2, n=5, seed=1, **more
    ).surrogates,
    "causal_network": lambda x, **more: pyedmcl.causal_network(
        x[:, :3], E=[2, 3, 2], lags=(-1, 0), n=9, seed=2, partial=False, **more
    ).rho,
    "rqa": lambda x, **more: pyedmcl.rqa(x[:, 0], m=2, radius=0.2, **more).counts.diagonals,
    "joint_rqa": lambda x, **more: pyedmcl.joint_rqa(x[:, 0], x[:, 1], m=2, radius=0.2, **more).counts.verticals,
    "windowed_rqa": lambda x, **more: [
        found.determinism for found in pyedmcl.windowed_rqa(x[:, 0], 100, 50, m=2, radius=0.2, **more)
    ],
    "rqa_batch": lambda x, **more: pyedmcl.rqa_batch(x, m=2, radius=[0.2, 0.4], **more).measure("ENTR"),
}


@pytest.fixture(scope="module", params=["dask", "spawned", "loky"])
def client(request):
    if request.param == "dask":
        yield request.getfixturevalue("dask")
        return
    pool = spawned() if request.param == "spawned" else loky_pool()
    yield pool
    pool.shutdown()


def test_a_cluster_gives_the_bits_of_one_process(client, values, one_device):
    for name in ("mixed", "ccm_matrix", "rqa"):
        wanted = CALLS[name](values, device=one_device)
        np.testing.assert_array_equal(CALLS[name](values, device=one_device, client=client), wanted, err_msg=name)


@pytest.mark.parametrize("name", CALLS)
def test_every_function_that_takes_a_client(name, values, one_device):
    wanted = CALLS[name](values, device=one_device)
    np.testing.assert_array_equal(CALLS[name](values, device=one_device, client=Plain()), wanted)


def test_where_a_result_comes_from(values, one_device):
    alone = pyedmcl.xmap(values, E=3, device=one_device).provenance
    there = pyedmcl.xmap(values, E=3, device=one_device, client=Plain()).provenance
    assert there["workers"] and there["tuning"] == alone["tuning"] and there["device_key"] == alone["device_key"]
    assert there["parameters"] == alone["parameters"]


def test_tasks_are_small_and_hold_no_data(values, one_device):
    client = Plain()
    pyedmcl.xmap(values, E=3, device=one_device, client=client)
    assert max(len(pickle.dumps(task)) for task in client.tasks) < 4000 < values.nbytes


def test_nothing_is_left_behind(values, one_device, tmp_path, monkeypatch):
    monkeypatch.setenv("PYEDMCL_SPOOL_DIR", str(tmp_path))
    client = Plain()
    pyedmcl.embed_dimension(values, E_max=5, device=one_device, client=client)
    assert client.tasks[-1]["path"].startswith(str(tmp_path)) and not list(tmp_path.iterdir())


# Workers that cannot be used


@pytest.mark.parametrize("client", [3, "tcp://nowhere", ThreadPoolExecutor, object()])
def test_what_is_no_client_is_refused(client, values):
    with pytest.raises(InputError, match="client="):
        pyedmcl.xmap(values, E=3, client=client)


def test_a_client_without_workers_is_waited_for_and_given_up(values, monkeypatch):
    monkeypatch.setenv("PYEDMCL_CLIENT_TIMEOUT", "0.5")
    silent = Silent()
    with (
        pytest.warns(RuntimeWarning, match="no worker of client= has answered"),
        pytest.raises(ClientError, match="PYEDMCL_CLIENT_TIMEOUT"),
    ):
        pyedmcl.xmap(values, E=3, client=silent)
    assert silent.cancelled == 1


def test_workers_that_all_go_away_are_waited_for_and_given_up(one_device, tmp_path, monkeypatch):
    monkeypatch.setenv("PYEDMCL_CLIENT_TIMEOUT", "0.5")
    problem, client, silent = Deadly(6, str(tmp_path)), Plain(), Silent()
    runs = ClientRunner(client, one_device)
    monkeypatch.setattr(SubmitPool, "workers", lambda self: 0)
    client.submit = silent.submit
    with (
        pytest.warns(RuntimeWarning, match=r"there has been no worker of client= for .* s; waiting up to"),
        pytest.raises(ClientError, match="there has been no worker of client= for"),
    ):
        runs.run(problem, ArraySink(problem.blocks(), [np.empty(6)]))
    assert silent.cancelled


def test_a_worker_with_another_pyedmcl_is_refused(values, monkeypatch):
    for module in (clients, answers):
        monkeypatch.setattr(module, "identity", lambda: {**identity(), "version of pyedmcl": "0.0.7"})
    with pytest.raises(ClientError, match=rf"version of pyedmcl is {pyedmcl.__version__} there and 0\.0\.7 here"):
        pyedmcl.xmap(values, E=3, client=Plain())


def without(number, answer):
    raise ModuleNotFoundError("No module named 'pyedmcl'")


def test_a_worker_without_pyedmcl_is_refused(values):
    with pytest.raises(ClientError, match="has no pyedmcl; install it there"):
        pyedmcl.xmap(values, E=3, client=Plain(without))


def test_a_worker_without_such_a_device_is_named(values):
    with pytest.raises(pyedmcl.errors.DeviceNotFoundError, match=rf"(?s)no such thing.*on worker .*:{os.getpid()}\)"):
        pyedmcl.xmap(values, E=3, device="no such thing", client=Plain())


def elsewhere(task):
    return {**task, "path": "/no/such/file"} if "path" in task else task


def test_dask_brings_a_problem_that_workers_do_not_see(dask, values, one_device, monkeypatch):
    submit = DaskPool.submit
    monkeypatch.setattr(DaskPool, "submit", lambda self, task, *more: submit(self, elsewhere(task), *more))
    found = pyedmcl.xmap(values, E=3, device=one_device, client=dask).rho
    np.testing.assert_array_equal(found, pyedmcl.xmap(values, E=3, device=one_device).rho)


def test_others_are_told_to_name_a_folder_that_workers_see(values, one_device):
    client = Plain()
    client.submit = lambda function, task: Plain.submit(client, function, elsewhere(task))
    with pytest.raises(ClientError, match=r"do not see .*PYEDMCL_SPOOL_DIR"):
        pyedmcl.xmap(values, E=3, device=one_device, client=client)


# One job, one set of parameters


def test_a_worker_with_other_parameters_computes_again_with_those_of_the_job(values, one_device):
    def tuned_otherwise(number, answer):
        if number == 2:  # the second with blocks: what the first one answers is the job's
            answer["answers"] = {question: {"row_lanes": 99} for question in answer["answers"]}
        return answer

    client = Plain(tuned_otherwise, threads=1)
    found = pyedmcl.xmap(values, E=3, device=one_device, client=client).rho
    np.testing.assert_array_equal(found, pyedmcl.xmap(values, E=3, device=one_device).rho)
    blocks = [block[0] for task in client.tasks[1:] for block in task["blocks"]]
    assert len(blocks) > len(set(blocks))


def test_ctrl_c_keeps_what_is_finished(values, one_device, tmp_path):
    def stop(done, total, unit):
        if done:
            raise KeyboardInterrupt

    client = Plain()
    with pytest.raises(Interrupted, match=r"blocks of .* are finished and kept"):
        pyedmcl.xmap(values, E=3, device=one_device, client=client, out=tmp_path / "out", progress=stop)
    assert not [name for name in os.listdir(tmp_path / "out") if "spool" in name]


@pytest.mark.parametrize("same_bits", [True, False])
def test_a_store_takes_blocks_of_one_kind_of_device_where_bits_differ(
    values, one_device, tmp_path, monkeypatch, same_bits
):
    from dataclasses import replace

    monkeypatch.setattr(runner, "_same_bits", lambda kernels: same_bits)

    def other(number, answer):
        return {**answer, "device": replace(answer["device"], name="another")} if number == 2 else answer

    with contextlib.nullcontext() if same_bits else pytest.raises(InputError, match="devices of one kind"):
        pyedmcl.xmap(values, E=3, device=one_device, client=Plain(other), out=tmp_path / "out")


# What Dask offers beyond submit


class FakeDask:
    __module__ = "distributed.client"

    def __init__(self, resources):
        self.resources, self.given = resources, []

    def scheduler_info(self, n_workers=5):
        workers = {str(number): {"nthreads": 4, "resources": self.resources} for number in range(7)}
        return {"workers": dict(list(workers.items())[: n_workers if n_workers > 0 else None])}

    def nthreads(self):
        return {}

    def submit(self, function, *given, **more):
        self.given.append(more)


@pytest.mark.parametrize(("resources", "workers"), [({}, 28), ({"GPU": 2.0}, 14)])
def test_dask_is_asked_for_gpus_where_it_offers_them(resources, workers):
    client = FakeDask(resources)
    pool = pool_of(client)
    assert pool.workers() == workers
    pool.submit({}, "xmap-01-2")
    assert client.given == [
        {"key": "pyedmcl-xmap-01-2", "pure": False} | ({"resources": {"GPU": 1}} if resources else {})
    ]


def test_compute_says_what_fails(one_device):
    task = {"identity": identity(), "device": one_device, "problem": "no digest", "path": __file__}
    assert "holds something else" in compute(task)["unseen"]
    assert isinstance(compute(task, b"")["unseen"], str)
    assert isinstance(compute({"identity": identity(), "device": 3})["failure"], InputError)
    assert compute({"identity": {}, "device": None})["refused"] == identity()


def test_each_process_has_a_spooled_problem_of_its_own(tmp_path):
    """Several share the folder of a result: who ends first leaves what the workers of others still need."""
    problem = ("the", "same")
    with ExitStack() as stack:
        files = [stack.enter_context(spooled(problem, tmp_path)) for _ in range(3)]
        assert len({file.path for file in files}) == 3 and len({file.digest for file in files}) == 1
        with spooled(problem, tmp_path) as other:
            pass
        assert not other.path.exists() and all(file.path.exists() for file in files)
    assert not list(tmp_path.iterdir())
