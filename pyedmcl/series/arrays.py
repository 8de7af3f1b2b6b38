"""Arrays of any library, on the host or a device, as arrays of NumPy, and back."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from ..device import memory as copies
from ..errors import InputError, shown

# One array from whatever holds it, on the host or on a device, without importing the library that it comes from.
#
# An object says by its methods how its values reach the host. Ways are tried in the order of :data:`_WAYS`; what none
# of them can read is refused with what each of them said. Values on a device are copied once: everything that is
# computed looks at all values on the host first, and the upload that follows is small beside the work.


Array: TypeAlias = npt.NDArray[Any]
# Of DLPack: the processor.
_HOST = (1, 0)


class _HostTensor:
    """An object with ``__dlpack__`` alone, as NumPy wants it: its values are where the processor reads them."""

    def __init__(self, held: Any) -> None:
        self._held = held

    def __dlpack__(self, **_: Any) -> Any:
        return self._held.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return _HOST


def to_array(data: Any, what: str) -> Array:
    """Anything that is one array, as NumPy sees it. Raises InputError, whatever the object's own methods raise."""
    if isinstance(data, np.ma.MaskedArray):
        if data.dtype.kind not in "fiub":
            raise InputError(f"{what}: a masked array must hold real numbers, this one holds {data.dtype}")
        kept: Any = np.float32 if data.dtype.kind == "f" and data.dtype.itemsize <= 4 else np.float64
        if data.dtype.kind in "iu" and beyond_float64(data.compressed()):
            kept = object
        return np.asarray(np.ma.filled(data.astype(kept), np.nan))
    if isinstance(data, np.ndarray):
        return data
    _refuse_raw_memory(data, what)
    failures: list[str] = []
    for name, applies, read in _WAYS:
        try:
            if applies(data):
                array = np.asarray(read(data))
                if name in _FROM_DEVICE:
                    copies.downloaded(array.nbytes)
                return _of_short_floats(array)
        except Exception as error:  # whatever the object's own methods raise
            failures.append(f"{name}: {type(error).__name__}: {error}")
    said = "; ".join(failures)
    kind = f"{type(data).__module__.partition('.')[0]}.{type(data).__name__}"
    if not failures or failures[0].startswith("sequence"):
        raise InputError(f"{what}: cannot be read as an array of numbers with equally long rows ({said})")
    raise InputError(
        f"{what}: a {kind} cannot be read as an array ({said[:300]}). Copy it to the host first, with the method of "
        "its library for that: .get(), .cpu().numpy(), .asnumpy(), .compute()"
    )


def beyond_float64(present: Any) -> bool:
    """Whether integers of any library have more digits than float64, so that objects of Python have to hold them."""
    return len(present) > 0 and max(-int(present.min()), int(present.max())) > 2**53


def _refuse_raw_memory(data: Any, what: str) -> None:
    """Memory of SYCL shows itself as bytes, whatever numbers it holds."""
    if hasattr(data, "get_usm_type") and not hasattr(data, "dtype"):
        raise InputError(
            f"{what}: a {type(data).__name__} is memory without a number type; give an array made of it, such as "
            "dpnp.ndarray(shape, dtype, buffer=memory), or numpy.frombuffer(memory, dtype) where the host may read it"
        )
    if isinstance(data, (bytes, bytearray)):
        raise InputError(f"{what}: {shown(data)} is bytes, not data; numpy.frombuffer(data, dtype) reads numbers")


def _has(*names: str) -> Callable[[Any], bool]:
    return lambda data: all(callable(getattr(data, name, None)) for name in names)


def _from(*roots: str) -> Callable[[Any], bool]:
    return lambda data: type(data).__module__.partition(".")[0] in roots


def _torch(data: Any) -> Any:
    """A tensor, with gradients or without, on any device; conjugates and negatives are written out."""
    host = data.detach().cpu()
    for name in ("resolve_conj", "resolve_neg"):
        host = getattr(host, name, lambda held=host: held)()
    try:
        return host.numpy()
    except TypeError:  # bfloat16, which NumPy does not know
        return host.float().numpy()


def _dlpack(data: Any) -> Any:
    if not hasattr(data, "__dlpack_device__"):
        return np.from_dlpack(_HostTensor(data))
    place = data.__dlpack_device__()
    if int(place[0]) == _HOST[0]:
        return np.from_dlpack(data)
    try:
        return np.from_dlpack(data, device="cpu")  # copied by the array's library
    except TypeError as error:  # NumPy before 2.1, or a library that copies nowhere
        raise TypeError(f"it lies on the device {tuple(map(int, place))} of DLPack ({error})") from error


