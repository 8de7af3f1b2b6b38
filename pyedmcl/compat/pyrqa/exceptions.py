# ruff: noqa: N818 (the names are PyRQA's)
"""PyRQA's exceptions. Each is a ``ValueError`` of pyedmcl, too, and its message says what is legal."""

from __future__ import annotations

from ...errors import InputError


class UnsupportedNeighbourhoodException(InputError):
    """The computation has no such neighbourhood."""


class UnsupportedAnalysisTypeException(InputError):
    """The computation has no such analysis type."""


class NoOpenCLPlatformDetectedException(InputError):
    """There is no OpenCL platform."""


class NoOpenCLDeviceDetectedException(InputError):
    """The platform has no device."""


class OpenCLPlatformIndexOutOfBoundsException(InputError):
    """There is no platform of this number."""


class OpenCLDeviceIndexOutOfBoundsException(InputError):
    """The platform has no device of this number."""


class DeviceFissionNotSupportedException(InputError):
    """Devices are used as a whole."""


class UnsupportedDataTypeException(InputError):
    """Neither float16 nor float32 nor float64."""


class InvalidTimeSeriesInputException(InputError):
    """Neither a series nor a pair of series."""


class DeviatingEmbeddingDimensionException(InputError):
    """The two series of a matrix have different embedding dimensions."""


class DeviatingTimeDelayException(InputError):
    """The two series have different time delays, where one is asked for."""


class DeviatingFloatingPointPrecisionException(InputError):
    """The two series have different data types."""


class InvalidSettingsException(InputError):
    """Two settings do not go together."""


class InconsistentNumberOfVectorsException(InputError):
    """Two matrices have different numbers of vectors."""


class InconsistentDimensionalityException(InputError):
    """The vectors of an embedded series have no common dimension."""


class NoMatchingVariantException(InputError):
    """Kept for scripts that catch it; never raised, since one implementation serves all settings."""


class SubMatrixNotProcessedException(InputError):
    """Kept for scripts that catch it; never raised: what does not fit is divided further, or an error says so."""
