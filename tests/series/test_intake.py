"""Arrays of other libraries, as these behave: on a device, with gradients, lazy, with a capsule alone."""

from __future__ import annotations

import sys

import numpy as np
import pandas
import pytest

import pyedmcl
from pyedmcl.errors import InputError
from pyedmcl.series.arrays import to_array
from pyedmcl.series.series import as_series

VALUES = np.random.default_rng(2).random((40, 3)).astype(np.float32)


class Tensor:
    """A tensor that requires gradients, on a GPU: NumPy is refused until both are left behind."""

    def __init__(self, values, *, gradients=True, on_gpu=True, kind=np.float32):
        self.values, self.gradients, self.on_gpu, self.kind = values, gradients, on_gpu, kind

    def __array__(self, *_, **__):
        raise RuntimeError("Can't call numpy() on a tensor that requires grad")

    def detach(self):
        return Tensor(self.values, gradients=False, on_gpu=self.on_gpu, kind=self.kind)

    def cpu(self):
        return Tensor(self.values, gradients=self.gradients, on_gpu=False, kind=self.kind)

    def float(self):
        return Tensor(self.values, gradients=self.gradients, on_gpu=self.on_gpu)

    def numpy(self):
        if self.gradients or self.on_gpu:
            raise RuntimeError("not here")
        if self.kind is None:
            raise TypeError("unsupported type bfloat16")
        return self.values


class OnGpu:
    """Memory of a GPU, which the library copies to the host where it is asked for the host."""

    def __init__(self, values, place=(2, 0)):
        self.values, self.place = values, place

    def __dlpack_device__(self):
        return self.place

    def __dlpack__(self, *, dl_device=None, **options):
        if dl_device != (1, 0):
            raise BufferError("it lies on a GPU")
        return self.values.__dlpack__()


class CapsuleWithoutPlace:
    def __init__(self, values):
        self.values = values

    def __dlpack__(self, **_):
        return self.values.__dlpack__()


class Cupy:
    """Refuses to be read unasked, as CuPy's arrays do."""

    __module__ = "cupy"
    def __init__(self, values):
        self.values = values

    @property
    def __cuda_array_interface__(self):
        return {"shape": (1,), "typestr": "<f4", "data": (0, False), "version": 3}

    def __array__(self, *_, **__):
        raise TypeError("implicit conversion is not allowed; use .get()")

    def get(self):
        return self.values


class Dpnp(Cupy):
    __module__ = "dpnp"
    get = None

    def asnumpy(self):
        return self.values


class Numba(Cupy):
    __module__ = "numba.cuda"
    get = None

    def copy_to_host(self):
        return self.values


HOLDERS = {
    "a tensor with gradients": Tensor, "a tensor of bfloat16": lambda values: Tensor(values, kind=None),
    "CUDA": OnGpu, "ROCm": lambda values: OnGpu(values, (10, 0)), "oneAPI": lambda values: OnGpu(values, (14, 0)),
    "a capsule without a place": CapsuleWithoutPlace, "CuPy": Cupy, "dpnp": Dpnp, "Numba": Numba,
}  # fmt: skip


@pytest.mark.parametrize("name", HOLDERS)
def test_values_of_other_libraries_are_read(name):
    for values in (VALUES, VALUES[::2, 1], VALUES.T[:, ::3].T):
        if name == "oneAPI" and np.lib.NumpyVersion(np.__version__) < "2.1.0":
            pytest.skip("NumPy before 2.1 does not ask for a copy on the host")
        held = HOLDERS[name](values)
        np.testing.assert_array_equal(to_array(held, "data"), values)
        assert as_series(held).values.dtype == np.float32
    mask = np.arange(40) < 30
    got = pyedmcl.embed({"x": HOLDERS[name](VALUES[:, 0]), "y": VALUES[:, 1]}, E=1)
    np.testing.assert_array_equal(got.values[:, 0], VALUES[:, 0])
    assert to_array(HOLDERS[name](mask.astype(np.uint8)), "mask").sum() == 30


def test_masks_and_batches_are_read_too(one_device):
    mask = np.arange(40) < 30
    x = VALUES[:, 0]
    got = pyedmcl.simplex(Tensor(x), E=2, valid_lib=Cupy(mask), device=one_device, tune="never")
    expected = pyedmcl.simplex(x, E=2, valid_lib=mask, device=one_device, tune="never")
    np.testing.assert_array_equal(got.predicted, expected.predicted)
    one, other = (pyedmcl.rqa_batch(data, radius=0.3, device=one_device) for data in (Cupy(VALUES.T), VALUES.T))
    assert one.to_frame().equals(other.to_frame())


def test_an_array_of_pyopencl_is_read(one_device):
    array = pytest.importorskip("pyopencl.array")
    from pyedmcl.device.select import open_device

    executor = open_device(one_device)
    for values in (VALUES, VALUES.astype(np.float64)[:, 1].copy()):
        held = array.to_device(executor._queue, values)
        np.testing.assert_array_equal(as_series(held).values.reshape(values.shape), values)


