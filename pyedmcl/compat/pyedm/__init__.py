"""pyEDM's names on any OpenCL device: ``import pyedmcl.compat.pyedm as EDM``.

Signatures, argument forms, returned frames and semantics are those of pyEDM 2.5.7; what differs, and why, is listed in
``docs/pyedm.md``. Options about processes and threads are accepted and have no effect.
"""

from __future__ import annotations

from .ccm import CCM
from .embed import Embed
from .matrices import CCM_Matrix, CrossMap_Matrix, EmbedDim_Columns
from .multiview import Multiview
from .plots import PlotCoeff, PlotObsPred
from .sample_data import sampleData
from .simplex import Simplex
from .skill import ComputeError
from .smap import SMap
from .surrogates import SurrogateData
from .sweeps import EmbedDimension, PredictExclusionRadius, PredictInterval, PredictNonlinear

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