def _opencl(data: Any) -> Any:
    """An array of PyOpenCL, with strides or without; its own copy to the host refuses those that have gaps."""
    if data.flags.forc or data.queue is None:  # without a queue its own words say what lacks
        return data.get()
    raw = np.empty(data.base_data.size, np.uint8)
    sys.modules["pyopencl"].enqueue_copy(data.queue, raw, data.base_data)
    return np.ndarray(data.shape, data.dtype, raw, data.offset, data.strides)


def _usm(data: Any) -> Any:
    """An array in memory of SYCL, by its description; dpctl is there, since the memory is."""
    described = data.__sycl_usm_array_interface__
    dtype, shape = np.dtype(described["typestr"]), tuple(described["shape"])
    memory = sys.modules["dpctl.memory"].as_usm_memory(data)
    raw = np.frombuffer(bytearray(memory.copy_to_host()), np.uint8)
    strides = described.get("strides")
    in_bytes = None if strides is None else tuple(step * dtype.itemsize for step in strides)
    # The memory begins with the first element that the array has, or with the first one that the allocation has.
    skipped = memory.__sycl_usm_array_interface__["data"][0] - described["data"][0]
    return np.ndarray(shape, dtype, raw, described.get("offset", 0) * dtype.itemsize - skipped, in_bytes)


def _cuda(data: Any) -> Any:
    raise TypeError("it lies on a GPU, and its library has no method that copies it to the host")


_WAYS: tuple[tuple[str, Callable[[Any], bool], Callable[[Any], Any]], ...] = (
    (".detach().cpu().numpy()", _has("detach", "cpu"), _torch),
    # These would be read number by number, or refuse on purpose to be read unasked.
    (".get()", lambda data: _from("pyopencl")(data) and _has("get", "with_queue")(data), _opencl),
    (".get()", lambda data: _from("cupy", "pycuda")(data) and _has("get")(data), lambda data: data.get()),
    (".asnumpy()", _has("asnumpy"), lambda data: data.asnumpy()),
    (".copy_to_host()", _has("copy_to_host"), lambda data: data.copy_to_host()),
    ("__array__", lambda data: hasattr(data, "__array__"), np.asarray),
    ("__dlpack__", _has("__dlpack__"), _dlpack),
    ("__sycl_usm_array_interface__", lambda data: hasattr(data, "__sycl_usm_array_interface__"), _usm),
    (".get()", lambda data: hasattr(data, "__cuda_array_interface__") and _has("get")(data), lambda data: data.get()),
    ("__cuda_array_interface__", lambda data: hasattr(data, "__cuda_array_interface__"), _cuda),
    ("sequence", lambda data: not _on_a_device(data), np.asarray),
)  # fmt: skip


_FROM_DEVICE = frozenset({".get()", ".asnumpy()", ".copy_to_host()", "__sycl_usm_array_interface__"})


def _on_a_device(data: Any) -> bool:
    """Whether an object has told that it is an array; it must not be read as a sequence of objects then."""
    names = ("__array__", "__dlpack__", "__cuda_array_interface__", "__sycl_usm_array_interface__", "detach")
    return _from("pyopencl", "cupy", "pycuda")(data) or any(hasattr(data, name) for name in names)


def _of_short_floats(values: Array) -> Array:
    """Numbers of a type that NumPy has only a name for (bfloat16) as float32."""
    if values.dtype.kind == "V" and values.dtype.names is None and "float" in values.dtype.name:
        return values.astype(np.float32)
    return values


# An array of the caller in device memory, as part of a result: it comes to the host when somebody looks at it.


class OnDevice(np.lib.mixins.NDArrayOperatorsMixin):
    """Stands for an array on a device. ``numpy.asarray``, indices and arithmetic copy all of it to the host.

    Parameters
    ----------
    array
        The caller's object, which is kept as ``array``.
    """

    __slots__ = ("array",)

    def __init__(self, array: Any) -> None:
        self.array = array

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self._told("shape", "shape"))

    @property
    def dtype(self) -> np.dtype[Any]:
        kind: np.dtype[Any] = np.dtype(self._told("typestr", "dtype"))
        return kind

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def _told(self, entry: str, attribute: str) -> Any:
        """What a description for other libraries says, since PyTorch has types of its own; else the array itself."""
        for protocol in ("__cuda_array_interface__", "__sycl_usm_array_interface__"):
            described = getattr(self.array, protocol, None)
            if described is not None:
                return described[entry]
        return getattr(self.array, attribute)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"OnDevice(shape={self.shape}, dtype={self.dtype})"

    def __getitem__(self, key: Any) -> Any:
        return np.asarray(self)[key]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("an array on a device cannot be turned into one of NumPy without a copy")
        values = to_array(self.array, "out")
        return values if dtype is None else values.astype(dtype, copy=False)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        host = [np.asarray(each) if isinstance(each, OnDevice) else each for each in inputs]
        return getattr(ufunc, method)(*host, **named)
