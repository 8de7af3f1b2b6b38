"""What all-pairs cross mapping within windows returns: skill over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.grid import Grid
from ...io.edges import are_two
from ...io.fields import labelled
from ...io.optional import pandas_for
from ...io.result import Result
from ...io.roles import ROLES, roles
from ..shared.window_columns import PAIRS_SHOWN, spans
from .xmap_result import best_edges


@dataclass(frozen=True, repr=False)
class WindowedMap(Result):
    """All-pairs cross-map skill within each window.

    Attributes
    ----------
    rho : ndarray (n_windows, n_libraries, n_targets)
        Row = library, column = target, as in :class:`XmapResult`.
    E : ndarray of int (n_windows, n_targets)
        Embedding dimension of each target in each window.
    names : tuple of str
        Of the libraries.
    targets : tuple of str or None
        Names of the targets, where these are not the libraries.
    starts : ndarray of int (n_windows,)
        First row of each window.
    width : int
        Rows of a window.
    time : ndarray (n_windows,)
        Middle of each window: a date or a number as the data have them, else a row.
    grids : (Grid or None, Grid or None)
        Where libraries and targets lie, if they are fields.
    skill : str
        What rho holds: "pearson", or another measure that was asked for.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.xmap(network.values, E=3, windows=(200, 100))  # 200 rows each, 100 from one to the next
    >>> result.starts.tolist(), result.rho.shape
    ([0, 100, 200], (3, 4, 4))
    >>> result.edges(top=1)[0].target  # of the pair that is strongest in the mean over windows
    'x2'
    >>> result.curves()["x2 drives x0?"].shape
    (3,)
    """

    rho: NDArray[Any]
    E: NDArray[np.int_]
    names: tuple[str, ...]
    targets: tuple[str, ...] | None
    starts: NDArray[np.int_]
    width: int
    time: NDArray[Any]
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)
    grids: tuple[Grid | None, Grid | None] = field(default=(None, None), repr=False)
    skill: str = "pearson"

    def to_xarray(self) -> Any:
        """An xarray DataArray (time, library, target); the coordinates of a field take the place of its cells."""
        axes = [("library", self.grids[0] or self.names), ("target", self.grids[1] or self.targets or self.names)]
        return labelled(self.rho, [("time", self.time), *axes], "rho")

    def columns(self) -> dict[str, NDArray[Any]]:
        """What :meth:`to_frame` holds, by name."""
        n = len(self.starts)
        library, target = np.nonzero(are_two(self.names, self.targets))
        pairs = roles(np.array(self.names)[library], np.array(self.targets or self.names)[target])
        return spans(self, len(library)) | {
            **{role: np.tile(held, n) for role, held in zip(ROLES, pairs, strict=True)},
            "rho": self.rho[:, library, target].reshape(-1), "E": self.E[:, target].reshape(-1),
            "E_of": np.full(n * len(library), "cause"),
        }  # fmt: skip

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each window and pair of different series.

        Columns are start and end (rows begin <= t < end), time, cause, effect, library, target, rho, E, E_of.
        """
        return pandas_for("to_frame()").DataFrame(self.columns())

    def mean(self) -> NDArray[np.float64]:
        """Mean (n_libraries, n_targets) over the windows in which a pair has a skill; NaN where it has none."""
        present = np.isfinite(self.rho)
        with np.errstate(invalid="ignore"):
            total = np.where(present, self.rho, 0).sum(axis=0, dtype=np.float64)
            return np.asarray(total / present.sum(axis=0))

    def edges(self, top: int = 100) -> Sequence[Any]:
        """The ``top`` pairs that are strongest in the mean over windows (of errors the smallest), and median E."""
        return best_edges(self.mean(), self.skill, self.names, np.median(self.E, axis=0).astype(int), top, self.targets)

    def curves(self) -> dict[str, NDArray[Any]]:
        """Skill over time of the pairs of two series that are strongest in the mean."""
        targets = self.targets or self.names
        place = [{name: i for i, name in enumerate(names)} for names in (self.names, targets)]
        pairs = [(edge.library, edge.target) for edge in self.edges(PAIRS_SHOWN)]
        return {f"{cause} drives {effect}?": self.rho[:, place[0][effect], place[1][cause]] for effect, cause in pairs}

    def plot(self, path: str | None = None) -> Any:
        """Skill of the strongest pairs over time; saved to ``path`` if given. Needs matplotlib."""
        from ...plot.windows import skill_over_time

        return skill_over_time(self, path)
