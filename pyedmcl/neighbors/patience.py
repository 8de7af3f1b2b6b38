"""How often libraries are looked at, to see whether they can be searched faster than by comparing all pairs."""

from __future__ import annotations

_INFORMED, _SKIPPED_MOST = 8, 255


class Patience:
    """Libraries of one data set are mostly alike: after a look that was in vain, some are left out, then ever more.

    So what is lost by looking stays a small share of the search, however many libraries there are, and a map whose
    libraries differ is still looked at here and there.

    Parameters
    ----------
    libraries : int
        All those of the job.

    Attributes
    ----------
    informed : int
        Libraries that share what a look may cost.
    """

    def __init__(self, libraries: int) -> None:
        self.informed = max(min(libraries, _INFORMED), 1)
        self._left_out, self._next = 0, self.informed - 1

    def due(self) -> bool:
        """Whether the next library is to be looked at; to be asked once for each."""
        if self._left_out:
            self._left_out -= 1
            return False
        return True

    def heard(self, faster: bool) -> None:
        """Say whether the library that was due is searched faster than by comparing all pairs."""
        if faster:
            self._next = self.informed - 1
        else:
            self._left_out, self._next = self._next, min(2 * self._next + 1, _SKIPPED_MOST)
