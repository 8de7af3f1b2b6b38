"""Cross maps for all combinations of E, tau, Tp, theta and folds, as one job."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..arguments import place_of, real
from ..atomic_files import path_of
from ..device.info import DeviceInfo
from ..device.select import DeviceNames
from ..errors import InputError, StoreError, StoreForeignError, StoreMismatchError, need, pandas_for, shown
from ..jobs import durable
from ..jobs.blocks import Arrays, Block, BlockResult, Manifest, Report, cut, default_block_rows
from ..jobs.claims import Member, begin_of, require_alone
from ..jobs.records import DamagedError, checked, read_checked, require_plain
from ..jobs.runner import ArraySink, PairsSink, public_function
from ..jobs.sharing import sink_at
from ..jobs.store import XmapStore, open_store, several_to_write
from ..launch.progress import Progress
from ..results.edges import are_two
from ..results.result import Result, labelled
from ..results.tables import ROLES, roles
from ..series.fields import Grid, grids_from
from ..series.series import check_embedding, require_rows
from ..states import arguments
from ..states.rows import MapRows, rows_of
from ..states.states import check_thetas
from .linear_fits import MapCells, linear_fits
from .pairs import check_map_precision, libraries_of_a_block, pairs_in_groups, tell_in_full
from .problem import XmapProblem

if TYPE_CHECKING:
    from ..device.executor import Executor


# A grid of cross maps as a job: the combinations, and the engine that computes blocks of libraries of them.


#: Axes of a grid, in the order of its result.
AXES = ("fold", "E", "tau", "Tp", "theta")


@dataclass(frozen=True)
class XmapGridProblem:
    """Maps of the same libraries and targets for all combinations of parameters; each is a layer of the result."""

    # One map each, in the order of the axes.
    cells: tuple[XmapProblem, ...]
    # Libraries of a block.
    block_rows: int

    @property
    def unit(self) -> str:
        return "series"

    @property
    def total(self) -> int:
        return self.cells[0].total * len(self.cells)

    def size(self, block: Block) -> int:
        return len(block) * len(block.layers)

    def blocks(self) -> list[Block]:
        """Ranges of libraries, each with all maps."""
        return cut(self.cells[0].total, self.block_rows, len(self.cells))

    @property
    def kernels(self) -> Sequence[str]:
        return self.cells[0].kernels

    @property
    def operations(self) -> float:
        return sum(cell.operations for cell in self.cells)

    def open(self, executor: Executor) -> XmapGridEngine:
        return XmapGridEngine(self, executor)


class XmapGridEngine:
    """The engine of :class:`XmapGridProblem`; maps that share a search are computed together."""

    def __init__(self, problem: XmapGridProblem, executor: Executor) -> None:
        self._n = problem.cells[0].target_data.series.n_series
        self._dtype = np.dtype(problem.cells[0].data.dtype)
        self._cells = MapCells(executor, problem.cells)

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """rho (libraries of the block, n_targets) of each of the block's maps."""
        if into is None:
            into = [np.empty((len(block), self._n), self._dtype) for _ in block.layers]
        return BlockResult(into, self._cells.maps(block.begin, block.end, block.layers, into, report))

    def release(self) -> None:
        """Give the device memory back."""
        self._cells.release()


def cells_of(
    common: Mapping[tuple[int, int], XmapProblem], rows: Mapping[tuple[int, int], Sequence[MapRows]],
    axes: dict[str, tuple[Any, ...]],
) -> tuple[XmapProblem, ...]:  # fmt: skip
    """A problem for each combination of values on the axes, of which there is one of each at least.

    Parameters
    ----------
    common : mapping
        What maps of a tau and a Tp have in common.
    rows : mapping
        Of each fold; one choice of rows, or none, without folds.
    axes : dict
        Values of E, tau, Tp and theta; theta is None without local linear fits.
    """
    first = next(iter(common.values()))
    n, folds = first.target_data.series.n_series, len(next(iter(rows.values())))
    cells = []
    for fold, E, tau, Tp, theta in itertools.product(range(max(folds, 1)), *(axes[name] for name in AXES[1:])):
        cell = common[tau, Tp]
        fits = None if cell.fits is None else replace(cell.fits, thetas=(theta,), several=False)
        chosen = rows[tau, Tp][fold] if folds else None
        cells.append(replace(cell, E=(E,) * n, tau=tau, Tp=Tp, fits=fits, rows=chosen))
    return tuple(cells)


