"""PyRQA's neighbourhoods: which distances make a recurrence."""

from __future__ import annotations

from typing import Any


class Neighbourhood:
    """Which samples are neighbours.

    Attributes
    ----------
    name : str
    """

    name = "neighbourhood"

    def contains(self, sample: Any) -> bool:
        """Whether a distance is inside."""
        raise NotImplementedError(f"{type(self).__name__} holds no distances")

    @property
    def condition(self) -> Any:
        """The numbers that decide."""
        raise NotImplementedError(f"{type(self).__name__} has no condition")

    def __str__(self) -> str:
        return type(self).__name__


class FixedRadius(Neighbourhood):
    """Distances below a radius.

    Attributes
    ----------
    radius : float
    """

    name = "fixed_radius"

    def __init__(self, radius: float = 1.0) -> None:
        self.radius = radius

    def contains(self, sample: Any) -> bool:
        return bool(sample < self.radius)

    @property
    def condition(self) -> float:
        return self.radius

    def __str__(self) -> str:
        return f"{type(self).__name__} (Radius: {self.radius:.2f})"


class RadiusCorridor(Neighbourhood):
    """Distances between two radii.

    Attributes
    ----------
    inner_radius, outer_radius : float
    """

    name = "radius_corridor"

    def __init__(self, inner_radius: float = 0.1, outer_radius: float = 1.0) -> None:
        self.inner_radius, self.outer_radius = inner_radius, outer_radius

    def contains(self, sample: Any) -> bool:
        return bool(self.inner_radius < sample < self.outer_radius)

    @property
    def condition(self) -> tuple[float, float]:
        return self.inner_radius, self.outer_radius

    def __str__(self) -> str:
        return (
            f"{type(self).__name__} (Inner Radius: {self.inner_radius:.2f}, Outer Radius: {self.outer_radius:.2f})"
        )


class FAN(Neighbourhood):
    """A fixed amount of nearest neighbours. No computation of PyRQA takes it, and none here.

    Attributes
    ----------
    k : int
    indices, distances : list
        Of the neighbours.
    """

    name = "fan"

    def __init__(self, k: int = 5) -> None:
        self.k = k
        self.indices: list[int] = []
        self.distances: list[float] = []

    def contains(self, sample: Any) -> bool:
        return sample in self.indices

    @property
    def condition(self) -> int:
        return self.k

    def __str__(self) -> str:
        return f"{type(self).__name__} (Amount of Nearest Neighbours (k): {self.k})"


class Unthresholded(Neighbourhood):
    """Distances themselves, for plots."""

    name = "unthresholded"
