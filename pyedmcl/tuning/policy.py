"""Names of :mod:`pyedmcl.tuning.parameters` as they were."""

from __future__ import annotations

from .parameters import expect, keeping, mode, parameters, record, source, using, watching

__all__ = ["expect", "keeping", "mode", "parameters", "record", "source", "using", "watching"]
