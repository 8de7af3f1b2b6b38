"""A folder of random work: whoever continues it, or shares it, has the seed of the process that began it."""

from __future__ import annotations

import contextlib
import json
import secrets
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from ..errors import StoreMismatchError
from .claims import Member, require_alone
from .ownership import is_ours, mark, read_identity
from .records import DamagedError

_SEED_BITS = 63


@contextlib.contextmanager
def seeded_folder(
    path: Path, begin: float | None, device: str, seed: int | None, identity: Callable[[int], Mapping[str, str]],
    blocks: int = 1,
) -> Iterator[tuple[Member, int]]:  # fmt: skip
    """A folder for this process alone (``begin`` None) or as one of several, and the seed.

    Parameters
    ----------
    path : Path
        New, empty, or of the same work.
    begin : float or None
        From :func:`.turns.begin_of`.
    device : str
        Its name, to be told to others.
    seed : int or None
        None: that of the work that is there, or of who began first.
    identity : callable
        Of a seed: what decides the answer, each as text, "seed" among them; the name "data" stands for their digest.
    blocks : int
        Into how many the work is cut, for a folder that is new.

    Raises
    ------
    StoreForeignError, StoreMismatchError, StoreWriteError
        The folder is not ours, belongs to other data or arguments, or cannot be written.
    StoreError
        Others work there, and this process has not joined.
    """
    # Before anything is touched. An empty folder is nobody's, and has no seed.
    decided = _stored_seed(path) if seed is None else seed
    try:
        is_ours(path, identity(decided or 0), "out")
    except StoreMismatchError:
        if decided is not None or (decided := _stored_seed(path)) is None:
            raise
        is_ours(path, identity(decided), "out")  # another process has begun it a moment ago
    if begin is None:
        require_alone(path)
    with Member(path, device) as member:
        member.enter()
        if decided is None:
            decided = int(member.decide("seed", secrets.randbits(_SEED_BITS)))
        mark(path, blocks, identity(decided), "out")
        yield member, decided


def _stored_seed(path: Path) -> int | None:
    """The seed of work that is in a folder; None where there is none."""
    with contextlib.suppress(DamagedError, OSError, ValueError, LookupError, TypeError):
        identity = read_identity(path)
        return None if identity is None else int(json.loads(identity[1]["seed"]))
    return None
