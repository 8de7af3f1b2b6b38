"""Cross maps for all combinations of E, tau, Tp, theta and folds, as one job."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...data.arguments import shown
from ...data.grid import grids_from
from ...data.series import check_embedding, require_rows
from ...device.select import DeviceNames
from ...errors import InputError, StoreForeignError
from ...files import path_of
from ...jobs.blocks import default_block_rows
from ...jobs.function import public_function
from ...jobs.shared import sink_at
from ...jobs.sinks import ArraySink, PairsSink
from ...jobs.turns import begin_of
from ...launch.progress import Progress
from ..shared import arguments
from ..shared.map_rows import MapRows, rows_of
from ..shared.regression import check_thetas
from .linear_fits import linear_fits
from .map_precision import check_map_precision, tell_in_full
from .pairs import libraries_of_a_block, pairs_in_groups
from .xmap_grid_problem import AXES, XmapGridProblem, cells_of
from .xmap_grid_result import XmapGrid
from .xmap_grid_store import StoredGrid, open_stores, read_grid
from .xmap_problem import XmapProblem


@public_function
def xmap_grid(
    data: Any,
    *,
    E: int | Sequence[int],
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
        As for :func:`pyedmcl.xmap`.
    E, tau, Tp : int or sequence of int
        Embedding dimension of all targets, lag, and steps between library row and target. A sequence of different
        values is an axis of the result.
    theta : float or sequence of float, optional
        Predict by local linear fits with this localisation (``method="smap"`` of :func:`pyedmcl.xmap`); by nearest
        neighbours without.
    ridge : float
        As for :func:`pyedmcl.xmap`, with theta only.
    folds : int, optional
        As for :func:`pyedmcl.xmap`, but folds are the first axis of the result; ``mean("fold")`` averages them.
    exclusion_radius, knn, columns, targets, groups, lib_range, pred_range, precision
        As for :func:`pyedmcl.xmap`.
    out : path, optional
        A folder for the result, with a store for each map that :func:`pyedmcl.open_xmap` opens too. The same call
        continues after an interruption, and one with more values keeps the maps that are there.
    resume, join, part, neighbors, recall, dtype, device, client, tune
        As for :func:`pyedmcl.xmap`.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows are not regular, as for :func:`pyedmcl.xmap`.
    progress : callable or True, optional
        Called as ``progress(done, total, "series")``, counting libraries of all maps.

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
    arguments.reporter(progress)
    out = arguments.folder("out", out)
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
