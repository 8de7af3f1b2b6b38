"""Columns of a table that hold words, such as notes: which of them may be left out, and with what words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import numpy as np

from ..errors import GroupsWarning, InputError, shown, warn
from .call import takes
from .columns import some
from .date_forms import dates_of_texts
from .intake import Array
from .number_forms import is_missing_cell, plain_number

_LABELS = 5  # rows of each number that tells recordings apart, as a mean
# A number with a slip of the pen, a decimal comma, or the sign of a detection limit ("<0.5") is no word.
_LIKE_A_NUMBER = re.compile(r"[\s<>=~≈$€£'\"(]*[+-]?\s*[.,]?\d")


def are_words(cells: Sequence[str]) -> bool:
    """Whether a column holds nothing but words (and gaps): no cell begins like a number, and they are no dates."""
    held = [cell for cell in cells if not is_missing_cell(cell)]
    return bool(held) and not any(_LIKE_A_NUMBER.match(cell) or plain_number(cell) is not None for cell in held) and (
        dates_of_texts(held) is None
    )


def tell_recordings(cells: Sequence[str]) -> bool:
    """Whether words may tell recordings apart: each stands in one stretch of rows, or all take turns, as long as each
    other in each round."""
    stretches = [(label, sum(1 for _ in same)) for label, same in groupby(cell.strip() for cell in cells)]
    labels = [label for label, _ in stretches]
    kinds = len(set(labels))
    if "" in labels or not 2 <= kinds <= len(cells) // 2:
        return False
    rounds = [{length for _, length in stretches[at:at + kinds]} for at in range(0, len(stretches), kinds)]
    in_turns = labels[kinds:] == labels[:-kinds] and all(len(lengths) == 1 for lengths in rounds)
    return len(labels) == kinds or in_turns


def in_stretches(values: Array) -> bool:
    """Whether numbers may tell recordings apart: whole ones, each of which stands in one stretch of some rows."""
    if values.dtype.kind not in "iuf" or not np.isfinite(values).all() or (values != np.rint(values)).any():
        return False
    stretches = 1 + int(np.count_nonzero(values[1:] != values[:-1]))
    return 2 <= stretches <= len(values) // _LABELS and len(np.unique(values)) == stretches


def warn_of_recordings(labels: Sequence[str], name: Any, what: str) -> None:
    """Warn that rows are read as one recording where a column that is not looked at has the labels of several."""
    warn(
        f"{what}: column {shown(name)} ({some(labels)}) seems to tell recordings apart, and all rows are read as one. "
        f"{_by_groups(name)}, or take the rows of one recording",
        GroupsWarning,
    )


def require_no_recordings(cells: Sequence[str], name: Any, what: str, others: int = 2) -> None:
    """Refuse to leave out a column of words by which the rows seem to belong to several recordings.

    ``others`` is how many columns there would be without it.

    Raises
    ------
    InputError
        Each of its words stands in one stretch of rows, or they take turns.
    """
    if tell_recordings(cells):
        labels = list(dict.fromkeys(cell.strip() for cell in cells))
        long = "; if each of them is a series of its own, give each a column (pivot of pandas)" if others < 2 else ""
        raise InputError(
            f"{what}: the words in column {shown(name)} ({some(labels)}) seem to tell recordings apart. "
            f"{_by_groups(name)}, or leave it out{_by_columns(name)}{long}"
        )


def _by_groups(name: Any) -> str:
    where = "" if takes("groups") or takes("dataset") else " of rqa_batch"
    return f"Name the column with groups={shown(name)}{where}"


def _by_columns(name: Any) -> str:
    return f" with columns={'-' + str(name)!r}" if takes("columns") else ""
