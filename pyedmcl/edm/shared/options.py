"""What the caller of a prediction chooses beside the data, as it was given: simplex and S-map check it alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class PredictionOptions:
    """Arguments of :func:`pyedmcl.simplex` and :func:`pyedmcl.smap` of these names, unchecked."""

    E: Any = None
    tau: Any = 1
    Tp: Any = 1
    knn: Any = None
    exclusion_radius: Any = 0
    embedded: bool = False
    lib_range: Any = None
    pred_range: Any = None
    valid_lib: Any = None
    groups: Any = None
    state: Any = None
