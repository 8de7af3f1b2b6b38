"""Optional packages, imported at use; their absence is an error that names the extra."""

from __future__ import annotations

import importlib
from typing import Any

from ..errors import missing_extra


def need(module: str, purpose: str, extra: str = "io") -> Any:
    """Import ``module`` (possibly dotted), of an extra; ``purpose`` says in an error what needed it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise missing_extra(module.partition(".")[0], extra, purpose) from error


def pandas_for(purpose: str) -> Any:
    """The module pandas, for ``purpose``."""
    return need("pandas", purpose)