# What a grid of cross maps returns: skill with named axes, and what is chosen along one of them.


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

    answer_columns = ("cause", "effect", "-rho", "E", "tau", "Tp", "theta", "exclusion_radius", "fold")

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
            index[place] = place_of(name, value, self.axes[name], "is not on the grid")
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
        if not isinstance(axis, str) or axis not in self.axes:
            names = ", ".join(self.axes) or "none"
            raise InputError(f"there is no axis {shown(axis)}: axes of this grid are {names}")
        return list(self.axes).index(axis)

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
        from ..plot import heat_map
        from ..plot.curves import skill_over_axis

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

    answer_columns = ("cause", "effect", "-rho", "E", "tau", "Tp", "theta", "exclusion_radius", "fold")

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
        from ..plot import heat_map

        if self.axes:
            raise InputError(f"a picture shows one map: choose values of {', '.join(self.axes)} by sel() of the grid")
        return heat_map(self.rho, self.names, path, targets=self.targets)


# The folder of a grid of cross maps: a store for each combination, which open_xmap opens too, and a list of them.


_LIST = "grid.json"
_FILES, _OTHER_FILES = 2, 256  # that a store keeps open (lease and journal), and what else a process may have open


def map_name(cell: XmapProblem) -> str:
    """Folder of the map of one combination."""
    named = cell.arguments()
    theta = f"-theta_{named['theta']}" if "theta" in named else ""
    fold = f"-fold_{named['fold']}_of_{named['folds']}" if "fold" in named else ""
    return f"E_{named['E']:02d}-tau_{cell.tau}-Tp_{cell.Tp}{theta}{fold}"


def is_grid(path: Path) -> bool:
    """Whether a folder holds a grid."""
    return (path / _LIST).is_file()


def require_grid(path: Path) -> None:
    """Refuse a folder that holds other things than a grid."""
    if not os.path.lexists(path):
        return
    require_plain(path)
    content = os.listdir(path) if path.is_dir() else ["it"]
    if _LIST not in content and not all(name.startswith(durable.PRIVATE_PREFIX) for name in content):
        raise StoreForeignError(
            f"{path} was not written by pyedmcl xmap-grid and is left alone: choose another output path"
        )


def open_stores(
    path: Path, cells: Sequence[XmapProblem], axes: dict[str, Any], info: DeviceInfo, member: Member | None, *,
    resume: bool,
) -> list[XmapStore]:  # fmt: skip
    """Stores of all maps, in their order, open for writing, with their E."""
    require_grid(path)
    if member is None:
        require_alone(path)
    _allow_files(_FILES * len(cells) + _OTHER_FILES)
    manifests = {map_name(cell): cell.manifest(info) for cell in cells}
    if not (path / _LIST).exists():  # before its maps, so that a folder of a run that was killed is known as a grid
        _write_list(path, axes, manifests)
    with several_to_write(path, manifests, member, resume=resume) as stores:
        for store, cell in zip(stores, cells, strict=True):
            if store.E is None:
                store.set_E(np.array(cell.E, int))
        _write_list(path, axes, {store.path.name: store.manifest for store in stores})
    return stores


def _allow_files(wanted: int) -> None:
    """Let this process have ``wanted`` files open, as far as the system allows it to ask for that."""
    try:
        import resource  # not on Windows, which has no such limit
    except ImportError:
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (max(most, soft), hard))


def _write_list(path: Path, axes: dict[str, Any], manifests: Mapping[str, Manifest]) -> None:
    """Say which maps a grid has, in the order of its axes, and what each must be."""
    ordered = [[name, list(values)] for name, values in axes.items()]  # names alone would be sorted
    maps = [[name, manifest.identity] for name, manifest in manifests.items()]
    with durable.explained(f"{path} cannot be written", ", or choose another output path"):
        durable.make_folder(path)
        durable.write_file(path / _LIST, checked({"axes": ordered, "maps": maps}))


