"""Pictures of results, by matplotlib, which is imported when the first one is made."""

from __future__ import annotations

from .curves import predictions, skill_against_E
from .pairs import heat_map

__all__ = ["heat_map", "predictions", "skill_against_E"]
