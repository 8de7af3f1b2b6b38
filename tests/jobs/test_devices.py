"""Several devices share a job: the same bits as one, whatever each of them does; one that fails is left out."""

import threading

import numpy as np
import pytest

import pyedmcl
from pyedmcl.device import select
from pyedmcl.device.select import open_device
from pyedmcl.errors import DeviceMemoryError, DeviceNotFoundError, InputError, LaunchError
from pyedmcl.jobs.blocks import Record, cut, rows_of_a_block
from pyedmcl.jobs.runner import ArraySink, LocalRunner
from pyedmcl.simulate import coupled_maps


class Rows:
    """A problem whose rows hold their numbers; a device that is named in ``fails`` does not."""

    unit, operations = "rows", 1.0

    def __init__(self, n, fails=(), error=LaunchError, kernel=""):
        self.total, self.fails, self.error, self.kernel = n, fails, error, kernel
        self.computed, self.first = [], threading.Barrier(2)

    def size(self, block):
        return len(block)

    def blocks(self, devices=1):
        return cut(self.total, rows_of_a_block(self.total, 100, devices))

    def open(self, executor):
        return Engine(self, executor.info.id)


class Engine:
    def __init__(self, problem, device):
        self.problem, self.device, self.done = problem, device, 0

    def block(self, block, into, report):
        from pyedmcl.jobs.blocks import BlockResult

        if self.done == 0:
            self.problem.first.wait(30)  # both devices have a block
        self.done += 1
        if self.device in self.problem.fails:
            error = self.problem.error("the device is gone")
            error.kernel = self.problem.kernel
            raise error
        self.problem.computed.append((self.device, block.begin))
        into[0][:] = np.arange(block.begin, block.end)
        return BlockResult(into)

    def release(self):
        pass


class Alone(Rows):
    """The same, whose devices do not wait for each other."""

    def __init__(self, n):
        super().__init__(n)
        self.first = threading.Barrier(1)


class Device:
    def __init__(self, info, number):
        from dataclasses import replace

        self.info = replace(info, id=f"9:{number}")


@pytest.fixture
def pair(one_device):
    info = open_device(one_device).info
    return [Device(info, 0), Device(info, 1)]


def run(problem, pair):
    out = np.full(problem.total, -1)
    runner = LocalRunner(pair)
    runner.run(problem, ArraySink(problem.blocks(2), [out]))
    return out


def test_both_devices_work_and_every_row_is_there(pair):
    problem = Rows(1000)
    np.testing.assert_array_equal(run(problem, pair), np.arange(1000))
    assert {device for device, _ in problem.computed} == {"9:0", "9:1"}
    assert len(problem.computed) == 10


@pytest.mark.parametrize("error", [LaunchError, DeviceMemoryError])
def test_a_device_that_fails_is_left_out(pair, error):
    problem = Rows(800, fails=("9:1",), error=error)
    with pytest.warns(RuntimeWarning, match=r"device 9:1 is left out.*the device is gone"):
        np.testing.assert_array_equal(run(problem, pair), np.arange(800))
    assert {device for device, _ in problem.computed} == {"9:0"}
    assert sorted(begin for _, begin in problem.computed) == list(range(0, 800, 100))


def test_where_all_devices_fail_the_error_is_theirs(pair):
    with pytest.raises(LaunchError, match="the device is gone"):
        run(Rows(800, fails=("9:0", "9:1")), pair)


def test_what_a_kernel_caused_is_for_other_parameters_to_mend(pair):
    with pytest.raises(LaunchError) as raised:
        run(Rows(800, fails=("9:1",), kernel="knn"), pair)
    assert raised.value.kernel == "knn"


@pytest.mark.parametrize(("n", "devices", "rows"), [(5000, 1, 1024), (5000, 2, 625), (100_000, 2, 1024), (3, 2, 1)])
def test_blocks_are_small_enough_for_all_devices(n, devices, rows):
    assert rows_of_a_block(n, 1024, devices) == rows


