"""What cross mapping of two series within windows returns: skill over time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...io.optional import pandas_for
from ...io.result import Result
from ...io.roles import ROLES, roles
from ..shared.convergence import means
from ..shared.window_columns import spans


@dataclass(frozen=True, repr=False)
class WindowedCcm(Result):
    """Convergent cross mapping of two series within each window.

    Attributes
    ----------
    rho : ndarray of float64 (n_windows, 2, n_sizes, samples)
        As of :class:`CcmResult`.
    lib_sizes : ndarray of int (n_sizes,)
    links : ((str, str), (str, str))
        (library, target) of each direction.
    E : (int, int)
    seed : int
        Each window draws the rows that its number chooses.
    skill : str
        What rho holds: "pearson", or another measure that was asked for.
    starts, width, time
        As of :class:`WindowedMap`.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> x, y = network.values[:, 0], network.values[:, 1]
    >>> result = pyedmcl.ccm(x, y, E=3, lib_sizes=[20, 150], sample=5, seed=1, windows=(200, 100))
    >>> result.mean.shape  # window, direction, library size
    (3, 2, 2)
    >>> result.curves()["x drives y?"].round(1).tolist()  # at the largest library
    [0.4, 0.5, 0.7]
    """

    rho: NDArray[np.float64]
    lib_sizes: NDArray[np.int_]
    links: tuple[tuple[str, str], tuple[str, str]]
    E: tuple[int, int]
    seed: int
    skill: str
    starts: NDArray[np.int_]
    width: int
    time: NDArray[Any]
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @property
    def mean(self) -> NDArray[np.float64]:
        """Mean skill (n_windows, 2, n_sizes) over the samples that have one."""
        return means(self.rho)

    def columns(self) -> dict[str, NDArray[Any]]:
        """What :meth:`to_frame` holds, by name."""
        n, sizes = len(self.starts), len(self.lib_sizes)
        pairs = roles(*(np.tile(np.repeat(names, sizes), n) for names in zip(*self.links, strict=True)))
        return spans(self, 2 * sizes) | dict(zip(ROLES, pairs, strict=True)) | {
            "lib_size": np.tile(self.lib_sizes, 2 * n), "mean": self.mean.reshape(-1),
        }  # fmt: skip

    def to_frame(self) -> Any:
        """A pandas DataFrame with a row for each window, direction and size.

        Columns are start and end (rows begin <= t < end), time, cause, effect, library, target, lib_size, mean.
        """
        return pandas_for("to_frame()").DataFrame(self.columns())

    def curves(self) -> dict[str, NDArray[Any]]:
        """Mean skill of both directions over time, at the largest library."""
        largest = int(self.lib_sizes.argmax())
        mean = self.mean[:, :, largest]
        return {f"{target} drives {library}?": mean[:, d] for d, (library, target) in enumerate(self.links)}

    def plot(self, path: str | None = None) -> Any:
        """Skill of both directions over time; saved to ``path`` if given. Needs matplotlib."""
        from ...plot.windows import skill_over_time

        return skill_over_time(self, path)