def read_grid(path: Path) -> tuple[dict[str, Any], list[XmapStore]]:
    """Axes of a grid and the stores of its maps, for reading."""
    require_plain(path)
    try:
        record = read_checked(path / _LIST)
        if record is None:
            raise StoreForeignError(f"{path} is no result of pyedmcl xmap-grid: name the folder that it wrote")
        axes = {str(name): tuple(values) for name, values in record["axes"]}
        stores = {str(name): open_store(path / str(name)) for name, _ in record["maps"]}
        for name, identity in record["maps"]:
            if stores[name].manifest.identity != identity:
                raise StoreMismatchError(
                    f"{path / name} is a map of another grid, or of another combination of this one: bring the right "
                    "one back from a copy, or remove it and run the same command again"
                )
        return axes, list(stores.values())
    except NotADirectoryError as error:
        raise StoreForeignError(f"{path} is no result of pyedmcl xmap-grid: name the folder that it wrote") from error
    except (DamagedError, OSError, LookupError, TypeError, ValueError) as error:
        raise StoreError(f"{path / _LIST} is damaged ({error}): run the same command again, which mends it") from error


class StoredGrid:
    """Maps of a grid on the disk, which are read when they are used; ``numpy.asarray`` reads all.

    Parameters
    ----------
    maps : sequence of array_like
        In the order of the axes.
    shape : tuple of int
        Lengths of the axes, of libraries and of targets.
    """

    def __init__(self, maps: Sequence[Any], shape: tuple[int, ...]) -> None:
        self.maps, self.shape = list(maps), shape
        self.ndim = len(shape)
        self.dtype = np.dtype(self.maps[0].dtype)

    def __repr__(self) -> str:
        return f"StoredGrid(shape={self.shape}, dtype={self.dtype})"

    def rows(self, begin: int, end: int) -> NDArray[Any]:
        """Libraries ``begin`` to ``end - 1`` of all maps: (*axes, end - begin, n_targets)."""
        layers = np.stack([np.asarray(one[begin:end]) for one in self.maps])
        return layers.reshape(*self.shape[:-2], *layers.shape[1:])

    def take(self, places: NDArray[np.int_]) -> StoredGrid:
        """The maps at some places, counted over all axes, in the shape of ``places``."""
        return StoredGrid([self.maps[place] for place in places.ravel()], (*places.shape, *self.shape[-2:]))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self.rows(0, self.shape[-2]).astype(dtype or self.dtype, copy=False)

    def __getitem__(self, key: Any) -> Any:
        return np.asarray(self)[key]


# Cross maps for all combinations of E, tau, Tp, theta and folds, as one job.


