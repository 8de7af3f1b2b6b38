"""An array of the caller in device memory, as part of a result: it comes to the host when somebody looks at it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data.intake import to_array


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
