"""PyRQA's modules on any OpenCL device: ``from pyedmcl.compat.pyrqa.time_series import TimeSeries``.

Modules, classes, attributes and numbers are those of PyRQA 8.1; what differs, and why, is listed in ``docs/pyrqa.md``.
"""

from __future__ import annotations

__version__ = "8.1.0"
