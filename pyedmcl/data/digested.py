"""What a digest of many bytes is made from, so that several threads share the work."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

PIECE = 16 << 20  # bytes that are digested by themselves: some hundredths of a second
_THREADS = 8


def digested(values: NDArray[np.uint8]) -> Iterable[Any]:
    """The bytes themselves where they are few, else the SHA-256 of each piece of them."""
    if values.nbytes <= PIECE:
        return [values.data]
    pieces = [values[at : at + PIECE].data for at in range(0, values.nbytes, PIECE)]
    with ThreadPoolExecutor(min(len(pieces), os.cpu_count() or 1, _THREADS)) as pool:
        return list(pool.map(lambda piece: hashlib.sha256(piece).digest(), pieces))