@public_function
def xmap_grid(
    data: Any,
    *,
    E: int | Sequence[int] = range(1, 11),
    tau: int | Sequence[int] = 1,
    Tp: int | Sequence[int] = 0,
    theta: float | Sequence[float] | None = None,
    exclusion_radius: int = 0,
    knn: int | None = None,
    ridge: float = 0.0,
    columns: Sequence[str | int] | str | int | None = None,
    targets: Any = None,
    groups: Any = None,
    regular: str | None = None,
    lib_range: Any = None,
    pred_range: Any = None,
    folds: int | None = None,
    precision: str = "full",
    out: str | os.PathLike[str] | None = None,
    resume: bool = True,
    join: bool = False,
    part: str | None = None,
    neighbors: str = "exact",
    recall: float = 0.99,
    progress: Progress | bool | None = None,
    dtype: str = "float32",
    device: DeviceNames = None,
    client: Any = None,
    tune: str | None = None,
) -> XmapGrid:
    """Cross map every series onto every other for each combination of E, tau, Tp, theta and folds.

    Each map is that of :func:`pyedmcl.xmap` with these parameters, bit by bit. Together they cost less: data are
    checked and uploaded once, and all E share one search, as a distance in dimension E is that in E - 1 and one term.

    Parameters
    ----------
    data : array_like (n_steps, n_series)
        Time along the first axis, NaN for gaps.
    E, tau, Tp : int or sequence of int
        Embedding dimension of all targets, lag, and steps between library row and target. A sequence of different
        values is an axis of the result.
    theta : float or sequence of float, optional
        Predict by local linear fits with this localisation (``method="smap"`` of :func:`pyedmcl.xmap`); by nearest
        neighbours without.
    exclusion_radius : int
        Rows with |t - j| up to this are no neighbours (0: the row itself).
    knn : int, optional
        Neighbours; the number of coordinates + 1 by default. Of method "simplex".
    ridge : float
        Penalty of linear fits on the squared slopes, as solver "ridge" of :func:`pyedmcl.smap` has it; 0 for none.
    columns : str, int, or sequence of these, optional
        Which series to take, by name or position; names with a minus before them are left out.
    targets : optional
        What is predicted, where that is not the libraries themselves: names or positions of columns of ``data``, or
        other series over the same rows, in any of the forms of ``data``.
    groups : str, sequence of str, or labels (n_steps,), optional
        Recordings (subjects, plots, replicates) that stand one below the other: columns of the data or levels of its
        index, or a label for each row. No state and no target crosses a border.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows (an index of dates or numbers, a coordinate, a time column) are not regular,
        which is refused by default. "insert" puts rows of NaN where rows are missing: ranges and masks are moved along,
        and rows of the result are those of the longer table. "ignore" takes the rows as they come. Dates whose index
        has a frequency are regular.
    lib_range : (int, int), sequence of (int, int), or mask of bool, optional
        Rows of the library: ranges begin <= t < end, 0-based, in which lags and targets of a row lie, too; or a mask,
        whose rows are taken as they are.
    pred_range : (int, int), sequence of (int, int), or mask of bool, optional
        Rows that are predicted, in the same form; their lags may lie before them.
    folds : int, optional
        Cross-validation as by :func:`pyedmcl.xmap`, but folds are the first axis of the result; ``mean("fold")``
        averages them.
    precision : {"full", "compact"}
        "compact" looks targets up in 16 bits, which may change rho by up to 2e-5 and takes GPUs as little as half the
        time of a lookup; processors gain nothing. Targets with a range too wide for that, pairs whose predictions
        hardly vary or are made of few rows, and maps of data with gaps are computed in full;
        ``provenance["precision"]`` and a warning say how many targets were. Fewer than 128 targets of one E are
        computed in full without a warning: 16 bits save nothing there. Linear fits predict on matrix units where the
        device has them, which changes rho by up to 1e-5, and in full elsewhere. See ``docs/approximate.md``.
    out : path, optional
        A folder for the result, with a store for each map that :func:`pyedmcl.open_xmap` opens too. The same call
        continues after an interruption, and one with more values keeps the maps that are there.
    resume : bool
        False starts ``out`` afresh.
    join : bool
        Several processes, on any machines that share the folder ``out``, compute one result: each takes blocks that
        nobody has taken, also those of who was lost, and returns when all is done. See ``docs/scale.md``.
    part : str, optional
        "I/N": this process is the I-th (from 1) of N that join, and begins at its share of the blocks; it goes on with
        what others leave. Implies ``join``; by default as the scheduler says (SLURM, Grid Engine, LSF, MPI).
    neighbors : {"exact", "auto", "exhaustive", "pruned", "kdtree", "ivf", "hnsw"}
        How neighbours are searched. "exact" takes the fastest of "exhaustive" (compares all pairs), "pruned" and
        "kdtree", which find the same neighbours; so does "auto", to which an approximate search would be allowed, too.
        "ivf" and "hnsw" may miss some. Where there was a choice, ``provenance["neighbors"]`` says which ran, why, and
        its recall.
    recall : float
        Share of the true neighbours, in (0, 1], that an approximate search must find.
    progress : callable or True, optional
        Called as ``progress(done, total, unit)``, where the unit says what is counted, such as "series"; True shows a
        bar.
    dtype : {"float32", "float64"}
        What the device computes in.
    device : str or sequence of str, optional
        Which device, or several that share the work; see ``pyedmcl devices``.
    client : optional
        Workers of a cluster that compute instead of this process: a ``dask.distributed.Client``, an ``Executor`` of
        ``concurrent.futures`` (spawned processes, MPI, loky), or another object with ``submit``. Each opens ``device``
        where it runs; see ``docs/scale.md``.
    tune : {"never", "cached", "auto", "force"}, optional
        Which tuned parameters kernels take, which changes speed and never the answer; ``PYEDMCL_TUNE`` or "cached" by
        default.

    Returns
    -------
    XmapGrid
        ``rho`` (*axes, n_libraries, n_targets), ``axes``; ``sel(E=3)``, ``saturation(0.02)``, ``best("Tp")``,
        ``mean("fold")``, ``to_xarray()``, ``to_frame()``, ``plot()``.

    Raises
    ------
    InputError
        Data or an argument cannot be used; the result does not fit into memory, with what it needs.
    DeviceNotFoundError, DeviceMemoryError
        No device matches; the targets or a table do not fit.
    StoreForeignError, StoreMismatchError, StoreWriteError
        ``out`` is not ours, belongs to other data or parameters, or cannot be written.
    Interrupted
        Ctrl-C with ``out``: what was finished is kept.
    ClientError
        Workers of ``client`` cannot be used, or were lost.

    See Also
    --------
    xmap : one map.
    embedding_scan : skill of series by themselves over E, tau and Tp.

    Notes
    -----
    Cost: for each tau and Tp a search of about n_steps^2 * max(E) multiply-adds for each library, and n_steps * (E + 1)
    for each pair and E. With ``folds``, or ``lib_range`` that begins behind row 0, the library of each E has other
    rows, so that each is searched by itself.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> grid = pyedmcl.xmap_grid(network.values, E=range(1, 6), Tp=[-1, 0])
    >>> grid.rho.shape  # E, Tp, library, target
    (5, 2, 4, 4)
    >>> flow = grid.sel(Tp=0).saturation(0.02)  # the smallest E that is nearly the best, of each pair
    >>> flow.chosen.shape, flow.directionality().shape
    ((4, 4), (4, 4))
    """
    begin = begin_of(join, part, out, "out", resume=resume)
    method = "simplex" if theta is None else "smap"
    values_of: dict[str, tuple[Any, ...]] = {
        "E": _axis("E", E, lambda value: check_embedding(value, 1)[0]),
        "tau": _axis("tau", tau, lambda value: check_embedding(1, value)[1]),
        "Tp": _axis("Tp", Tp, lambda value: arguments.integer("Tp", value)),
        "theta": (None,) if theta is None else _thetas(theta),
    }
    fits = linear_fits(method, values_of["theta"][0] if theta is not None else 1.0, ridge, knn)
    precision = check_map_precision(precision, dtype, {})

    def fields_of(lag: int, steps: int) -> tuple[dict[str, Any], tuple[MapRows, ...]]:
        """What maps of a lag and an interval have in common, and their rows: gaps between groups depend on both."""
        fields, layout = pairs_in_groups(
            data, E=max(values_of["E"]), tau=lag, Tp=steps, exclusion_radius=exclusion_radius, knn=knn, E_max=1,
            columns=columns, neighbors=neighbors, recall=recall, dtype=dtype, targets=targets, groups=groups,
        )  # fmt: skip
        return fields, rows_of(lib_range, pred_range, folds, fields["data"].series.n_steps, layout)

    fields, chosen_rows = fields_of(max(values_of["tau"]), values_of["Tp"][0])
    series = fields["data"].series
    for steps in values_of["Tp"]:
        require_rows(series, E=max(values_of["E"]), tau=max(values_of["tau"]), Tp=steps, k=1)
    axes = _axes_of(values_of, {"E": E, "tau": tau, "Tp": Tp, "theta": theta}, folds)
    fixed = {name: values[0] for name, values in values_of.items() if name not in axes and values[0] is not None}
    runner = arguments.runner_on(device, fields["data"].dtype, client)
    target_series = fields["targets"].series if "targets" in fields else None
    shape = series.n_series, (target_series or series).n_series
    lengths = tuple(len(values) for values in axes.values())
    rows = libraries_of_a_block(shape[0], runner.devices)
    if out is not None:
        rows = default_block_rows(*(shape if target_series else shape[:1]))
    together: dict[tuple[int, int], tuple[dict[str, Any], tuple[MapRows, ...]]] = {}
    for pair in itertools.product(values_of["tau"], values_of["Tp"]):
        together[pair] = (fields, chosen_rows) if groups is None else fields_of(*pair)
    cells = _cells(together, values_of, block_rows=rows, fits=fits, precision=precision)
    problem = XmapGridProblem(cells, rows)
    rho: Any = None
    with contextlib.ExitStack() as stack:
        sink: PairsSink
        if out is not None:
            info, folder = runner.alike(problem.kernels), Path(out)
            sink = stack.enter_context(sink_at(
                folder, info.name, begin, lambda member: open_stores(folder, cells, axes, info, member, resume=resume)
            ))  # fmt: skip
        else:
            rho = _room((*lengths, *shape), fields["data"].dtype)
            sink = ArraySink(problem.blocks(), list(rho.reshape(len(cells), *shape)))
        record = runner.run(problem, sink)
    axis_values = {name: list(values) for name, values in axes.items()} | fixed
    used = runner.provenance(problem.kernels, record, arguments=cells[0].arguments() | axis_values)
    tell_in_full(used)
    if out is not None:
        return _stored(Path(out), fixed, used)
    grids = series.grid, (target_series or series).grid
    return XmapGrid(rho, axes, series.names, target_series and target_series.names, fixed, used, grids)


