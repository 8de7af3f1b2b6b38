"""PyRQA's metrics, also for pairs of vectors on the host."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Doubles = NDArray[np.float64]


class Metric:
    """A distance between vectors.

    Attributes
    ----------
    name : str
    native : str
        Its name in :func:`pyedmcl.rqa`.
    """

    name = "metric"
    native = ""

    @classmethod
    def is_symmetric(cls) -> bool:
        """Whether both directions are equally long."""
        return True

    @classmethod
    def get_p(cls) -> float:
        """The p of the norm."""
        raise NotImplementedError(f"{cls.__name__}: choose EuclideanMetric, MaximumMetric or TaxicabMetric")

    @classmethod
    def norm(cls, difference: Doubles) -> float:
        """Length of a difference of two vectors."""
        raise NotImplementedError(f"{cls.__name__}: choose EuclideanMetric, MaximumMetric or TaxicabMetric")

    @classmethod
    def get_distance_time_series(
        cls, time_series_x: Any, time_series_y: Any, embedding_dimension: int, time_delay_x: int, time_delay_y: int,
        index_x: int, index_y: int,
    ) -> float:  # fmt: skip
        """Distance of two vectors of series that are embedded on the way.

        Parameters
        ----------
        time_series_x, time_series_y : ndarray (n,)
        embedding_dimension, time_delay_x, time_delay_y : int
        index_x, index_y : int
            Which vectors.
        """
        lags = np.arange(embedding_dimension)
        x = np.asarray(time_series_x)[index_x + lags * time_delay_x]
        y = np.asarray(time_series_y)[index_y + lags * time_delay_y]
        return cls.norm((x - y).astype(np.float64))

    @classmethod
    def get_distance_vectors(
        cls, vectors_x: Any, vectors_y: Any, embedding_dimension: int, index_x: int, index_y: int
    ) -> float:
        """Distance of two vectors of series that hold one vector behind another.

        Parameters
        ----------
        vectors_x, vectors_y : ndarray (n * embedding_dimension,)
        embedding_dimension : int
        index_x, index_y : int
            Which vectors.
        """
        m = embedding_dimension
        difference = vectors_x[index_x * m : (index_x + 1) * m] - vectors_y[index_y * m : (index_y + 1) * m]
        return cls.norm(np.asarray(difference, np.float64))


class TaxicabMetric(Metric):
    """Sum of magnitudes (L1)."""

    name = "taxicab_metric"
    native = "manhattan"

    @classmethod
    def get_p(cls) -> float:
        return 1.0

    @classmethod
    def norm(cls, difference: Doubles) -> float:
        return float(np.abs(difference).sum())


class EuclideanMetric(Metric):
    """Root of the sum of squares (L2)."""

    name = "euclidean_metric"
    native = "euclidean"

    @classmethod
    def get_p(cls) -> float:
        return 2.0

    @classmethod
    def norm(cls, difference: Doubles) -> float:
        return float(np.sqrt(difference @ difference))


class MaximumMetric(Metric):
    """Largest magnitude."""

    name = "maximum_metric"
    native = "maximum"

    @classmethod
    def get_p(cls) -> float:
        return float("inf")

    @classmethod
    def norm(cls, difference: Doubles) -> float:
        return float(np.abs(difference).max())
