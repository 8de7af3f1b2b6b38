"""Which cells of a recurrence matrix are recurrent and which are counted: plain numbers, picklable.

Cell (i, j) joins row i (a point of ``x``) and column j (a point of ``y``, or of ``x`` where there is no ``y``). Point t
of a series is (x[t], x[t + tau], ..., x[t + (m-1) tau]). The arithmetic is fixed, so that every device and every
configuration finds the same cells: each difference is rounded to the working precision, squares are rounded on their
own (no fused multiply-add), and sums run over the lags in ascending order. What is compared with a limit is, for the
Euclidean metric, that sum of squares; no root is taken. :mod:`pyedmcl.recurrence.metrics` says it of each metric.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from .metrics import metric_named

if TYPE_CHECKING:
    from ..device.info import DeviceInfo


@dataclass(frozen=True)
class RqaProblem:
    """A recurrence matrix, for one or several radii at once.

    A point with a NaN (a gap) recurs with no point: its row and its column are white. Everything that a convention
    makes of gaps follows from the counts and from where the gaps are, on the host.

    Attributes
    ----------
    m, tau : int
        Embedding dimension and lag. 1 and 1 where the points are ``embedded`` already.
    metric : str
        One of :data:`pyedmcl.recurrence.metrics.METRICS`.
    dtype : str
        "float32" or "float64": what the sweep over the cells computes in.
    exact : bool
        The cells are those of float64 arithmetic on the given series, whatever ``dtype`` the sweep uses. Otherwise the
        series and the limits are rounded to ``dtype`` first.
    radii : tuple of float
        Ascending; all in one pass.
    inner : tuple of float or None
        Radius corridor: one inner radius for each of ``radii``; recurrent is ``inner < d`` and ``d < radius``
        (``inner <= d <= radius`` unless ``strict``).
    strict : bool
        ``d < r`` instead of ``d <= r``.
    theiler : int
        Cells with |i - j| < theiler are on no diagonal line; 0 keeps all.
    theiler_everywhere : bool
        These cells are also treated as not recurrent in vertical and white lines, columns, points and offsets.
        White runs are then interrupted by nothing: a dropped cell is white.
    n_rows, n_columns : int
        Points (after embedding).
    symmetric : bool
        There is no ``y``: the matrix is its own transpose, and all its cells are counted.
    embedded : bool
        ``x`` (and ``y``) are given as points, shape (n_rows, n_features); else as series, shape (n,).
    n_features : int
        Coordinates of a given point; 1 for series.
    exponent : int
        The points are those of the data times ``2**-exponent``; radii are in the unit of the data all the same.
    column_limits : ndarray of float64 (n_columns,) or None
        Where given, each column's own limit instead (fixed amount of neighbours). ``radii`` then has one entry that
        counts for nothing, and the problem is not ``symmetric``.
    joint : RqaProblem or None
        The partner of a joint recurrence: a cell counts as recurrent if it is recurrent in both, the partner's radius
        being the one of the same number. It has as many rows, columns and radii, and the same ``strict`` and Theiler
        fields.
    """

    m: int
    tau: int
    metric: str
    dtype: str
    exact: bool
    radii: tuple[float, ...]
    inner: tuple[float, ...] | None
    strict: bool
    theiler: int
    theiler_everywhere: bool
    n_rows: int
    n_columns: int
    symmetric: bool
    embedded: bool = False
    n_features: int = 1
    exponent: int = 0
    column_limits: NDArray[np.float64] | None = field(default=None, compare=False)
    joint: RqaProblem | None = None

    def __post_init__(self) -> None:
        metric_named(self.metric)  # an unknown one is refused here, before any kernel is made for it

    @property
    def arithmetic(self) -> str:
        """The precision that decides which cells are recurrent: "float64" where ``exact``, else ``dtype``."""
        return "float64" if self.exact else self.dtype

    @property
    def coordinates(self) -> int:
        """Numbers in a point."""
        return self.n_features if self.embedded else self.m

    @property
    def cell(self) -> dict[str, Any]:
        """Specialisation of the kernels that compute a cell by itself: coordinate e of point t lies at
        ``t * stride + e * step``."""
        return {
            "m": self.coordinates, "step": 1 if self.embedded else self.tau, "stride": self.n_features,
            "metric": self.metric, "dtype": self.arithmetic,
        }  # fmt: skip

    @property
    def k_first(self) -> int:
        """Offset j - i of the first diagonal that is walked."""
        return 0 if self.symmetric else 1 - self.n_rows

    @property
    def line_window(self) -> int:
        """Diagonals |k| < this hold no lines that a device counts: where the main diagonal of a symmetric matrix holds
        lines, these are added on the host."""
        return max(self.theiler, 1) if self.symmetric else self.theiler

    @property
    def n_radii(self) -> int:
        """How many matrices are counted at once."""
        return len(self.radii)

    def outer_limits(self) -> NDArray[np.float64]:
        """What is compared with the sums, one per radius; numbers of :attr:`arithmetic`, held as float64."""
        return self.limits_of(self.radii)

    def inner_limits(self) -> NDArray[np.float64] | None:
        """As :meth:`outer_limits` for the corridor's inner radii; None without a corridor."""
        return None if self.inner is None else self.limits_of(self.inner)

    def limits_of(self, radii: tuple[float, ...]) -> NDArray[np.float64]:
        """Radii in the unit of what is compared: rounded to the arithmetic, and again by the metric's formula.

        What overflows is a quarter of the largest number: gaps, which are kept as that number, recur with nothing
        still. What vanishes is the smallest normal number: points at a distance of 0 lie within any radius but 0.
        """
        thresholds, numbers = np.asarray(radii, np.float64), np.finfo(self.arithmetic)
        with np.errstate(over="ignore", under="ignore"):
            rounded: NDArray[Any] = np.ldexp(thresholds, -self.exponent).astype(self.arithmetic)
            exact = metric_named(self.metric).limit_of(rounded).astype(np.float64)
        limits: NDArray[np.float64] = np.minimum(exact, float(numbers.max / 4))
        return np.where(thresholds > 0, np.maximum(limits, float(numbers.tiny)), limits)


def require_precision(info: DeviceInfo, problem: RqaProblem) -> None:
    """Refuse a device that cannot compute in the problem's arithmetic, or in that of its partner. Raises InputError."""
    for partner in (problem, problem.joint):
        if partner is not None and partner.arithmetic == "float64" and not info.fp64:
            raise InputError(
                f"exact=True: the device {info.name} has no double precision, in which cells are decided here; "
                "use exact=False or another device"
            )
