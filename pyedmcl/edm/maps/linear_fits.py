"""Local linear fits (method "smap") of maps: what is asked for of them, checked, as plain numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...data.arguments import shown
from ...errors import InputError
from ..forecasts.predict_nonlinear import THETAS
from ..shared import arguments
from ..shared.ccm_directions import METHODS
from ..shared.regression import MOST_COORDINATES, check_thetas

if TYPE_CHECKING:
    from ...device.executor import Executor

KERNELS = ("stage", "smap_white", "smap_gram", "smap_map")
COEFFICIENTS = ("mean",)


@dataclass(frozen=True)
class LinearFits:
    """How rows are predicted where that is by local linear fits.

    Attributes
    ----------
    thetas : tuple of float
        Localisations that are computed.
    ridge : float
        Penalty on squared slopes.
    several : bool
        Whether a map for each theta is asked for.
    best : bool
        Whether the largest rho of each pair is asked for, with its theta.
    slopes : bool
        Whether mean slopes are a further layer of the result, (n_libraries, n_targets, largest E).
    """

    thetas: tuple[float, ...]
    ridge: float
    several: bool = False
    best: bool = False
    slopes: bool = False

    @property
    def layers(self) -> int:
        """Layers of the result."""
        return 2 if self.best else len(self.thetas) + self.slopes

    @property
    def kernels(self) -> tuple[str, ...]:
        """Kernels that the answer depends on."""
        return (*KERNELS, "smap_slopes") if self.slopes else KERNELS

    def arguments(self) -> dict[str, Any]:
        """What identifies the fits; plain numbers and text."""
        theta: Any = "best" if self.best else list(self.thetas) if self.several else self.thetas[0]
        named = {"method": "smap", "theta": theta, "ridge": self.ridge}
        return named | ({"coefficients": "mean"} if self.slopes else {})

    def operations(self, n_rows: int, n_series: int, n_targets: int, E: int) -> float:
        """Arithmetic operations of a whole map, roughly."""
        pairs = float(n_rows) ** 2 * n_series * len(self.thetas)
        slopes = 2 * E * (E + 2) if self.slopes else 0
        return pairs * (2.0 * n_targets + 11 * E + 24 + (E + 1) * (E + 2) + slopes)


def linear_fits(method: Any, theta: Any, ridge: Any, knn: Any) -> LinearFits | None:
    """The fits that were asked for, checked; None for method "simplex".

    Raises
    ------
    InputError
        An argument cannot be used.
    """
    method = arguments.choice("method", method, METHODS)
    best = isinstance(theta, str)
    if best and theta != "best":
        raise InputError(f"theta={shown(theta)}: a number of at least 0, several of them, or 'best' is needed")
    thetas = THETAS if best else tuple(check_thetas(theta).tolist())
    ridge = arguments.real("ridge", ridge, "a finite number of at least 0", lambda value: 0 <= value < np.inf)
    if method == "simplex":
        return None
    if knn is not None:
        raise InputError(
            f"knn={shown(knn)} with method='smap': all library rows enter a fit, weighted by theta; leave knn out"
        )
    return LinearFits(thetas, ridge, not best and np.ndim(theta) > 0, best)


def single_fits(method: Any, theta: Any, ridge: Any, knn: Any) -> LinearFits | None:
    """As :func:`linear_fits`, of one theta.

    Raises
    ------
    InputError
        An argument cannot be used.
    """
    if isinstance(theta, str) or np.ndim(theta) > 0:
        raise InputError(f"theta={shown(theta)}: one number of at least 0 is needed")
    return linear_fits(method, theta, ridge, knn)


def with_slopes(fits: LinearFits | None, coefficients: Any, alone: Mapping[str, Any]) -> LinearFits | None:
    """The fits, which are of one theta, with mean slopes where these are asked for.

    Parameters
    ----------
    fits : LinearFits or None
    coefficients : {None, "mean"}
    alone : mapping
        What mean slopes cannot be had with, by name; None where it was not given.

    Raises
    ------
    InputError
        They cannot be had.
    """
    if coefficients is None:
        return fits
    arguments.choice("coefficients", coefficients, COEFFICIENTS)
    argument = f"coefficients={shown(coefficients)}"
    if fits is None:
        raise InputError(f"{argument}: slopes are those of linear fits; take method='smap'")
    for name, given in alone.items():
        if given is not None:
            raise InputError(f"{argument} with {name}: slopes are held in memory; leave one of them out")
    return replace(fits, slopes=True)


def require_double(executor: Executor) -> None:
    """Refuse a device without double precision.

    Raises
    ------
    InputError
        Naming it.
    """
    if not executor.info.fp64:
        raise InputError(
            f"method='smap': {executor.info.name} lacks double precision, which sums of products need; choose "
            "another device, such as device='cpu'"
        )


def theta_of(named: Mapping[str, Any]) -> Any:
    """theta of a problem with these arguments: one or several numbers; None without."""
    theta = named.get("theta")
    return np.array(theta) if isinstance(theta, list) else theta


def require_coordinates(E: int) -> None:
    """Refuse a dimension that the kernels are not made for.

    Raises
    ------
    InputError
        Naming it.
    """
    if E > MOST_COORDINATES:
        raise InputError(f"method='smap': E up to {E}; at most {MOST_COORDINATES} are supported")
