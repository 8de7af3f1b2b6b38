"""Cross mapping of all pairs of series: the function, and how its problem becomes a result in memory or in a folder."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..atomic_files import path_of
from ..device.select import KINDS, DeviceNames, ForeignArray, is_array
from ..errors import InputError, shown, warn
from ..jobs.blocks import Record, default_block_rows, entries_by_kind, shared_block_rows
from ..jobs.claims import begin_of, processes
from ..jobs.runner import KERNEL, ArraySink, DeviceSink, Runner, arrays_of, public_function, runner_at
from ..jobs.sharing import SharedSink, sink_at
from ..jobs.store import XmapStore, open_store, open_to_write
from ..launch.progress import Progress
from ..launch.staging import DeviceRows
from ..results.edges import own_targets
from ..series.arrays import OnDevice
from ..series.fields import grids_from
from ..series.groups import Layout
from ..series.regular import windows_of
from ..states import arguments
from ..states.arguments import ERRORS, check_room
from ..states.rows import MapRows, rows_of, tell_few
from .keep import EdgeSink, Keep, KeptProblem
from .linear_fits import LinearFits, linear_fits, theta_of, with_slopes
from .pairs import check_map_precision, libraries_of_a_block, pairs_in_groups, tell_in_full, with_dimensions
from .problem import XmapProblem, windowed_map
from .results import HeldParts, WindowedMap, XmapEdges, XmapResult, edges_of_store

# Which arguments of a map go together, and what to do instead where they do not.


def check_one_theta(fits: LinearFits | None, theta: Any, **single: Any) -> None:
    """Refuse several theta together with what takes a single map; ``single`` are such arguments, None if not given."""
    if fits is None or not (fits.several or fits.best):
        return
    for name, given in single.items():
        if given is not None:
            raise InputError(
                f"theta={shown(theta)} with {name}={shown(given)}: it takes one map; give a single theta, or call once "
                "for each"
            )


def check_windows(
    windows: Any, *, keep: Keep | None, out: Any, groups: Any, lib_range: Any, pred_range: Any, predictions: bool
) -> None:
    """Refuse what windows do not go with."""
    instead = {
        "keep=": (keep, "edges(top) of the result names the strongest pairs"),
        "out=": (out, "save() of the result writes it to a file"),
        "groups=": (groups, "windows may not pass from one recording into another; call once for each recording"),
        "lib_range=": (lib_range, "a window is its own library; folds= predicts a part of it from the others"),
        "pred_range=": (pred_range, "a window predicts all its rows; folds= predicts a part of it from the others"),
        "predictions=True": (predictions or None, "call once for each window of interest"),
    }
    for name, (given, advice) in instead.items():
        if given is not None:
            raise InputError(f"windows={shown(windows)} cannot be used with {name}: {advice}")


def check_place(out: Any) -> None:
    """Refuse ``out=`` that is neither a folder nor an array on a device."""
    if out is not None and not isinstance(out, (str, os.PathLike)) and not is_array(out):
        what = type(out).__name__
        raise InputError(f"out={shown(out)}: {what} is no place for a map; {KINDS}, or the path of a folder")


def check_on_device(given: Mapping[str, Any]) -> None:
    """Refuse what a map in an array on the device does not go with: argument to what is not None or False."""
    for name, value in given.items():
        if value is not None and value is not False:
            raise InputError(
                f"out= is an array on a device, which takes plain maps of rho: leave out {name}, or give a folder or "
                "nothing as out="
            )


def check_measure(skill: str, predictions: bool, fits: LinearFits | None, keep: Keep | None, out: Any) -> str:
    """The measure, checked against what else was asked for."""
    argument = f"skill={skill!r}" if skill != "pearson" else "predictions=True"
    if (skill != "pearson" or predictions) and fits is not None:
        raise InputError(f"{argument}: method='smap' keeps sums of its fits only; take method='simplex'")
    if predictions and (keep is not None or out is not None):
        raise InputError("predictions=True: they are held in memory; leave out keep= and out=")
    if skill in ERRORS and keep is not None:
        raise InputError(f"skill={skill!r}: keep= takes the largest values, and the smallest errors are the best")
    return skill


# From the problem of a map to its result: in memory, as a list of edges, or in a folder.


def stored_block_rows(shape: tuple[int, int], n_steps: int, rule: Keep | None, processes: int) -> int:
    """Libraries of a block in a folder, of a map of this shape that ``processes`` share."""
    rows = shared_block_rows(default_block_rows(*shape), shape[0], shape[1] * n_steps, processes)
    return rows if rule is None else rule.block_rows(shape[0], rows)


def map_in_memory(problem: XmapProblem, runner: Runner, layout: Layout | None) -> XmapResult:
    """Compute a map, or one for each theta or fold.

    Parameters
    ----------
    layout : Layout or None
        Of recordings that stand one below the other: where the rows of predictions belong.
    """
    series, target_series = problem.data.series, problem.target_data.series
    shape, dtype = (series.n_series, target_series.n_series), problem.data.dtype
    fits = problem.fits
    # Behind the maps there may be one more array, of another shape: predictions (there is one map of skill then), or
    # mean slopes.
    predicted: Any = None
    slopes: Any = None
    if problem.predictions:
        predicted = check_room((*shape, series.n_steps), dtype, "take fewer libraries or targets at a time")
    elif fits is not None and fits.slopes:
        slopes = arguments.room("coefficients", (*shape, problem.highest), np.float64)
    further = [layer for layer in (predicted, slopes) if layer is not None]
    layers = np.empty((problem.layers - len(further), *shape), np.dtype(dtype))
    sink = ArraySink(problem.blocks(), [*layers, *further])
    problem = with_dimensions(problem, runner, sink)
    record = runner.run(problem, sink)
    lags = None
    if slopes is not None:
        lags = tuple(problem.tau * e for e in range(max(problem.E or (1,))))
        slopes = slopes[..., : len(lags)]
    if predicted is not None and layout is not None:
        predicted = predicted[..., layout.order]
    return XmapResult(
        # The layers: of theta="best" the largest rho and its theta; of several theta a map each; of folds the mean, and
        # then each fold; else one map.
        layers if fits is not None and fits.several else layers[0],
        np.array(problem.E, int), series.names, None, _provenance(problem, runner, record, sink.record),
        layers[1] if fits is not None and fits.best else theta_of(problem.arguments()),
        _target_names(problem), layers[1:] if problem.each_fold else None, problem.skill, predicted,
        (series.grid, target_series.grid), slopes, lags,
    )  # fmt: skip


def map_on_device(problem: XmapProblem, runner: Runner, array: ForeignArray) -> XmapResult:
    """Compute a map into an array of the caller on the device."""
    sink = DeviceSink(problem.blocks(), [DeviceRows.of(array, runner.executor)])
    problem = with_dimensions(problem, runner, sink)
    record = runner.run(problem, sink)
    used = _provenance(problem, runner, record, sink.record, more=(KERNEL,))
    return XmapResult(
        OnDevice(array.array), np.array(problem.E, int), problem.data.series.names, None, used,
        targets=_target_names(problem), grids=(problem.data.series.grid, problem.target_data.series.grid),
    )  # fmt: skip


def edges_in_memory(problem: XmapProblem, runner: Runner, rule: Keep) -> XmapEdges:
    """Compute a map block by block and keep the edges that a rule chooses."""
    job = _reduced(problem, rule)
    sink = EdgeSink(problem.blocks(), rule, job.itself, job.n_targets, problem.data.dtype)
    problem = with_dimensions(problem, runner, sink)
    record = runner.run(_reduced(problem, rule), sink)
    used = _provenance(problem, runner, record, sink.record, rule)
    return XmapEdges(
        str(rule), np.array(problem.E, int), problem.data.series.names, problem.data.dtype, HeldParts(sink.parts()),
        None, used, _target_names(problem),
    )  # fmt: skip


def map_in_folder(
    problem: XmapProblem, runner: Runner, folder: Path, rule: Keep | None, begin: float | None, *, resume: bool
) -> XmapResult | XmapEdges:
    """Compute what a store lacks of a map or of its edges.

    ``begin`` is where among the blocks this process begins, as a share of them, together with other processes that
    share the folder; None where it works alone.
    """
    info = runner.alike(problem.kernels)
    manifest = problem.manifest(info, **_named(rule))
    opened = sink_at(
        folder, info.name, begin, lambda member: [open_to_write(folder, manifest, member, resume=resume)]
    )
    with opened as sink:
        problem = with_dimensions(problem, runner, sink)
        record = runner.run(problem if rule is None else _reduced(problem, rule), sink)
    store = sink.stores[0] if isinstance(sink, SharedSink) else open_store(folder)
    earlier = sink.record if begin is None else replace(sink.record, searched=tuple(store.searched))  # also of others
    used = _provenance(problem, runner, record, earlier, rule)
    return result_of_store(store, np.array(problem.E, int), used)


def result_of_store(store: XmapStore, E: Any, provenance: dict[str, Any]) -> XmapResult | XmapEdges:
    """What a store holds, read when it is looked at."""
    if store.keep is not None:
        return edges_of_store(store, E, provenance)
    theta = theta_of(store.manifest.parameters)
    skill = store.manifest.parameters.get("skill", "pearson")
    return XmapResult(
        store.rho, E, store.names, store, provenance, theta, store.targets, skill=skill,
        grids=grids_from(store.manifest.grids),
    )  # fmt: skip


def _reduced(problem: XmapProblem, rule: Keep) -> KeptProblem:
    """The same problem, of whose blocks only edges are kept."""
    own_target = own_targets(problem.data.series.names, _target_names(problem))
    return KeptProblem(problem, rule, problem.data.dtype, own_target, problem.target_data.series.n_series)


def _target_names(problem: XmapProblem) -> tuple[str, ...] | None:
    """Of targets that are not the libraries."""
    return None if problem.targets is None else problem.targets.series.names


def _named(rule: Keep | None) -> dict[str, str]:
    return {} if rule is None else {"keep": str(rule)}


def _provenance(
    problem: XmapProblem, runner: Runner, record: Record, earlier: Record, rule: Keep | None = None,
    more: tuple[str, ...] = (),
) -> dict[str, Any]:  # fmt: skip
    """Where the result comes from. Its searches are also those for E, and those of blocks of earlier runs."""
    record = replace(record, searched=earlier.searched)
    provenance = runner.provenance((*problem.kernels, *more), record, arguments=problem.arguments() | _named(rule))
    tell_in_full(provenance)
    return provenance


# Opening the folder of a map of all pairs.


def open_xmap(path: str | os.PathLike[str]) -> XmapResult | XmapEdges:
    """Open a result that ``xmap(..., out=path)`` or the command line wrote; rho is read when it is looked at.

    Parameters
    ----------
    path : path
        The folder that was given as ``out``.

    Returns
    -------
    XmapResult
        Arrays are read from the folder when they are used. An ``XmapEdges`` where edges were kept.

    Raises
    ------
    StoreForeignError
        The path is not such a result.

    Warns
    -----
    RuntimeWarning
        Edges were kept, and some are missing since the run has not finished.

    See Also
    --------
    xmap : makes such a result.

    Notes
    -----
    Cost: reads the manifest only.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> import tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = pyedmcl.xmap(network.values, E=3, out=f"{folder}/map.zarr")
    ...     again = pyedmcl.open_xmap(f"{folder}/map.zarr")
    ...     bool((np.asarray(again.rho) == np.asarray(first.rho)).all())
    True
    """
    store = open_store(path_of(path))
    if store.keep is not None and not store.complete:  # a map shows this by NaN
        warn(
            f"{path} is not finished: {len(store.pending())} of {store.n_blocks} blocks of libraries are missing, and "
            "so are their edges; run the same xmap call again, which continues it"
        )
    found = store.manifest.provenance(**entries_by_kind(store.searched))
    return result_of_store(store, store.dimensions(), found)


@public_function
def xmap(
    data: Any,
    *,
    E: str | int | Sequence[int] = "auto",
    tau: int = 1,
    Tp: int = 0,
    exclusion_radius: int = 0,
    knn: int | None = None,
    method: str = "simplex",
    theta: float | Sequence[float] | str = 1.0,
    ridge: float = 0.0,
    coefficients: str | None = None,
    E_max: int = 20,
    E_rule: str | float = "best",
    columns: Sequence[str | int] | str | int | None = None,
    targets: Any = None,
    groups: Any = None,
    regular: str | None = None,
    lib_range: Any = None,
    pred_range: Any = None,
    folds: int | None = None,
    windows: tuple[int, int] | None = None,
    skill: str = "pearson",
    predictions: bool = False,
    precision: str = "full",
    keep: str = "all",
    out: Any = None,
    resume: bool = True,
    join: bool = False,
    part: str | None = None,
    neighbors: str = "exact",
    recall: float = 0.99,
    progress: Progress | None = None,
    dtype: str = "float32",
    device: DeviceNames = None,
    client: Any = None,
    tune: str | None = None,
) -> XmapResult | XmapEdges | WindowedMap:
    """Cross map every series onto every other: which series carries the trace of which.

    The embedding of series i (the library) predicts series j (the target) from its own nearest neighbours;
    ``rho[i, j]`` is the Pearson correlation of prediction and observation over all rows. If j drives i, i knows
    about j, and rho[i, j] is high (convergent cross mapping at full library size; Sugihara et al., Science 338, 496,
    2012).

    Parameters
    ----------
    data : array_like (n_steps, n_series)
        NumPy, pandas, polars, xarray or anything with ``__array__``; NaN for gaps.
    E : "auto", int or sequence of int
        Embedding dimension of the targets: one for all, or one each. "auto" finds each series' own by
        :func:`pyedmcl.embed_dimension` with ``E_max``, ``E_rule`` and Tp = 1.
    tau : int
        Lag between the coordinates of a state, in steps; at least 1.
    Tp : int
        Steps from library row to target; 0 or negative are allowed.
    exclusion_radius : int
        Rows with |t - j| up to this are no neighbours (0: the row itself).
    knn : int, optional
        Neighbours; the number of coordinates + 1 by default. Of method "simplex".
    method : {"simplex", "smap"}
        How rows are predicted: by their nearest neighbours, or by linear fits to all rows of the library that are
        weighted by nearness, as :func:`pyedmcl.smap` makes them.
    theta : float, sequence of float, or "best"
        Localisation of method "smap", at least 0. A sequence gives a map for each. "best" tries those of
        :func:`pyedmcl.predict_nonlinear` and keeps the largest rho of each pair, with its theta: rho is then somewhat
        too high, since it was chosen by its own value. Only a single number may be stored with ``out``.
    ridge : float
        Penalty of linear fits on the squared slopes, as solver "ridge" of :func:`pyedmcl.smap` has it; 0 for none.
    coefficients : "mean", optional
        With method "smap" and a single theta the result also has ``coefficients`` (n_libraries, n_targets, largest E):
        the slope of the target on each lag of the library, averaged over the fits around all rows that are predicted.
        Held in memory.
    E_max : int
        Largest dimension that is tried for E="auto".
    E_rule : "best", "one-se" or float
        Which E is taken where it is searched: that of the highest rho; the smallest whose rho is at most one standard
        error below it, from the spread of skill over eight parts of the rows; or the smallest within a tolerance of it.
    columns : str, int, or sequence of these, optional
        Which series to take, by name or position; names with a minus before them are left out.
    targets : optional
        What is predicted, where that is not the libraries themselves: names or positions of columns of ``data``, or
        other series over the same rows, in any of the forms of ``data``. The map is then (n_libraries, n_targets), and
        costs a search for each library and a lookup for each pair. Series without names are called y0, y1, and so on.
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
        whose rows are taken as they are. E="auto" is found from all rows.
    pred_range : (int, int), sequence of (int, int), or mask of bool, optional
        Rows that are predicted, in the same form; their lags may lie before them.
    folds : int, optional
        Cross-validation: this many equal stretches of rows are predicted, each from all others that are farther away
        than the width of an embedding, (E - 1) tau + abs(Tp). ``rho`` is the mean over folds. With ``groups`` of equal
        length, as many folds as groups leave out one group after the other.
    windows : (int, int), optional
        Width of windows that move along the rows, and rows from one to the next: the result of each window's rows by
        themselves. E="auto" is found anew in each. Windows of plain rho share uploads and searches; ``method="smap"``,
        ``skill`` and ``folds`` (of each window) take a search for each.
    skill : {"pearson", "spearman", "rmse", "mae", "nrmse"}
        What ``rho`` holds for each pair: Pearson's correlation of prediction and observation; that of their ranks,
        which outliers do not dominate; root mean square or mean absolute error; or the former over the standard
        deviation of what was observed, so that 1 is no better than the mean. All but the first look at predictions on
        the host.
    predictions : bool
        The result also has ``predictions`` (n_libraries, n_targets, n_steps), at the rows that are predicted.
    precision : {"full", "compact"}
        "compact" looks targets up in 16 bits, which may change rho by up to 2e-5 and takes GPUs as little as half the
        time of a lookup; processors gain nothing. Targets with a range too wide for that, pairs whose predictions
        hardly vary or are made of few rows, and maps of data with gaps are computed in full;
        ``provenance["precision"]`` and a warning say how many targets were. Fewer than 128 targets of one E are
        computed in full without a warning: 16 bits save nothing there. Linear fits predict on matrix units where the
        device has them, which changes rho by up to 1e-5, and in full elsewhere. See ``docs/approximate.md``.
    keep : str
        Which pairs are kept: "all"; "top:50", the 50 strongest of each library, so the strongest causes of each effect;
        "top:50:target", the 50 strongest of each target, so the strongest effects of each cause; or "rho>0.3". All but
        "all" give a list of edges, and neither memory nor disk ever holds the n_series x n_series map. Of equal rho the
        smaller library is kept, then the smaller target; NaN and pairs of a series with itself never are.
    out : path or array, optional
        A folder for the result (Zarr v3), written block by block; the same call continues after an interruption, and
        the result may be larger than memory. Blocks that are added later take the tuned parameters of the first ones.
        Or an array on the device (n_libraries, n_targets) of PyOpenCL, or in memory of SYCL: rho is written there, and
        is not copied to the host until it is looked at; for plain maps of rho by one device, see ``docs/pipeline.md``.
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
    XmapResult
        ``rho`` (n_libraries, n_targets) with row = library and column = target; ``E``, ``names``, ``targets``. With a
        sequence of theta a first axis over it, and with "best" also ``theta`` of each pair. With ``coefficients`` also
        these, and ``lags``. With ``folds``, and without
        ``out`` or ``keep``, also ``folds`` (folds, n_libraries, n_targets), rho of each fold. With ``keep`` other than
        "all" an ``XmapEdges``: ``library``, ``target`` (positions) and ``rho`` of each edge, ``edges()``,
        ``to_frame()``, ``to_scipy()``, ``to_networkx()``, ``save(path)``.

    Raises
    ------
    InputError
        Data or an argument cannot be used; some fit has too few rows; the device lacks double precision, which
        method "smap" needs.
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
    ccm_matrix : does skill grow with the library, for all pairs?
    xmap_significance : the same map with p-values.
    open_xmap : read what ``out=`` wrote.

    Notes
    -----
    Cost: a search of about n_steps^2 * max(E) multiply-adds for each library, and n_steps * (E + 1) for each pair;
    with ``out=`` memory does not grow with the number of pairs. 100,000 series give a map of 41 GB, ``keep="top:50"``
    5 million edges of 12 bytes. "top:K:target" must compare libraries: its store holds candidates, of very large maps a
    tenth, from which the edges are chosen when they are read.
    Method "smap" takes about n_steps^2 * (E + 1)^2 multiply-adds for each library, and n_steps^2 for each pair, for
    each theta.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.xmap(network.values, E=3)
    >>> result.rho.shape  # row = library, column = target: rho[i, j] is evidence that j drives i
    (4, 4)
    >>> pyedmcl.xmap(network.values, targets=[0], E=3).rho.shape  # all of them as libraries, one target
    (4, 1)
    >>> len(pyedmcl.xmap(network.values, E=3, keep="top:1"))  # the strongest cause of each series
    4
    >>> from pyedmcl.simulate import link_auc
    >>> link_auc(result.rho, network.links) > 0.7
    True
    """
    check_place(out)
    on_device = out if is_array(out) else None
    out = None if on_device is not None else arguments.folder("out", out)
    begin = begin_of(join, part, out, "out", resume=resume)
    rule = Keep.parse(keep)
    fits = linear_fits(method, theta, ridge, knn)
    check_one_theta(
        fits, theta, out=out, keep=None if rule is None else keep, windows=windows, folds=folds,
        coefficients=coefficients,
    )  # fmt: skip
    fits = with_slopes(fits, coefficients, {"out=": out, "keep=": rule, "windows=": windows, "folds=": folds})
    if windows is not None:
        check_windows(
            windows, keep=rule, out=out, groups=groups, lib_range=lib_range, pred_range=pred_range,
            predictions=predictions,
        )  # fmt: skip
    skill = check_measure(skill, predictions, fits, rule, out)
    precision = check_map_precision(precision, dtype, {
        f"skill={skill!r}": skill != "pearson", "predictions=True": predictions,
        f"windows={arguments.shown(windows)}": windows is not None,
    })  # fmt: skip
    if on_device is not None:
        check_on_device({
            f"method={method!r}": fits, f"skill={skill!r}": skill != "pearson", "predictions=True": predictions,
            f"keep={keep!r}": rule, "folds=": folds, "windows=": windows, "client=": client, "join=": begin is not None,
        })  # fmt: skip
    fields, layout = pairs_in_groups(
        data, E=E, tau=tau, Tp=Tp, exclusion_radius=exclusion_radius, knn=knn, E_max=E_max, E_rule=E_rule,
        columns=columns, groups=groups, neighbors=neighbors, recall=recall, dtype=dtype, targets=targets,
    )  # fmt: skip
    series = fields["data"].series
    target_series = fields["targets"].series if "targets" in fields else None
    shape = series.n_series, (target_series or series).n_series
    dtype = fields["data"].dtype
    arrays = [] if on_device is None else arrays_of(on_device, {"rho": (shape, dtype)})
    runner = runner_at(arrays, device, dtype) if arrays else arguments.runner_on(device, dtype, client)
    block_rows = libraries_of_a_block(series.n_series, runner.devices)
    if out is not None:  # whatever devices work on it, a store is cut alike
        block_rows = stored_block_rows(shape, series.n_steps, rule, 1 if begin is None else processes(part))
    n = series.n_steps if windows is None else windows_of(windows, series.n_steps).width
    chosen_rows = rows_of(lib_range, pred_range, folds, n, layout)
    problem = XmapProblem(
        **fields, block_rows=block_rows, fits=fits, skill=skill, predictions=predictions, precision=precision
    )  # fmt: skip
    if folds is not None:
        problem = replace(problem, folds=chosen_rows, each_fold=out is None and rule is None and windows is None)
    elif chosen_rows:
        problem = replace(problem, rows=chosen_rows[0])
    _check_rows(problem, chosen_rows, n)
    if windows is not None:
        return windowed_map(problem, windows, runner)
    if arrays:
        return map_on_device(problem, runner, arrays[0])
    if out is not None:
        return map_in_folder(problem, runner, Path(out), rule, begin, resume=resume)
    if rule is not None:
        return edges_in_memory(problem, runner, rule)
    return map_in_memory(problem, runner, layout)


def _check_rows(problem: XmapProblem, chosen_rows: Sequence[MapRows], n: int) -> None:
    """Refuse rows that leave too few of the ``n`` steps to a library, and remark where skill is of few rows."""
    for rows in chosen_rows:
        rows.require(n, problem.dims, problem.tau, problem.Tp)
    if problem.skill not in ERRORS:
        tell_few(chosen_rows, n, (max if problem.E_max is None else min)(problem.dims), problem.tau)