def open_xmap_grid(path: str | os.PathLike[str]) -> XmapGrid:
    """Open a result that ``xmap_grid(..., out=path)`` or the command line wrote; maps are read when they are used.

    Parameters
    ----------
    path : path
        The folder that was given as ``out``.

    Returns
    -------
    XmapGrid

    Raises
    ------
    StoreForeignError
        The path is not such a result.
    StoreError
        It is damaged.

    See Also
    --------
    xmap_grid : makes such a result.

    Notes
    -----
    Cost: reads the manifests only.

    Examples
    --------
    >>> import tempfile
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = pyedmcl.xmap_grid(network.values, E=[1, 2], out=f"{folder}/grid")
    ...     pyedmcl.open_xmap_grid(f"{folder}/grid").sel(E=2).rho.shape
    (4, 4)
    """
    return _stored(path_of(path), None, None)


def _stored(path: Path, fixed: dict[str, Any] | None, used: dict[str, Any] | None) -> XmapGrid:
    axes, stores = read_grid(path)
    lengths = tuple(len(values) for values in axes.values())
    if not stores or int(np.prod(lengths)) != len(stores):
        raise StoreForeignError(f"{path} holds {len(stores)} maps, not those of a grid of {lengths}")
    first = stores[0].manifest
    if fixed is None:
        fixed = {name: first.parameters[name] for name in AXES if name in first.parameters and name not in axes}
    used = used or {"manifest": first}
    rho = StoredGrid([store.rho for store in stores], (*lengths, *stores[0].shape))
    return XmapGrid(rho, axes, stores[0].names, stores[0].targets, fixed, used, grids_from(first.grids))


