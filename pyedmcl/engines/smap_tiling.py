"""How the query rows of S-map are divided among work-groups."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Tiling:
    """A block of query rows, as work-groups share it.

    Attributes
    ----------
    padded : int
        Query rows with padding.
    rows : int
        Query rows of a tile, which is what a work-group sums for.
    tiles, uncut : int
        Tiles, and how many of them (the first ones) one work-group sums for the whole library.
    parts : int
        Parts of the library for each of the others, each with a work-group and sums of its own.
    """

    padded: int
    rows: int
    tiles: int
    uncut: int
    parts: int

    @property
    def slots(self) -> int:
        """Places for sums of a tile, those of parts included."""
        return self.tiles + (self.parts - 1) * (self.tiles - self.uncut)
