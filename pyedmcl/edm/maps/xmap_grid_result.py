"""What a grid of cross maps returns: skill with named axes, and what is chosen along one of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.arguments import real
from ...data.grid import Grid
from ...errors import InputError, shown
from ...io.edges import are_two
from ...io.fields import labelled
from ...io.optional import need, pandas_for
from ...io.result import Result
from ...io.roles import ROLES, roles

Grids = tuple[Grid | None, Grid | None]
_BLOCK_BYTES = 64 << 20  # of all maps, that are looked at together


def as_tolerance(tolerance: float, name: str = "tolerance") -> float:
    """How far below the best a skill may be that counts as saturated. Raises InputError, which says ``name``."""
    return real(name, tolerance, "a number of at least 0", lambda value: 0 <= value < np.inf)


def _ends(grid: XmapGrid | GridChoice) -> list[tuple[str, Any]]:
    """Names and labels of the axes of libraries and targets."""
    columns = grid.names if grid.targets is None else grid.targets
    return [("library", grid.grids[0] or grid.names), ("target", grid.grids[1] or columns)]


def _table(grid: XmapGrid | GridChoice, **values: Any) -> Any:
    """A pandas DataFrame of the axes, the roles and the ``values`` of each pair of two series."""
    library, target = np.nonzero(are_two(grid.names, grid.targets))
    targets = grid.targets or grid.names
    pairs = [roles(grid.names[i], targets[j]) for i, j in zip(library, target, strict=True)]
    table = [(*of_axes, *pair) for of_axes in itertools.product(*grid.axes.values()) for pair in pairs]
    frame = pandas_for("to_frame()").DataFrame(table, columns=[*grid.axes, *ROLES])
    return frame.assign(**{name: np.asarray(held)[..., library, target].ravel() for name, held in values.items()})


@dataclass(frozen=True, eq=False, repr=False)
class XmapGrid(Result):
    """Cross-map skill for all combinations of parameters.

    Attributes
    ----------
    rho : array_like (*axes, n_libraries, n_targets)
        Row = library, column = target. An array, or a lazy one where ``out=`` was given: ``numpy.asarray`` reads it.
    axes : dict
        Name to values of each axis before libraries and targets: "fold", "E", "tau", "Tp", "theta", of these the ones
        that were given several values. ``fixed`` has the others.
    names : tuple of str
        Of the libraries.
    targets : tuple of str or None
        Names of the targets, where these are not the libraries.
    fixed : dict
        Parameters of one value.
    grids : (Grid or None, Grid or None)
        Where libraries and targets lie, if they are fields.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> grid = pyedmcl.xmap_grid(network.values, E=range(1, 6), Tp=[-1, 0])
    >>> grid.axes
    {'E': (1, 2, 3, 4, 5), 'Tp': (-1, 0)}
    >>> grid.sel(E=3, Tp=0).rho.shape  # the map of these values
    (4, 4)
    >>> grid.sel(Tp=0).best("E").chosen[0].tolist()  # the E in which the states of x0 predict x0, ..., x3 best
    [1.0, 5.0, 2.0, 1.0]
    """

    rho: Any
    axes: Mapping[str, tuple[Any, ...]]
    names: tuple[str, ...]
    targets: tuple[str, ...] | None = None
    fixed: Mapping[str, Any] = field(default_factory=dict)
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)
    grids: Grids = field(default=(None, None), repr=False)

    def held(self) -> XmapGrid:
        """The same result in memory, without its folder."""
        return replace(self, rho=np.asarray(self.rho))

    def sel(self, **values: Any) -> XmapGrid:
        """The part at some values, as ``sel(E=3, tau=2)``: axes that are named are gone."""
        index: list[Any] = [slice(None)] * len(self.axes)
        for name, value in values.items():
            place = self._place(name)
            if value not in self.axes[name]:
                raise InputError(f"{name}={shown(value)} is not on the grid; there are {self._listed(name)}")
            index[place] = self.axes[name].index(value)
        rest = {name: labels for name, labels in self.axes.items() if name not in values}
        if isinstance(self.rho, np.ndarray):
            rho: Any = self.rho[tuple(index)]
        else:
            shape = [len(labels) for labels in self.axes.values()]
            rho = self.rho.take(np.asarray(np.arange(int(np.prod(shape))).reshape(shape)[tuple(index)]))
        return replace(self, rho=rho, axes=rest, fixed={**self.fixed, **values})

    def mean(self, axis: str = "fold") -> XmapGrid:
        """Mean skill over an axis, of folds as a rule; NaN where one of them has none."""
        place = self._place(axis)
        rest = {name: own for name, own in self.axes.items() if name != axis}
        rho = self._reduced(lambda rows: np.mean(rows, axis=place, dtype=np.float64).astype(rows.dtype))[0]
        return replace(self, rho=rho, axes=rest)

    def saturation(self, tolerance: float = 0.02) -> GridChoice:
        """Of each pair the smallest E whose skill is within ``tolerance`` of the best, and its skill.

        This is the functional causal flow of a pair: ``rho`` of the choice; its asymmetry is ``directionality()``.
        """
        return self._chosen("E", as_tolerance(tolerance))

    def best(self, axis: str) -> GridChoice:
        """Of each pair the value along an axis with the highest skill, of equal ones the smallest, and that skill."""
        return self._chosen(axis, 0.0)

    def _chosen(self, axis: str, tolerance: float) -> GridChoice:
        place = self._place(axis)
        values = np.asarray(self.axes[axis], np.float64)
        ascending = np.argsort(values, kind="stable")

        def choose(rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
            skill = np.moveaxis(rows, place, 0)[ascending]
            ranked = np.where(np.isnan(skill), -np.inf, skill)
            first = np.argmax(ranked >= ranked.max(axis=0) - tolerance, axis=0)
            rho = np.take_along_axis(skill, first[None], axis=0)[0]
            return rho, np.where(np.isnan(rho), np.nan, values[ascending][first])

        rho, chosen = self._reduced(choose)
        rest = {name: own for name, own in self.axes.items() if name != axis}
        return GridChoice(rho, chosen, axis, rest, self.names, self.targets, tolerance, self.provenance, self.grids)

    def _reduced(self, function: Callable[[NDArray[Any]], Any]) -> list[NDArray[Any]]:
        """What a function gives of blocks of libraries of all maps, put together."""
        *lengths, n, width = self.rho.shape
        step = max(_BLOCK_BYTES // (int(np.prod(lengths)) * width * self.rho.dtype.itemsize), 1)
        parts = []
        for begin in range(0, n, step):
            end = min(begin + step, n)
            rows = self.rho[..., begin:end, :] if isinstance(self.rho, np.ndarray) else self.rho.rows(begin, end)
            reduced = function(rows)
            parts.append(reduced if isinstance(reduced, tuple) else (reduced,))
        return [np.concatenate(each, axis=-2) for each in zip(*parts, strict=True)]

    def _place(self, axis: str) -> int:
        if axis not in self.axes:
            names = ", ".join(self.axes) or "none"
            raise InputError(f"there is no axis {shown(axis)}: axes of this grid are {names}")
        return list(self.axes).index(axis)

    def _listed(self, axis: str) -> str:
        return ", ".join(map(str, self.axes[axis]))

    def to_xarray(self) -> Any:
        """An xarray.DataArray with the axes' names and values, "library" and "target", or those of a field."""
        axes = [*((name, list(own)) for name, own in self.axes.items()), *_ends(self)]
        return labelled(np.asarray(self.rho), axes, "rho").assign_attrs(dict(self.fixed))

    def to_frame(self) -> Any:
        """A pandas DataFrame: a row for each combination and pair of two series, with axes, both roles, and rho.

        The roles are cause and effect, and what the method calls them: library and target.
        """
        return _table(self, rho=self.rho)

    def plot(self, path: str | None = None) -> Any:
        """Skill over the first axis, in the mean over folds: median and middle half of all pairs; the map itself where
        no axis is left. Saved to ``path`` if given. Needs matplotlib."""
        from ...plot import heat_map
        from ...plot.grid import skill_over_axis

        if not self.axes:
            return heat_map(self.rho, self.names, path, targets=self.targets)
        return skill_over_axis(self, path)


