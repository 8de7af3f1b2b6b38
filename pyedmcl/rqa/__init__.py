"""Recurrence analysis: line histograms by divide and recombine, and the measures that follow from them.

The room bears the name of its main function, so that it can be called: ``pyedmcl.rqa(x, radius=1.0)`` is
:func:`pyedmcl.rqa.rqa.rqa`, whichever part of the room was imported before.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from types import ModuleType
from typing import Any


class _Room(ModuleType):
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return importlib.import_module(".rqa", __name__).rqa(*args, **kwargs)

    @property
    def __signature__(self) -> inspect.Signature:
        return inspect.signature(importlib.import_module(".rqa", __name__).rqa)


sys.modules[__name__].__class__ = _Room