@pytest.fixture(scope="module")
def values():
    return coupled_maps(n_series=23, n_steps=300).values


@pytest.fixture
def twins(one_device, monkeypatch):
    """The same device twice, as two of a kind would be."""
    from dataclasses import replace

    executor = open_device(one_device)

    class Twin:
        info = replace(executor.info, id="9:9")

        def __getattr__(self, name):
            return getattr(executor, name)

    monkeypatch.setattr("pyedmcl.states.arguments.open_devices", lambda request: [executor, Twin()])
    return one_device


CALLS = {
    "xmap": lambda x, **more: pyedmcl.xmap(x, E=3, **more).rho,
    "mixed": lambda x, **more: pyedmcl.xmap(x, E="auto", E_max=4, **more).rho,
    "embed_dimension": lambda x, **more: pyedmcl.embed_dimension(x, E_max=5, **more).rho,
    "ccm_matrix": lambda x, **more: np.stack(
        pyedmcl.ccm_matrix(x[:, :6], E=2, lib_sizes=[20, 60], sample=7, seed=3, **more).matrices
    ),
    "multiview": lambda x, **more: pyedmcl.multiview(x[:, :4], 0, D=2, E=2, **more).view_predictions,
}


@pytest.mark.parametrize("name", CALLS)
def test_two_of_a_kind_give_the_bits_of_one(values, one_device, request, name):
    wanted = CALLS[name](values, device=one_device)
    request.getfixturevalue("twins")
    np.testing.assert_array_equal(CALLS[name](values), wanted)


def test_a_store_of_two_of_a_kind_is_that_of_one(values, twins, tmp_path, monkeypatch):
    both = pyedmcl.xmap(values, E=3, out=tmp_path / "both")
    monkeypatch.undo()
    one = pyedmcl.xmap(values, E=3, out=tmp_path / "one", device=twins)
    np.testing.assert_array_equal(np.asarray(both.rho), np.asarray(one.rho))
    pyedmcl.xmap(values, E=3, out=tmp_path / "both", device=twins)  # the device of the store is this one


def different():
    chosen = [choice.device.id for choice in map(select.select, ("intel-cpu", "pocl"))]
    return chosen if len(set(chosen)) == 2 else None


@pytest.fixture
def unlike():
    try:
        return different()
    except DeviceNotFoundError:
        pytest.skip("two runtimes are needed")


@pytest.mark.parametrize("name", CALLS)
def test_unlike_devices_give_the_bits_of_each(values, unlike, name):
    """Drivers, default parameters and the split into blocks differ."""
    alone = [CALLS[name](values, device=device) for device in unlike]
    np.testing.assert_array_equal(alone[0], alone[1])
    np.testing.assert_array_equal(CALLS[name](values, device=unlike), alone[0])


def test_unlike_devices_make_the_store_of_one(values, unlike, tmp_path):
    both = pyedmcl.xmap(values, E=3, device=unlike, out=tmp_path / "both")
    assert "blocks" not in both.provenance
    assert both.provenance["device_ids"] == unlike
    one = pyedmcl.xmap(values, E=3, device=unlike[1], out=tmp_path / "one")
    np.testing.assert_array_equal(np.asarray(both.rho), np.asarray(one.rho))


def test_where_bits_depend_on_devices_these_must_be_alike(values, unlike):
    """S-map's solves do; a result says which device computed which rows, and a store is refused."""
    runner = LocalRunner([open_device(device) for device in unlike])
    runner.run(rows := Alone(400), ArraySink(rows.blocks(2), [np.empty(400)]))
    blocks = runner.provenance(["knn", "smap"], Record())["blocks"]
    assert sorted(row for block in blocks for row in range(block["begin"], block["end"])) == list(range(400))
    assert {block["device_id"] for block in blocks} <= set(unlike)
    assert "blocks" not in runner.provenance(["knn", "lookup"], Record())
    assert runner.alike(["knn", "lookup"]).id == unlike[0]
    with pytest.raises(InputError, match="devices of one kind"):
        runner.alike(["knn", "smap"])
