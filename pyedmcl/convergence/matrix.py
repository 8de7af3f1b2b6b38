"""Convergent cross mapping of all pairs: the function, and its folder of stores."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..atomic_files import path_of
from ..crossmap.linear_fits import LinearFits, require_coordinates, single_fits
from ..crossmap.pairs import pairs_in_groups, with_dimensions
from ..crossmap.xmap import check_windows
from ..device.select import DeviceNames
from ..errors import InputError, StoreForeignError, StoreMismatchError
from ..jobs.blocks import Manifest, Record
from ..jobs.claims import Member, begin_of, require_alone
from ..jobs.records import require_plain
from ..jobs.runner import ArraySink, PairsSink, Runner, public_function
from ..jobs.sharing import SharedSink, sink_at
from ..jobs.store import XmapStore, open_store, several_to_write
from ..launch.progress import Progress
from ..search.choose import add
from ..series.fields import grids_from
from ..series.regular import windows_of
from ..states import arguments
from ..states.arguments import ERRORS
from ..states.rows import MapRows, rows_of
from .ccm import drawn_from
from .matrix_problem import CcmMatrixProblem, library_sizes, most_rows, windowed_matrix
from .results import CcmMatrixResult, WindowedCcmMatrix

if TYPE_CHECKING:
    from ..device.info import DeviceInfo


# The folder of a matrix of convergent cross mapping: one resumable store of all pairs for each library size.


_NAME = re.compile(r"library_(\d+)")


def store_name(size: int) -> str:
    """Folder of a library size."""
    return f"library_{size:07d}"


def sizes_there(path: str | os.PathLike[str]) -> dict[int, Path]:
    """Library sizes that have a store in a folder, ascending, and where."""
    folder = Path(path)
    if not os.path.lexists(folder):
        return {}
    if not os.path.isdir(folder):
        raise StoreForeignError(f"{folder} exists, is not a folder, and is left alone: choose another output path")
    require_plain(folder)
    arrays = {}
    for name in os.listdir(folder):
        match = _NAME.fullmatch(name)
        if match:
            arrays[int(match[1])] = folder / name
        elif not name.startswith("."):
            raise StoreForeignError(
                f"{folder} holds {name!r}, which pyedmcl ccm-matrix did not write, and is left alone: choose another "
                "output path"
            )
    return dict(sorted(arrays.items()))


def stored_seed(path: str | os.PathLike[str]) -> int | None:
    """The seed of a result that is there already; None for a new folder."""
    for store in sizes_there(path).values():
        with contextlib.suppress(StoreForeignError):
            seed = open_store(store).manifest.parameters.get("seed")
            return seed if isinstance(seed, int) else None  # of something else, which is refused when it is opened
    return None


def shared_seed(path: Path, seed: int) -> int:
    """The seed of a result that processes compute together, none of which was given one: that of the first.

    Parameters
    ----------
    seed : int
        What this process would take.
    """
    with Member(path) as member:
        return int(member.decide("seed", seed))


def _essence(manifest: Manifest) -> Any:
    """What library sizes of one result have in common."""
    compared = {name: value for name, value in manifest.parameters.items() if name != "lib_size"}
    return manifest.input_digest, tuple(manifest.names), compared


def open_stores(
    path: Path, problem: CcmMatrixProblem, info: DeviceInfo, member: Member | None, *, resume: bool
) -> list[XmapStore]:
    """Stores of all library sizes of a problem on a device, in their order, open for writing."""
    if member is None:
        require_alone(path)
    common = _essence(problem.manifest(info))
    for size, where in sizes_there(path).items():
        if size not in problem.lib_sizes and _essence(open_store(where).manifest) != common:
            raise StoreMismatchError(
                f"{path} holds library size {size}, computed from other data or with other parameters: choose another "
                f"output path, or remove its folder {store_name(size)}"
            )
    manifests = {store_name(size): problem.manifest(info, lib_size=size) for size in problem.lib_sizes}
    with several_to_write(path, manifests, member, resume=resume) as stores:
        return stores


def read_stores(path: str | os.PathLike[str]) -> dict[int, XmapStore]:
    """Stores of a result, for reading."""
    try:
        folders = sizes_there(path)
    except StoreForeignError:  # whose message is for those who write there
        folders = {}
    if not folders:
        raise StoreForeignError(f"{path} is no result of pyedmcl ccm-matrix: name the folder that it wrote")
    stores = {size: open_store(where) for size, where in folders.items()}
    manifest = next(iter(stores.values())).manifest
    if not all(isinstance(manifest.parameters.get(name), int) for name in ("sample", "seed")):
        raise StoreForeignError(f"{path} holds maps that pyedmcl ccm-matrix did not write")
    first = _essence(manifest)
    for size, store in stores.items():
        there = store.manifest.parameters.get("lib_size")
        if there != size:
            raise StoreMismatchError(
                f"{path}: the folder of library size {size} holds library size {there}; give the folders their own "
                f"names again, or remove {store_name(size)}, and run the same command"
            )
        if _essence(store.manifest) != first:
            raise StoreMismatchError(
                f"{path}: library size {size} was computed from other data or with other parameters than "
                f"{next(iter(stores))}; compute it again, or remove its folder {store_name(size)}"
            )
    return stores


# Convergent cross mapping of all pairs: does skill grow with the library, for N x N directions?


@public_function
def ccm_matrix(
    data: Any,
    *,
    lib_sizes: Any = None,
    sample: int = 30,
    E: str | int | Sequence[int] = "auto",
    tau: int = 1,
    Tp: int = 0,
    seed: int | None = None,
    exclusion_radius: int = 0,
    knn: int | None = None,
    method: str = "simplex",
    theta: float = 1.0,
    ridge: float = 0.0,
    E_max: int = 20,
    E_rule: str | float = "best",
    columns: Sequence[str | int] | str | int | None = None,
    groups: Any = None,
    regular: str | None = None,
    draw: str = "rows",
    lib_range: Any = None,
    pred_range: Any = None,
    folds: int | None = None,
    windows: tuple[int, int] | None = None,
    skill: str = "pearson",
    out: str | os.PathLike[str] | None = None,
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
) -> CcmMatrixResult | WindowedCcmMatrix:
    """Convergent cross mapping of every series onto every other.

    ``result.at(size)[i, j]`` is the mean skill with which random states of series i predict series j; skill that grows
    with the library says that j drives i (see :func:`pyedmcl.ccm`).

    Parameters
    ----------
    data : array_like (n_steps, n_series)
        Time along the first axis, NaN for gaps.
    lib_sizes : int or sequence of int, optional
        Rows of a sub-library: more than the neighbours, at most the rows there are; several up to all by default.
    sample : int
        Random sub-libraries of each size. Each pair, size and sample has a random stream of its own.
    E : "auto", int or sequence of int
        Embedding dimension: **of the library**, whose states are embedded, for all or one by one. (:func:`pyedmcl.xmap`
        takes that of the target.) "auto" finds each series' own by :func:`pyedmcl.embed_dimension`.
    tau : int
        Lag between the coordinates of a state, in steps; at least 1.
    Tp : int
        Steps from library row to target; 0 or negative are allowed.
    seed : int, optional
        Chooses what is random: the same seed gives the same result, whatever the device. By default a fresh one, which
        the result names. A result that is continued has its own. Pair (0, 1) of a seed has the sub-libraries of
        :func:`pyedmcl.ccm`.
    exclusion_radius : int
        Rows with |t - j| up to this are no neighbours (0: the row itself).
    knn : int, optional
        Neighbours; the number of coordinates + 1 by default. Of method "simplex".
    method : {"simplex", "smap"}
        How rows are predicted: by their nearest neighbours, or by linear fits to all rows of the library that are
        weighted by nearness, as :func:`pyedmcl.smap` makes them. The sub-libraries of a seed are the same.
    theta : float
        Localisation of method "smap", at least 0.
    ridge : float
        Penalty of linear fits on the squared slopes, as solver "ridge" of :func:`pyedmcl.smap` has it; 0 for none.
    E_max : int
        Largest dimension that is tried for E="auto".
    E_rule : "best", "one-se" or float
        Which E is taken where it is searched: that of the highest rho; the smallest whose rho is at most one standard
        error below it, from the spread of skill over eight parts of the rows; or the smallest within a tolerance of it.
    columns : str, int, or sequence of these, optional
        Which series to take, by name or position; names with a minus before them are left out.
    groups : str, sequence of str, or labels (n_steps,), optional
        Recordings (subjects, plots, replicates) that stand one below the other: columns of the data or levels of its
        index, or a label for each row. No state and no target crosses a border.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows (an index of dates or numbers, a coordinate, a time column) are not regular,
        which is refused by default. "insert" puts rows of NaN where rows are missing: ranges and masks are moved along,
        and rows of the result are those of the longer table. "ignore" takes the rows as they come. Dates whose index
        has a frequency are regular.
    draw : {"rows", "groups"}
        What sub-libraries are drawn from: single rows of all groups, or whole groups in random order until there are
        enough rows, the last of them in part (Clark et al., Ecology 96, 1174, 2015). Rows of a group resemble each
        other: whole groups tell what the same number of plots or subjects would have told. "groups" is of method
        "simplex" and of Pearson's correlation.
    lib_range : (int, int), sequence of (int, int), or mask of bool, optional
        Rows of the library: ranges begin <= t < end, 0-based, in which lags and targets of a row lie, too; or a mask,
        whose rows are taken as they are. Sub-libraries are drawn from these.
    pred_range : (int, int), sequence of (int, int), or mask of bool, optional
        Rows that are predicted, in the same form; their lags may lie before them. One range without holes.
    folds : int, optional
        Cross-validation as by :func:`pyedmcl.xmap`: skill is the mean over folds, each predicted from libraries drawn
        from the others.
    windows : (int, int), optional
        Width of windows that move along the rows, and rows from one to the next: the result of each window's rows by
        themselves. All have the same seed.
    skill : {"pearson", "spearman"}
        Correlation of predictions and observations, or that of their ranks, which outliers do not dominate. Ranks take
        a search for each sub-library, some hundred times as long.
    out : path, optional
        A folder for the result, a store for each library size, written block by block; the same call continues after an
        interruption, and a call with other library sizes adds these.
    resume : bool
        False starts ``out`` afresh. Stores of other library sizes stay.
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
        its recall. A result that is continued keeps its search.
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
    CcmMatrixResult or, with ``windows``, WindowedCcmMatrix

    Raises
    ------
    InputError
        Data or an argument cannot be used; the device lacks double precision, which method "smap" needs.
    DeviceNotFoundError, DeviceMemoryError
        No device matches; sixteen samples of a library do not fit on it.
    StoreForeignError, StoreMismatchError, StoreWriteError
        ``out`` is not ours, belongs to other data or parameters, or cannot be written.
    Interrupted
        Ctrl-C with ``out``: what was finished is kept.
    ClientError
        Workers of ``client`` cannot be used, or were lost.

    See Also
    --------
    xmap : all pairs at full library size.
    ccm : two series.
    open_ccm_matrix : read what ``out=`` wrote.

    Notes
    -----
    Cost: that of :func:`ccm` for each pair; searches are shared by all targets of a library. Method "smap" takes about
    n_steps^2 * (E + 1)^2 multiply-adds for each pair, size and sample, since each has fits of its own. A row around
    which a sub-library leaves fewer than the E + 1 rows that a fit needs is not predicted.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.ccm_matrix(network.values, E=3, lib_sizes=[30, 300], sample=10, seed=1)
    >>> result.at(300).shape  # row = library, column = target
    (4, 4)
    """
    fits = single_fits(method, theta, ridge, knn)
    skill = _correlation(skill, fits)
    begin = begin_of(join, part, out, "out", resume=resume)
    fields, layout = pairs_in_groups(
        data, E=E, tau=tau, Tp=Tp, exclusion_radius=exclusion_radius, knn=knn, E_max=E_max, E_rule=E_rule,
        columns=columns, groups=groups, neighbors=neighbors, recall=recall, dtype=dtype,
    )  # fmt: skip
    series = fields["data"].series
    if series.n_series < 2:
        raise InputError("data: there is one series; pairs need two at least")
    if seed is None and out is not None and resume:
        seed = stored_seed(out)
        if seed is None and begin is not None:
            seed = shared_seed(Path(out), arguments.stream(None))
    n = series.n_steps
    if windows is not None:
        check_windows(
            windows, keep=None, out=out, groups=groups, lib_range=lib_range, pred_range=pred_range, predictions=False
        )
        n = windows_of(windows, n).width
    group_of = drawn_from(layout, draw)
    if group_of is not None and (fits is not None or skill != "pearson"):
        raise InputError("draw='groups': method='simplex' with skill='pearson' is needed")
    rows = _rows(rows_of(lib_range, pred_range, folds, n, layout), pred_range)
    problem = CcmMatrixProblem(
        **fields, lib_sizes=(), sample=sample, seed=arguments.stream(seed), fits=fits, skill=skill,
        group_of=group_of, **({"folds": rows} if folds is not None else {"rows": rows[0] if rows else None}),
    )  # fmt: skip
    for choice in rows:
        choice.require(n, problem.dims, problem.tau, problem.Tp)
    if fits is not None:
        require_coordinates(problem.highest)
    if windows is not None:
        return windowed_matrix(problem, windows, lib_sizes, arguments.runner_on(device, problem.data.dtype, client))
    problem = replace(problem, lib_sizes=library_sizes(lib_sizes, problem, most_rows(problem)))
    runner = arguments.runner_on(device, problem.data.dtype, client)
    problem, matrices, record = _computed(problem, runner, out, begin, resume=resume)
    used = runner.provenance(problem.kernels, record, arguments=problem.arguments())
    return CcmMatrixResult(
        np.array(problem.lib_sizes), tuple(matrices), np.array(problem.E, int), series.names, sample, problem.seed,
        used, *_method(problem.arguments()), series.grid,
    )  # fmt: skip


def open_ccm_matrix(path: str | os.PathLike[str]) -> CcmMatrixResult:
    """Open a result that ``ccm_matrix(..., out=path)`` or the command line wrote; skill is read when it is looked at.

    Parameters
    ----------
    path : path
        The folder that was given as ``out``.

    Returns
    -------
    CcmMatrixResult
        Arrays are read from the folder when they are used.

    Raises
    ------
    StoreForeignError
        The path is not such a result.
    StoreMismatchError
        Its library sizes do not belong together.

    See Also
    --------
    ccm_matrix : makes such a result.

    Notes
    -----
    Cost: reads the manifests only.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = pyedmcl.ccm_matrix(network.values, E=3, lib_sizes=[30], sample=5, seed=1, out=f"{folder}/ccm")
    ...     pyedmcl.open_ccm_matrix(f"{folder}/ccm").lib_sizes.tolist()
    [30]
    """
    stores = read_stores(path_of(path))
    first = next(iter(stores.values()))
    stored = first.manifest.parameters
    return CcmMatrixResult(
        np.array(list(stores)), tuple(store.rho for store in stores.values()), first.dimensions(), first.names,
        int(stored["sample"]), int(stored["seed"]), first.manifest.provenance(neighbors=_searched(stores)),
        *_method(stored), grids_from(first.manifest.grids)[0],
    )  # fmt: skip


def _computed(
    problem: CcmMatrixProblem, runner: Runner, out: Any, begin: float | None, *, resume: bool
) -> tuple[CcmMatrixProblem, list[Any], Record]:
    """The problem with its E, a matrix of each library size (in memory, or of stores in ``out``), and the record."""
    matrices: list[Any] = []
    with contextlib.ExitStack() as stack:
        sink: PairsSink
        if out is None:
            n = problem.data.series.n_series
            shape = len(problem.lib_sizes), n, n
            matrices = list(np.empty(shape, np.dtype(problem.data.dtype)))
            sink = ArraySink(problem.blocks(), matrices)
        else:
            info, folder, stored = runner.alike(problem.kernels), Path(out), problem
            sink = stack.enter_context(sink_at(
                folder, info.name, begin, lambda member: open_stores(folder, stored, info, member, resume=resume)
            ))  # fmt: skip
        problem = with_dimensions(problem, runner, sink)
        record = runner.run(problem, sink)
    searched = sink.record.searched
    if out is not None:
        if isinstance(sink, SharedSink):  # whose stores need not be read again
            stores = dict(zip(problem.lib_sizes, sink.stores, strict=True))
        else:
            stores = read_stores(out)
        matrices = [stores[size].rho for size in problem.lib_sizes]
        if begin is not None:  # also those of the others
            searched = tuple(_searched({size: stores[size] for size in problem.lib_sizes}))
    return problem, matrices, replace(record, searched=searched)  # also those of E, and of blocks that were there


def _searched(stores: Mapping[int, XmapStore]) -> list[dict[str, Any]]:
    """What searched for neighbours, for any of the library sizes."""
    searches: list[dict[str, Any]] = []
    for store in stores.values():
        add(searches, store.searched)
    return searches


def _correlation(skill: str, fits: LinearFits | None) -> str:
    """The measure, of those that grow with the library."""
    if skill in ERRORS:
        raise InputError(
            f"skill={skill!r}: convergence is of correlations; ccm(skill={skill!r}) gives errors of a pair"
        )
    if skill != "pearson" and fits is not None:
        raise InputError(f"skill={skill!r}: method='smap' keeps sums of its fits only; take method='simplex'")
    return skill


def _method(named: Mapping[str, Any]) -> tuple[str, float | None, str]:
    """The method of a problem with these arguments, its theta, and the measure of skill."""
    return named.get("method", "simplex"), named.get("theta"), named.get("skill", "pearson")


def _rows(rows: tuple[MapRows, ...], pred_range: Any) -> tuple[MapRows, ...]:
    """Rows that are drawn and predicted; a range of these has no holes here."""
    if any(choice.pred_range is not None and len(choice.pred_range) > 1 for choice in rows):
        what = "folds=: groups are mixed" if pred_range is None else f"pred_range={arguments.shown(pred_range)}"
        raise InputError(
            f"{what}: ccm_matrix predicts one range of rows without holes, (begin, end); xmap takes several"
            + (", or sort the rows by group" if pred_range is None else ", or call once for each")
        )
    return rows
