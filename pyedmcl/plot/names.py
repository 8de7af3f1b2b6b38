"""Names of series that are too long for a picture, shortened so that they still differ."""

from __future__ import annotations

from collections.abc import Sequence

_MARK = "…"
_BEFORE = 3  # letters before the first that differs


def short_names(names: Sequence[str], letters: int) -> list[str]:
    """Names of at most ``letters``: cut at their ends, or, where several then read alike, before they differ."""
    shortened = [name if len(name) <= letters else name[: letters - 1] + _MARK for name in names]
    for text in {text for text in shortened if shortened.count(text) > 1}:
        alike = [place for place, own in enumerate(shortened) if own == text]
        first, last = min(names[place] for place in alike), max(names[place] for place in alike)
        same = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
        head = letters // 4
        begin = max(same - _BEFORE, head)
        for place in alike:
            tail = names[place][begin:]
            room = letters - head - 1
            tail = tail if len(tail) <= room else tail[: room - 1] + _MARK
            shortened[place] = names[place][:head] + _MARK + tail
    return shortened
