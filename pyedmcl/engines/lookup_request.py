"""What a lookup is asked for: targets as they lie on the device, the rows that are predicted, and where rho goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .compact import Codes

if TYPE_CHECKING:
    from ..device.executor import Buffer

#: A lookup to come: E, the number of targets, the rows that are predicted, whether there are gaps, and whether targets
#: have 16 bits.
PlannedLookup = tuple[int, int, tuple[int, int], bool, bool]
#: Targets that some libraries are to predict: the first column and one past the last, and the same of libraries.
Piece = tuple[tuple[int, int], tuple[int, int]]


@dataclass(frozen=True)
class TargetColumns:
    """Targets on the device, time-major, in the layout of the kernel.

    Attributes
    ----------
    values : Buffer
        [step][stride], around 0 and of magnitudes near 1, GAP where there is no value.
    target_of : Buffer
        Column of rho of each column.
    stride : int
    codes : Codes, optional
        The same targets in 16 bits.
    """

    values: Buffer
    target_of: Buffer
    stride: int
    codes: Codes | None = None


@dataclass(frozen=True)
class LookupRequest:
    """What tables are looked up for.

    Attributes
    ----------
    E : int
    targets : TargetColumns
    predicted : (int, int)
        The first row that is predicted, and one past the last.
    gaps : bool
        Whether any prediction or observation may be missing.
    compact : bool
        Whether targets of 16 bits are looked up, where these are enough.
    """

    E: int
    targets: TargetColumns
    predicted: tuple[int, int]
    gaps: bool = False
    compact: bool = False


@dataclass(frozen=True)
class RhoRows:
    """Where rho of some tables is written.

    Attributes
    ----------
    buffer : Buffer
    row, stride : int
        Row of the tables' first library; columns of rho.
    """

    buffer: Buffer
    row: int
    stride: int