@dataclass(frozen=True, eq=False, repr=False)
class GridChoice(Result):
    """What is chosen along an axis of a grid of cross maps, for each pair.

    Attributes
    ----------
    rho : ndarray (*axes, n_libraries, n_targets)
        Skill at the chosen value; NaN where there is none.
    chosen : ndarray of float64 (*axes, n_libraries, n_targets)
        That value, such as E or Tp; NaN where there is no skill.
    axis : str
        Of which it is a value.
    axes : dict
        The other axes.
    names : tuple of str
    targets : tuple of str or None
    tolerance : float
        By how much the skill may be below the best.
    grids : (Grid or None, Grid or None)
        Where libraries and targets lie, if they are fields.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> flow = pyedmcl.xmap_grid(network.values, E=range(1, 6)).saturation(0.02)
    >>> flow.chosen[0].tolist()  # the smallest E in which the states of x0 predict x0, ..., x3 nearly as well as in any
    [1.0, 5.0, 2.0, 1.0]
    >>> bool(flow.directionality()[0, 2] > 0)  # x2 drives x0 more than x0 drives x2
    True
    """

    rho: NDArray[Any]
    chosen: NDArray[np.float64]
    axis: str
    axes: Mapping[str, tuple[Any, ...]]
    names: tuple[str, ...]
    targets: tuple[str, ...] | None = None
    tolerance: float = 0.0
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)
    grids: Grids = field(default=(None, None), repr=False)

    def directionality(self) -> NDArray[Any]:
        """Skill less that of the opposite direction, rho - rho.T: positive where the target drives the library more.

        Raises
        ------
        InputError
            Targets are other series than libraries.
        """
        if self.targets is not None:
            raise InputError("directionality() compares both directions of a pair: the targets must be the libraries")
        difference: NDArray[Any] = self.rho - np.swapaxes(self.rho, -1, -2)
        return difference

    def to_xarray(self) -> Any:
        """An xarray.Dataset of rho and of what was chosen, such as E (axes, library, target)."""
        axes = [*((name, list(own)) for name, own in self.axes.items()), *_ends(self)]
        parts = {"rho": labelled(self.rho, axes, "rho"), self.axis: labelled(self.chosen, axes, self.axis)}
        return need("xarray", "to_xarray()").Dataset(parts)

    def to_frame(self) -> Any:
        """A pandas DataFrame: a row for each pair of two series, with other axes, both roles, rho and the choice."""
        frame = _table(self, rho=self.rho, **{self.axis: self.chosen})
        without_gaps = self.axis != "theta" and not frame[self.axis].isna().any()
        return frame.astype({self.axis: int}) if without_gaps else frame

    def plot(self, path: str | None = None) -> Any:
        """Heat map of the skill; saved to ``path`` if given. Needs matplotlib."""
        from ...plot import heat_map

        if self.axes:
            raise InputError(f"a picture shows one map: choose values of {', '.join(self.axes)} by sel() of the grid")
        return heat_map(self.rho, self.names, path, targets=self.targets)
