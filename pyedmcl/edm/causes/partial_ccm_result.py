"""What :func:`pyedmcl.partial_ccm` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...io.fields import labelled
from ...io.labels import Label, common
from ...io.optional import need, pandas_for
from ...io.result import Result

Doubles = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class PartialCcm(Result):
    """Cross-map skill of two variables in both directions, with and without what passes through others.

    Attributes
    ----------
    cause, effect : (str, str)
        Of each direction: the states of the effect estimate the cause.
    given : tuple of str
        What the link may pass through.
    rho : ndarray of float64 (2,)
        Correlation of the cause and its estimate.
    partial : ndarray of float64 (2,)
        The same, given the estimates of the cause through each of ``given``: near 0 where all passes through these,
        near rho where nothing does.
    through : ndarray of float64 (2, n_given)
        Correlation of the cause and its estimate through each of ``given``.
    p_value : ndarray of float64 (2,)
        (1 + surrogates of the cause whose ``partial`` is as high) / (1 + those that were drawn for it): one-sided; NaN
        without surrogates.
    E : ndarray of int (2 + n_given,)
        Embedding dimension of x, y and each of ``given``.
    Tp : int
    n, method, seed
        Surrogates: how many at most, of which kind, and what chose them.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> x, y, z = network.values[:, 2], network.values[:, 3], network.values[:, 0]
    >>> found = pyedmcl.partial_ccm(x, y, given=z, E=3, Tp=-1, seed=1)
    >>> found.cause[0], found.effect[0], found.given
    ('x', 'y', ('z',))
    >>> bool(0 < found.partial[0] < found.rho[0])  # some of what y tells of x passes through z
    True
    """

    series_label: ClassVar = Label("1", "skill of the estimate of the cause through this series")
    column_labels: ClassVar = {
        **common("cause", "effect", "rho", "partial", "p_value", "given"),
        "through": Label("1", "skill of the estimate of the cause through another series"),
    }  # fmt: skip

    cause: tuple[str, str]
    effect: tuple[str, str]
    given: tuple[str, ...]
    rho: Doubles
    partial: Doubles
    through: Doubles
    p_value: Doubles
    E: NDArray[np.int_]
    Tp: int
    n: int
    method: str
    seed: int
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def to_xarray(self) -> Any:
        """An xarray.Dataset over both directions, and of the skill through each other series (direction, given)."""
        ends = zip(self.cause, self.effect, strict=True)
        axis: list[tuple[str, Any]] = [("direction", [f"{cause} -> {effect}" for cause, effect in ends])]
        names = ("cause", "effect", "rho", "partial", "p_value")
        parts = {name: labelled(np.array(getattr(self, name)), axis, name) for name in names}
        parts["through"] = labelled(self.through, [*axis, ("given", self.given)], "through")
        return need("xarray", "to_xarray()").Dataset(parts)

    def to_frame(self) -> Any:
        """A pandas DataFrame: cause, effect, rho, partial, p_value, and the skill through each of ``given``."""
        return pandas_for("to_frame()").DataFrame({
            "cause": list(self.cause), "effect": list(self.effect), "rho": self.rho, "partial": self.partial,
            "p_value": self.p_value,
            **{f"through {name}": self.through[:, place] for place, name in enumerate(self.given)},
        })  # fmt: skip
