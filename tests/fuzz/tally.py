"""What the random tests tried, counted by what came of it; :mod:`conftest` prints it at the end."""

from __future__ import annotations

from collections import Counter

#: (what was tried, what came of it) -> how often.
COUNTS: Counter[tuple[str, str]] = Counter()


def count(what, outcome):
    """Note one case, such as ``count("random calls", "refused")``."""
    COUNTS[what, outcome] += 1


def lines(counts):
    """A line for each kind of case."""
    for kind in sorted({what for what, _ in counts}):
        found = {outcome: n for (what, outcome), n in sorted(counts.items()) if what == kind}
        parts = ", ".join(f"{n:,} {outcome}" for outcome, n in found.items())
        yield f"{kind}: {sum(found.values()):,} tried: {parts}"
