"""PyRQA's series: values to be embedded, and vectors that are embedded already."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...series.reading import tell_of_numbers
from .exceptions import InconsistentDimensionalityException, UnsupportedDataTypeException

SUPPORTED_DATA_TYPES = (np.dtype("float16"), np.dtype("float32"), np.dtype("float64"))

Values = NDArray[np.floating[Any]]


class _Typed:
    """Data of one of three types; both can be set anew."""

    def __init__(self, data: Any, dtype: Any) -> None:
        self.dtype = dtype
        self.data = data

    @property
    def dtype(self) -> Any:
        """Type of the data."""
        return self._dtype

    @dtype.setter
    def dtype(self, dtype: Any) -> None:
        try:
            supported = np.dtype(dtype) in SUPPORTED_DATA_TYPES
        except TypeError:
            supported = False
        if not supported:
            raise UnsupportedDataTypeException(f"dtype={dtype!r}: numpy's float16, float32 or float64 is needed")
        self._dtype = dtype

    @property
    def data(self) -> Values:
        """The values, as a copy."""
        return self._data.astype(self.dtype)

    @data.setter
    def data(self, data: Any) -> None:
        try:
            self._data: Values = np.array(data, self.dtype)
        except ValueError as error:
            raise InconsistentDimensionalityException(
                f"data: an array of numbers is needed, all vectors of one dimension ({error})"
            ) from None
        if self._data.ndim in (1, 2):
            columns = np.atleast_2d(np.asarray(data).T)
            tell_of_numbers(columns.astype(np.float64), columns, ["data"] * len(columns))


class TimeSeries(_Typed):
    """A series to be embedded by the method of delays.

    Attributes
    ----------
    data : ndarray (n,)
    dtype : dtype
        float16, float32 or float64: what is computed in (float16 is rounded to, and computed in float32).
    embedding_dimension, time_delay : int
    """

    def __init__(
        self, data: Any, dtype: Any = np.float32, embedding_dimension: int = 2, time_delay: int = 2
    ) -> None:
        super().__init__(data, dtype)
        self.embedding_dimension = embedding_dimension
        self.time_delay = time_delay

    @property
    def length(self) -> int:
        """Number of values."""
        return len(self._data)

    @property
    def offset(self) -> int:
        """Values that a vector spans beyond its first."""
        return (self.embedding_dimension - 1) * self.time_delay

    @property
    def number_of_vectors(self) -> int:
        """Number of embedded vectors."""
        return max(self.length - self.offset, 0)

    def get_sub_columns(self, start: int, count: int) -> Values:
        """Coordinates (embedding_dimension, count) of some vectors."""
        begins = start + np.arange(self.embedding_dimension) * self.time_delay
        return np.array([self._data[begin : begin + count] for begin in begins], self.dtype)

    def get_sub_vectors_as_rows(self, start: int, count: int) -> Values:
        """Some vectors, one behind another."""
        return self.get_sub_columns(start, count).T.ravel()

    def get_vectors_as_rows(self) -> Values:
        """All vectors, one behind another."""
        return self.get_sub_vectors_as_rows(0, self.number_of_vectors)

    def get_sub_vectors_as_columns(self, start: int, count: int) -> Values:
        """Some vectors, one coordinate behind another."""
        return self.get_sub_columns(start, count).ravel()

    def get_sub_series(self, start: int, count: int) -> Values:
        """The values of some vectors."""
        return self.data[start : start + count + self.offset]


class EmbeddedSeries(_Typed):
    """Vectors.

    Attributes
    ----------
    data : ndarray (n, embedding_dimension)
    dtype : dtype
        As for :class:`TimeSeries`.
    """

    def __init__(self, data: Any, dtype: Any = np.float32) -> None:
        super().__init__(data, dtype)

    @property
    def embedding_dimension(self) -> int:
        """Coordinates of a vector."""
        if self._data.ndim != 2:
            raise InconsistentDimensionalityException(
                f"data: vectors of one dimension, shape (n, m), are needed; the shape is {self._data.shape}"
            )
        return int(self._data.shape[1])

    @property
    def number_of_vectors(self) -> int:
        """Number of vectors."""
        return len(self._data)

    def get_sub_vectors_as_rows(self, start: int, count: int) -> Values:
        """Some vectors, one behind another."""
        return self.data[start : start + count].ravel()

    def get_vectors_as_rows(self) -> Values:
        """All vectors, one behind another."""
        return self.data.ravel()

    def get_sub_vectors_as_columns(self, start: int, count: int) -> Values:
        """Some vectors, one coordinate behind another."""
        return self.data[start : start + count].T.ravel()
