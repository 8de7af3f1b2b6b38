"""Names and order of the two roles in every table of pairs: cause and effect, and what the method calls them."""

from __future__ import annotations

from typing import Any

#: The first columns of a table of pairs. Cross mapping predicts a target from the states of a library: skill says that
#: the target (cause) left its trace in the library (effect).
ROLES = ("cause", "effect", "library", "target")


def roles(library: Any, target: Any) -> tuple[Any, Any, Any, Any]:
    """What stands under :data:`ROLES` for a pair."""
    return target, library, library, target


def role_columns(library: Any, target: Any) -> dict[str, Any]:
    """Columns of a table by their names."""
    return dict(zip(ROLES, roles(library, target), strict=True))
