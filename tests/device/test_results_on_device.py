"""Results in arrays of the caller on a device (``out=``), without a copy to the host, and copies that are counted."""

from __future__ import annotations

import numpy as np
import pytest

import pyedmcl
from pyedmcl.device import opencl, runtimes, select
from pyedmcl.device.memory import counting
from pyedmcl.errors import InputError, WrongResultError
from pyedmcl.launch import staging

RNG = np.random.default_rng(8)
X = np.cumsum(RNG.standard_normal((150, 3)), axis=0)
X[40, 1] = np.nan
#: More than whatever is looked at beside a result: counters of what cannot be.
FEW = 16


class Usm:
    """An array in memory of SYCL, as dpnp's describe themselves."""

    def __init__(self, queue, shape, dtype, *, offset=0, read_only=False, strides=None):
        import dpctl

        nbytes = (offset + int(np.prod(shape))) * np.dtype(dtype).itemsize
        self.memory = dpctl.memory.MemoryUSMDevice(nbytes, queue=queue)
        data, _ = self.memory.__sycl_usm_array_interface__["data"]
        self.__sycl_usm_array_interface__ = {
            "data": (data, read_only), "shape": shape, "strides": strides, "typestr": np.dtype(dtype).str, "version": 1,
            "offset": offset, "syclobj": queue,
        }  # fmt: skip


class Caller:
    """A queue of the caller, and arrays on it."""

    def __init__(self, name):
        self.sycl = name.startswith("sycl")
        if self.sycl:
            from pyedmcl.device import sycl

            self.queue = runtimes.sycl().SyclQueue(sycl.handle(select.open_device(name).info))
        else:
            cl = runtimes.opencl()
            import pyopencl.array

            self.cl, self.array = cl, pyopencl.array
            self.context = cl.Context([opencl.handle(select.open_device(name).info)])
            self.queue = cl.CommandQueue(self.context)

    def empty(self, shape, dtype):
        return Usm(self.queue, shape, dtype) if self.sycl else self.array.empty(self.queue, shape, dtype)

    def behind(self, n, shape, dtype):
        """An array that begins behind ``n`` elements of its memory."""
        if self.sycl:
            return Usm(self.queue, shape, dtype, offset=n)
        return self.array.empty(self.queue, n + int(np.prod(shape)), dtype)[n:].reshape(shape)


@pytest.fixture(params=["opencl", "sycl"])
def caller(request, one_device):
    yield Caller(one_device if request.param == "opencl" else request.getfixturevalue("sycl_device"))
    select.close_all()


