"""PyRQA's settings of one matrix, and of two at once."""

from __future__ import annotations

from typing import Any

import numpy as np

from .analysis_type import Classic, Joint
from .exceptions import (
    DeviatingEmbeddingDimensionException,
    DeviatingFloatingPointPrecisionException,
    DeviatingTimeDelayException,
    InvalidSettingsException,
    InvalidTimeSeriesInputException,
)
from .metric import EuclideanMetric, Metric
from .neighbourhood import FAN, FixedRadius, Neighbourhood
from .time_series import EmbeddedSeries, TimeSeries

Series = TimeSeries | EmbeddedSeries


class Settings:
    """What is analysed, and how.

    Parameters
    ----------
    time_series : TimeSeries or EmbeddedSeries, or a pair of them
        Of a pair the first lies along the horizontal axis.
    analysis_type : type
        Classic or Cross.
    similarity_measure : type
        A metric.
    neighbourhood : Neighbourhood, optional
        FixedRadius(1.0) by default.
    theiler_corrector : int
        Cells with abs(i - j) below it are on no diagonal line.
    """

    def __init__(
        self, time_series: Any, analysis_type: type = Classic, similarity_measure: type[Metric] = EuclideanMetric,
        neighbourhood: Neighbourhood | None = None, theiler_corrector: int = 1,
    ) -> None:  # fmt: skip
        self.time_series_x = self.get_time_series(time_series, 0)
        self.time_series_y = self.get_time_series(time_series, 1)
        self.analysis_type = analysis_type
        self.similarity_measure = similarity_measure
        self.neighbourhood = FixedRadius() if neighbourhood is None else neighbourhood
        self.theiler_corrector = theiler_corrector

    @staticmethod
    def get_time_series(time_series: Any, ind: int) -> Any:
        """A series, or one of a pair."""
        if isinstance(time_series, (TimeSeries, EmbeddedSeries)):
            return time_series
        if isinstance(time_series, (tuple, list)) and len(time_series) == 2:
            return time_series[ind]
        raise InvalidTimeSeriesInputException(
            f"time_series: a TimeSeries or EmbeddedSeries, or a pair of them, is needed, not {type(time_series)}"
        )

    @property
    def time_series_x(self) -> Series:
        """Along the horizontal axis."""
        return self._x

    @time_series_x.setter
    def time_series_x(self, series: Any) -> None:
        self._x = _checked(series, "x")

    @property
    def time_series_y(self) -> Series:
        """Along the vertical axis."""
        return self._y

    @time_series_y.setter
    def time_series_y(self, series: Any) -> None:
        self._y = _checked(series, "y")

    @property
    def embedding_dimension(self) -> int:
        """That of both series."""
        one, other = self._x.embedding_dimension, self._y.embedding_dimension
        if one != other:
            raise DeviatingEmbeddingDimensionException(
                f"embedding_dimension: {one} of time series x and {other} of time series y must be the same"
            )
        return one

    @property
    def time_delay(self) -> int:
        """That of both series."""
        delays = [series.time_delay for series in (self._x, self._y) if isinstance(series, TimeSeries)]
        if len(delays) != 2 or delays[0] != delays[1]:
            raise DeviatingTimeDelayException(
                f"time_delay: both series must have one, and the same; there are {delays}"
            )
        return delays[0]

    @property
    def number_of_vectors_x(self) -> int:
        """Columns of the matrix."""
        return self._x.number_of_vectors

    @property
    def number_of_vectors_y(self) -> int:
        """Rows of the matrix."""
        return self._y.number_of_vectors

    @property
    def max_number_of_vectors(self) -> int:
        """The longer side of the matrix."""
        return max(self.number_of_vectors_x, self.number_of_vectors_y)

    @property
    def is_matrix_symmetric(self) -> bool:
        """Whether the matrix is its own transpose."""
        return (
            self.similarity_measure.is_symmetric()
            and not isinstance(self.neighbourhood, FAN)
            and self.analysis_type is Classic
        )

    @property
    def dtype(self) -> Any:
        """NumPy's type of both series."""
        one, other = np.dtype(self._x.dtype), np.dtype(self._y.dtype)
        if one != other:
            raise DeviatingFloatingPointPrecisionException(
                f"dtype: {one} of time series x and {other} of time series y must be the same"
            )
        return one.type

    def __str__(self) -> str:
        return (
            "Recurrence Analysis Settings\n----------------------------\n"
            f"Analysis type: {self.analysis_type}\nSimilarity measure: {self.similarity_measure.__name__}\n"
            f"Neighbourhood: {self.neighbourhood}\nTheiler corrector: {self.theiler_corrector:d}\n"
            f"Matrix symmetry: {self.is_matrix_symmetric}\n"
        )


def _checked(series: Any, axis: str) -> Series:
    if not isinstance(series, (TimeSeries, EmbeddedSeries)):
        raise InvalidTimeSeriesInputException(
            f"time series {axis}: a TimeSeries or EmbeddedSeries is needed, not {type(series)}"
        )
    return series


class JointSettings:
    """Two matrices of the same size.

    Parameters
    ----------
    settings_1, settings_2 : Settings
    """

    def __init__(self, settings_1: Settings, settings_2: Settings) -> None:
        self.settings_1, self.settings_2 = settings_1, settings_2
        self.validate_settings()

    def validate_settings(self) -> bool:
        """Refuse matrices of different sizes."""
        self._both("number_of_vectors_x")
        self._both("number_of_vectors_y")
        return True

    def _both(self, name: str) -> Any:
        one, other = getattr(self.settings_1, name), getattr(self.settings_2, name)
        if one != other:
            raise InvalidSettingsException(f"{name}: {one} and {other} of the two settings must be the same")
        return one

    @property
    def analysis_type(self) -> type:
        """Joint."""
        return Joint

    @property
    def is_matrix_symmetric(self) -> bool:
        """Whether both matrices are symmetric."""
        return self.settings_1.is_matrix_symmetric and self.settings_2.is_matrix_symmetric

    @property
    def dtype(self) -> Any:
        """NumPy's type of all series."""
        return self._both("dtype")

    @property
    def theiler_corrector(self) -> int:
        """That of both settings."""
        return int(self._both("theiler_corrector"))

    @property
    def number_of_vectors_x(self) -> int:
        """Columns of the matrix."""
        return int(self._both("number_of_vectors_x"))

    @property
    def number_of_vectors_y(self) -> int:
        """Rows of the matrix."""
        return int(self._both("number_of_vectors_y"))

    @property
    def max_number_of_vectors(self) -> int:
        """The longer side of the matrix."""
        return int(self._both("max_number_of_vectors"))

    def __str__(self) -> str:
        return (
            "Joint Recurrence Analysis Settings\n==================================\n"
            f"Analysis type: {self.analysis_type}\nFirst recurrence matrix:\n\n{self.settings_1}\n\n"
            f"Second recurrence matrix:\n\n{self.settings_2}\n\nTheiler corrector: {self.theiler_corrector:d}\n"
            f"Matrix symmetry: {self.is_matrix_symmetric}\n"
        )