def test_an_array_of_pyopencl_with_gaps_is_read_and_one_out_of_reach_refused(one_device):
    array = pytest.importorskip("pyopencl.array")
    from pyedmcl.device.select import open_device

    queue = open_device(one_device)._queue
    held = array.to_device(queue, VALUES)
    for part in (np.s_[2::3], np.s_[:, 1], np.s_[1:, ::2]):
        np.testing.assert_array_equal(to_array(held[part], "x"), VALUES[part])
    with pytest.raises(InputError, match=r"cannot be read as an array .*queue"):
        to_array(held.with_queue(None), "x")
    cl = sys.modules["pyopencl"]
    hidden = cl.Buffer(queue.context, cl.mem_flags.READ_ONLY | cl.mem_flags.HOST_NO_ACCESS, VALUES.nbytes)
    with pytest.raises(InputError, match="cannot be read as an array"):
        to_array(array.Array(queue, VALUES.shape, VALUES.dtype, data=hidden), "x")


def test_dask_arrays_and_frames_are_computed():
    dask = pytest.importorskip("dask.array", reason="dask is not installed; pip install 'pyedmcl[test]' brings it")
    np.testing.assert_array_equal(as_series(dask.from_array(VALUES, chunks=(10, 3))).values, VALUES)

    class Frame:
        columns = ("a", "b", "c")

        def compute(self):
            return pandas.DataFrame(VALUES, columns=self.columns)

    series = as_series(Frame())
    assert series.names == ("a", "b", "c")
    np.testing.assert_array_equal(series.values, VALUES)


def test_tables_of_libraries_that_we_do_not_know_are_read():
    class Frame:
        columns = ("a", "b", "c")

        def to_pandas(self):
            return pandas.DataFrame(VALUES, columns=self.columns)

    assert as_series(Frame()).names == ("a", "b", "c")
    pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed; pip install 'pyedmcl[io]' brings it")
    table = pyarrow.table({"u": VALUES[:, 0], "v": VALUES[:, 1]})

    class Stream:
        def __arrow_c_stream__(self, requested_schema=None):
            return table.__arrow_c_stream__(requested_schema)

    series = as_series(Stream())
    assert series.names == ("u", "v")
    np.testing.assert_array_equal(series.values, VALUES[:, :2])


def test_what_cannot_be_read_says_what_to_do():
    class Alone:
        __cuda_array_interface__ = Cupy.__cuda_array_interface__

    class Broken:
        def __array__(self, *_, **__):
            raise RuntimeError("the device is gone")

    class MemoryUSMShared(bytearray):
        def get_usm_type(self):
            return "shared"

    for held, said in ((Alone(), r"on a GPU.*Copy it to the host first"),
                       (Broken(), "RuntimeError: the device is gone"), (OnGpu(VALUES.astype(np.complex64)), "complex"),
                       (bytearray(16), r"bytes, not data; numpy\.frombuffer"),
                       (MemoryUSMShared(16), "memory without a number type")):  # fmt: skip
        with pytest.raises(InputError, match=said) as caught:
            as_series(held)
        assert len(str(caught.value)) < 600


def test_no_library_is_imported_for_an_array():
    before = {name.partition(".")[0] for name in sys.modules}
    for make in HOLDERS.values():
        to_array(make(VALUES), "data")
    assert {name.partition(".")[0] for name in sys.modules} - before <= {"ml_dtypes"}


def test_memory_of_sycl_is_read_with_its_strides(sycl_device):
    import dpctl.memory

    from pyedmcl.device.select import open_device

    executor = open_device(sycl_device)

    class Array:
        def __init__(self, memory, shape, strides, offset):
            self.__sycl_usm_array_interface__ = {
                **memory.__sycl_usm_array_interface__, "shape": shape, "strides": strides, "offset": offset,
                "typestr": "<f4",
            }  # fmt: skip

    memory = dpctl.memory.MemoryUSMDevice(VALUES.nbytes, queue=executor._queue)
    executor._queue.memcpy(memory, VALUES, VALUES.nbytes)
    np.testing.assert_array_equal(to_array(Array(memory, (40, 3), None, 0), "data"), VALUES)
    np.testing.assert_array_equal(to_array(Array(memory, (20,), (6,), 1), "data"), VALUES[::2, 1])
    np.testing.assert_array_equal(to_array(Array(memory, (5,), (-3,), 14), "data"), VALUES[4::-1, 2])
    shared = dpctl.memory.MemoryUSMShared(64, queue=executor._queue)
    with pytest.raises(InputError, match="memory without a number type"):
        pyedmcl.knn(shared, E=1)


class Delayed:
    """What Dask will compute: it has whatever one asks for, and is neither true nor false."""

    __module__ = "dask.delayed"

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return self

    def __call__(self):
        return self

    def __bool__(self):
        raise TypeError("Truth of Delayed objects is not supported")

    def compute(self):
        return VALUES


class Sparse:
    """A matrix that holds what is not zero."""

    shape, ndim, dtype = VALUES.shape, 2, VALUES.dtype

    def toarray(self):
        return VALUES


@pytest.mark.parametrize(("data", "said"), [
    (Delayed(), r"data: a dask Delayed has no array of values; call \.compute\(\) first"),
    (Sparse(), r"a \w+ Sparse has no array of values; call \.toarray\(\) first"),
    ((row for row in VALUES), r"generator can be read only once; pass list\(\.\.\.\) of it"),
])  # fmt: skip
def test_what_holds_no_values_says_how_to_get_them(data, said):
    with pytest.raises(InputError, match=said):
        pyedmcl.xmap(data, E=2)
