"""Names of :mod:`pyedmcl.tuning.parameters` as they were."""

from __future__ import annotations

from .parameters import Answers, keeping

__all__ = ["Answers", "keeping"]
