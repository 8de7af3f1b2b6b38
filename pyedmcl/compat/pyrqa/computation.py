"""PyRQA's computations: made from settings, then run."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from ...errors import InputError
from .analysis_type import Joint
from .exceptions import UnsupportedAnalysisTypeException, UnsupportedNeighbourhoodException
from .matrix import count_joint, count_one, draw_distances, draw_one
from .neighbourhood import FixedRadius, Neighbourhood, RadiusCorridor, Unthresholded
from .opencl import OpenCL
from .result import RPResult, RQAResult
from .runtimes import FlavourRuntimesMonolithic, MatrixRuntimes
from .settings import JointSettings, Settings

_WITHOUT_EFFECT = (
    "processing_order", "verbose", "use_profiling_events_time", "selector", "variants", "variants_kwargs"
)  # fmt: skip


class Computation(ABC):
    """Base of the computations.

    Parameters
    ----------
    settings : Settings or JointSettings
    edge_length : int, optional
        Edge of the parts that the matrix is divided into; the tuned one by default. Changes no result.
    opencl : OpenCL, optional
        Devices; ``PYEDMCL_DEVICE``, else the best one there is.
    processing_order, verbose, use_profiling_events_time, selector, variants, variants_kwargs
        Without effect.
    """

    def __init__(
        self, settings: Any, *, edge_length: int | None = None, opencl: OpenCL | None = None, **others: Any
    ) -> None:
        unknown = sorted(set(others) - set(_WITHOUT_EFFECT))
        if unknown:
            names = ", ".join(("edge_length", "opencl", *_WITHOUT_EFFECT))
            first = f"{unknown[0]}={others[unknown[0]]!r}"
            raise InputError(f"{type(self).__name__}: {first} is unknown; there are {names}")
        self.settings, self.edge_length, self.opencl = settings, edge_length, opencl

    @classmethod
    def create(cls, settings: Any, **kwargs: Any) -> Any:
        """The computation of some settings.

        Raises
        ------
        InputError
            It cannot be done with them.
        """
        return cls(settings, **kwargs)

    @property
    def devices(self) -> list[str] | None:
        return None if self.opencl is None else self.opencl.names

    def run(self) -> Any:
        """Compute; may be called again."""
        start = time.perf_counter()
        result = self._run()
        took = MatrixRuntimes()
        took.update_index(0, 0, FlavourRuntimesMonolithic(execute_computations=time.perf_counter() - start))
        result.matrix_runtimes = took
        return result

    @abstractmethod
    def _run(self) -> Any:
        """Compute once."""


def _of_one(settings: Any, name: str, allowed: tuple[type[Neighbourhood], ...]) -> None:
    if not isinstance(settings, Settings):
        raise UnsupportedAnalysisTypeException(
            f"{name}: Settings are needed, not {type(settings).__name__}; J{name} takes JointSettings"
        )
    if not isinstance(settings.neighbourhood, allowed):
        raise UnsupportedNeighbourhoodException(
            f"{name}: neighbourhood={settings.neighbourhood}: {' or '.join(kind.__name__ for kind in allowed)} is "
            "needed (for a fixed amount of neighbours see pyedmcl.rqa with threshold='neighbours')"
        )


def _of_two(settings: Any, name: str) -> None:
    if not isinstance(settings, JointSettings) or settings.analysis_type is not Joint:
        raise UnsupportedAnalysisTypeException(f"{name}: JointSettings are needed, not {type(settings).__name__}")
    for one in (settings.settings_1, settings.settings_2):
        _of_one(one, name, (FixedRadius, RadiusCorridor))


class RPComputation(Computation):
    """Recurrence plots, thresholded or not."""

    def __init__(self, settings: Any, **kwargs: Any) -> None:
        _of_one(settings, "RPComputation", (FixedRadius, RadiusCorridor, Unthresholded))
        super().__init__(settings, **kwargs)

    def _run(self) -> RPResult:
        drawn = draw_distances if isinstance(self.settings.neighbourhood, Unthresholded) else draw_one
        return RPResult(self.settings, None, recurrence_matrix=drawn(self.settings, self.devices))


class JRPComputation(Computation):
    """Joint recurrence plots."""

    def __init__(self, settings: Any, **kwargs: Any) -> None:
        _of_two(settings, "JRPComputation")
        super().__init__(settings, **kwargs)

    def _run(self) -> RPResult:
        both = (draw_one(one, self.devices) for one in (self.settings.settings_1, self.settings.settings_2))
        return RPResult(self.settings, None, recurrence_matrix=np.logical_and(*both).astype(np.uint8))


class RQAComputation(Computation):
    """Recurrence quantification."""

    def __init__(self, settings: Any, **kwargs: Any) -> None:
        _of_one(settings, "RQAComputation", (FixedRadius, RadiusCorridor))
        super().__init__(settings, **kwargs)

    def _run(self) -> RQAResult:
        return RQAResult.of_counts(self.settings, count_one(self.settings, self.edge_length, self.devices))


class JRQAComputation(Computation):
    """Joint recurrence quantification."""

    def __init__(self, settings: Any, **kwargs: Any) -> None:
        _of_two(settings, "JRQAComputation")
        super().__init__(settings, **kwargs)

    def _run(self) -> RQAResult:
        return RQAResult.of_counts(self.settings, count_joint(self.settings, self.edge_length, self.devices))


