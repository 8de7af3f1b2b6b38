"""pyEDM's names on any OpenCL device: ``import pyedmcl.compat.pyedm as EDM``.

Signatures, argument forms, returned frames and semantics are those of pyEDM 2.5.7; what differs, and why, is listed in
``docs/pyedm.md``. Options about processes and threads are accepted and have no effect.
"""

from __future__ import annotations

from .forecast import (
    EmbedDimension,
    Multiview,
    PlotCoeff,
    PlotObsPred,
    PredictExclusionRadius,
    PredictInterval,
    PredictNonlinear,
    Simplex,
    SMap,
    sampleData,
)
from .frames import ComputeError, Embed
from .maps import CCM, CCM_Matrix, CrossMap_Matrix, EmbedDim_Columns, SurrogateData

__all__ = [
    "CCM",
    "CCM_Matrix",
    "ComputeError",
    "CrossMap_Matrix",
    "Embed",
    "EmbedDim_Columns",
    "EmbedDimension",
    "Multiview",
    "PlotCoeff",
    "PlotObsPred",
    "PredictExclusionRadius",
    "PredictInterval",
    "PredictNonlinear",
    "SMap",
    "Simplex",
    "SurrogateData",
    "sampleData",
]