def _cells(
    together: dict[tuple[int, int], tuple[dict[str, Any], tuple[MapRows, ...]]], values_of: dict[str, tuple[Any, ...]],
    **same: Any,
) -> tuple[XmapProblem, ...]:
    """The maps of the grid, from what those of each lag and interval have in common, and the same fields of all."""
    common = {pair: XmapProblem(**fields, **same) for pair, (fields, _) in together.items()}
    cells = cells_of(common, {pair: rows for pair, (_, rows) in together.items()}, values_of)
    for cell in cells:
        if cell.rows is not None:
            cell.rows.require(cell.data.series.n_steps, values_of["E"], cell.tau, cell.Tp)
    return cells


def _axis(name: str, argument: Any, checked: Any) -> tuple[int, ...]:
    """Different values along an axis."""
    values = tuple(int(checked(value)) for value in arguments.several(name, argument))
    if not values or len(set(values)) != len(values):
        raise InputError(f"{name}={shown(argument)}: one value or several different ones are needed")
    return values


def _thetas(theta: Any) -> tuple[float, ...]:
    if isinstance(theta, str):
        raise InputError(f"theta={shown(theta)}: a number of at least 0, or several of them; best('theta') chooses")
    values = tuple(check_thetas(theta).tolist())
    if len(set(values)) != len(values):
        raise InputError(f"theta={shown(theta)}: one value or several different ones are needed")
    return values


def _axes_of(
    values_of: dict[str, tuple[Any, ...]], passed: dict[str, Any], folds: int | None
) -> dict[str, tuple[Any, ...]]:
    """The axes of the result: folds, and what was given as a sequence."""
    axes: dict[str, tuple[Any, ...]] = {} if folds is None else {"fold": tuple(range(int(folds)))}
    return axes | {name: values for name, values in values_of.items() if np.ndim(passed[name]) > 0 or len(values) > 1}


def _room(shape: tuple[int, ...], dtype: str) -> Any:
    try:
        return arguments.room("grid", shape, dtype)
    except InputError as error:
        raise InputError(f"{error}, or give out=, which keeps it on the disk") from error
