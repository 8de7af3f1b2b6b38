"""Words, factors and other categories as codes, of which two are equal or at least 1 apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import InputError, shown


def coded(radius: Any, *series: Any) -> tuple[Any, ...]:
    """Series of words as codes 0, 1, ..., the same word having the same code in all; others as they are.

    Lists and mappings of such series count, too. What is missing (None, NaN) is a gap.

    Parameters
    ----------
    radius : float or sequence
        Of words it must be below 1: they are equal or not.
    series : array_like, or sequences or mappings of them

    Raises
    ------
    InputError
        A radius that would take different words for equal.
    """
    codes: dict[str, int] = {}
    made = tuple(_coded(one, codes) for one in series)
    if codes and np.ndim(radius) <= 1 and np.size(radius) and not (np.asarray(radius) < 1).all():
        raise InputError(f"radius={shown(radius)}: words are equal or not; give radius=0.5, which finds equal ones")
    return made


def _coded(data: Any, codes: dict[str, int]) -> Any:
    if isinstance(data, Mapping):
        worded = any(_are_words(one) for one in data.values())
        return {name: _coded(one, codes) for name, one in data.items()} if worded else data
    if _are_words(data):
        numbers = (np.nan if _missing(word) else codes.setdefault(str(word), len(codes)) for word in data)
        return np.array(list(numbers), np.float64)
    if isinstance(data, (list, tuple)) and any(_are_words(one) for one in data):
        return [_coded(one, codes) for one in data]
    return data


def _are_words(data: Any) -> bool:
    """Whether a series (n,) holds texts that are no numbers."""
    kind = getattr(getattr(data, "dtype", None), "kind", "" if isinstance(data, Sequence) else "f")
    if isinstance(data, (str, bytes)) or kind not in ("", "O", "U", "T") or getattr(data, "ndim", 1) != 1:
        return False
    if not isinstance(next((word for word in data if not _missing(word)), None), str):
        return False
    words = [word for word in data if not _missing(word)]
    return all(isinstance(word, str) for word in words) and not all(map(_is_number, words))


def _missing(word: Any) -> bool:
    return word is None or (isinstance(word, float) and word != word) or type(word).__name__ == "NAType"


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True