CASES = {
    "knn": (lambda named: pyedmcl.knn(X[:, 1], E=3, Tp=1, **named), ("indices", "distances")),
    "knn in float64": (lambda named: pyedmcl.knn(X[:, 1], E=2, query=X[:, 0], dtype="float64", **named),
                       ("indices", "distances")),
    "xmap": (lambda named: pyedmcl.xmap(X, E=[2, 3, 2], **named), ("rho",)),
    "xmap with targets": (lambda named: pyedmcl.xmap(X, targets=[1], dtype="float64", **named), ("rho",)),
    "recurrence_plot": (lambda named: pyedmcl.recurrence_plot(X[:, 0], m=2, radius=1.0, pixels=40, **named),
                        ("counts",)),
    "distance_plot": (lambda named: pyedmcl.distance_plot(X[:, 1] * 1e-30, m=2, pixels=40, **named), ("means",)),
    "distance_plot of two": (lambda named: pyedmcl.distance_plot(X[:90, 0], X[:, 2], pixels=(7, 11), **named),
                             ("means",)),
    "recurrence_plot of two": (lambda named: pyedmcl.recurrence_plot(X[:90, 0], X[:, 2], radius=1.0, **named),
                               ("counts",)),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_results_stay_on_the_device_with_the_same_bits(case, caller, one_device):
    call, names = CASES[case]
    expected = call({"device": one_device})
    arrays = [caller.behind(5, getattr(expected, name).shape, getattr(expected, name).dtype) for name in names]
    with counting() as copies:
        result = call({"out": arrays[0] if len(arrays) == 1 else arrays})
    assert copies.uploaded > 0
    assert copies.downloaded <= FEW + (24 * X.size if "targets" in case else 0)  # with its E found before, by its rho
    for name, array in zip(names, arrays, strict=True):
        assert getattr(result, name).array is array
        with counting() as copies:
            np.testing.assert_array_equal(np.asarray(getattr(result, name)), getattr(expected, name))
        assert (copies.downloads, copies.downloaded) == (1, getattr(expected, name).nbytes)
    assert "deliver" in result.provenance["kernels"] or "_plot" in case


def test_a_result_on_the_device_does_what_others_do(caller, tmp_path):
    array = caller.empty((3, 3), np.float32)
    result = pyedmcl.xmap(X, E=2, out=array)
    expected = pyedmcl.xmap(X, E=2)
    assert repr(result.rho) == "OnDevice(shape=(3, 3), dtype=float32)"
    np.testing.assert_array_equal(result.rho[1], expected.rho[1])
    np.testing.assert_array_equal(result.rho * 2 + 1, expected.rho * 2 + 1)
    assert result.edges(2) == expected.edges(2)
    kept = pyedmcl.open_result(result.save(tmp_path / "map.edm"))
    np.testing.assert_array_equal(kept.rho, expected.rho)


def test_the_caller_goes_on_with_the_result_on_its_queue(one_device):
    caller = Caller(one_device)
    rho = caller.empty((3, 3), np.float32)
    rho.fill(7)
    pyedmcl.xmap(X, E=2, out=rho, device=caller.queue)
    doubled = (rho + rho).get()
    np.testing.assert_array_equal(doubled, 2 * pyedmcl.xmap(X, E=2, device=one_device).rho)
    select.close_all()


def test_arrays_that_cannot_take_a_result_say_what_can(caller, one_device):
    shape, n = (150, 4), 150
    good = [caller.empty(shape, np.int32), caller.empty(shape, np.float32)]

    def refused(out, said, **named):
        with pytest.raises(InputError, match=said):
            pyedmcl.knn(X[:, 1], E=3, out=out, **named)

    refused(good[0], "arrays on the device are needed for indices, distances, and 1 were given")
    refused([np.empty(shape), np.empty(shape)], r"out= \(indices\): a pyopencl.array.Array, .* not a ndarray")
    refused([good[0], caller.empty((n, 3), np.float32)], r"\(distances\): it has the shape \(150, 3\)")
    refused([good[1], good[0]], "float32 numbers, the result has .* and int32")
    refused(good, "leave device= out", device=one_device)  # which has a context of ours
    refused(good, "groups=", groups=np.repeat([0, 1], n // 2))
    with pytest.raises(InputError, match="scale the data"):
        pyedmcl.knn(X[:, 1] * 1e-40, E=3, out=good)
    with pytest.raises(InputError, match=r"ndarray is no place for a map; .*or the path of a folder"):
        pyedmcl.xmap(X, E=2, out=np.empty((3, 3), np.float32))
    with pytest.raises(InputError, match="computed by that device alone"):
        pyedmcl.xmap(X, E=2, out=caller.empty((3, 3), np.float32), device=[one_device, caller.queue])
    with pytest.raises(InputError, match="plain maps of rho: leave out method='smap'"):
        pyedmcl.xmap(X, E=2, method="smap", out=caller.empty((3, 3), np.float32))


def test_memory_that_cannot_be_written_is_refused(one_device):
    caller = Caller(one_device)
    cl, array, queue = caller.cl, caller.array, caller.queue
    flipped = array.empty(queue, (3, 3), np.float32, order="F")
    with pytest.raises(InputError, match="another order than C's; give a contiguous one"):
        pyedmcl.xmap(X, E=2, out=flipped)
    fixed = cl.Buffer(queue.context, cl.mem_flags.READ_ONLY, 36)
    with pytest.raises(InputError, match="read-only; give memory that kernels may write"):
        pyedmcl.xmap(X, E=2, out=array.Array(queue, (3, 3), np.float32, data=fixed))
    lone = array.empty(queue, (3, 3), np.float32).with_queue(None)
    with pytest.raises(InputError, match=r"with_queue\(queue\)"):
        pyedmcl.xmap(X, E=2, out=lone)
    select.close_all()


def test_memory_of_sycl_that_cannot_be_written_is_refused(sycl_device):
    queue = Caller(sycl_device).queue
    with pytest.raises(InputError, match="read-only"):
        pyedmcl.xmap(X, E=2, out=Usm(queue, (3, 3), np.float32, read_only=True))
    with pytest.raises(InputError, match="give a contiguous one"):
        pyedmcl.xmap(X, E=2, out=Usm(queue, (3, 3), np.float32, strides=(1, 3)))
    select.close_all()


def test_answers_that_cannot_be_are_found_on_the_device(one_device, monkeypatch):
    caller = Caller(one_device)
    monkeypatch.setattr(staging, "MOST_RHO", 0.01)
    with pytest.raises(WrongResultError, match=r"correlations beyond 0.01 \(kernel lookup\)"):
        pyedmcl.xmap(X, E=2, out=caller.empty((3, 3), np.float32))
    executor = select.open_device(caller.queue)
    rows = executor.upload(np.array([0, 9, -2, -1], np.int32))
    squared = executor.upload(np.ones(4, np.float32))
    into = [staging.DeviceRows(executor.allocate(16), 0, (4,), np.dtype(kind)) for kind in (np.int32, np.float32)]
    with pytest.raises(WrongResultError, match="2 neighbours outside a library of 9 rows"):
        staging.deliver_neighbours(executor, rows, squared, into, n_library=9, exponent=0)
    select.close_all()


def test_copies_are_counted_while_somebody_asks(one_device):
    executor = select.open_device(one_device)
    array = np.zeros(10, np.float32)
    with counting() as outer:
        buffer = executor.upload(array)
        with counting() as inner:
            executor.download(buffer, array)
    executor.upload(array, buffer)
    assert (outer.uploads, outer.uploaded, outer.downloads, outer.downloaded) == (1, 40, 1, 40)
    assert (inner.uploads, inner.downloads) == (0, 1)
    assert str(outer) == "1 uploads of 40 bytes, 1 downloads of 40 bytes"
