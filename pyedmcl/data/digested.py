"""What a digest of many bytes is made from, so that several threads share the work."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .side_by_side import side_by_side

PIECE = 16 << 20  # bytes that are digested by themselves: some hundredths of a second


def digested(values: NDArray[np.uint8]) -> Iterable[Any]:
    """The bytes themselves where they are few, else the SHA-256 of each piece of them."""
    if values.nbytes <= PIECE:
        return [values.data]
    pieces = [values[at : at + PIECE].data for at in range(0, values.nbytes, PIECE)]
    return side_by_side(lambda piece: hashlib.sha256(piece).digest(), pieces)
