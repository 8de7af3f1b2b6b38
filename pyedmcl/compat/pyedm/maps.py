"""pyEDM's cross maps: convergent cross mapping, maps of all columns, and surrogate data."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arguments import integer, room, several
from ...device.select import open_device
from ...engines.ccm import CcmPair, SampledSkill
from ...errors import InputError, MissingExtraError, shown
from ...states.arguments import draws
from ...states.states import future, given_states
from ...statistics import means
from ...surrogates.surrogate import surrogate
from ..checked import checked
from . import frames
from .forecast import Simplex, pyplot, skill
from .frames import Embed

# Surrogate data with pyEDM's arguments and returns.


_LEAST = 4  # rows of a cubic spline
_METHODS = {"ebisuzaki": "phase", "random_shuffle": "shuffle"}


@checked
def SurrogateData(
    dataFrame: Any = None, column: str | None = None, method: str = "ebisuzaki", numSurrogates: int = 10,
    alpha: float | None = None, smooth: float = 0.8, outputFile: str | None = None,
) -> Any:  # fmt: skip
    """Surrogates of a column beside the frame's time.

    Parameters
    ----------
    dataFrame : DataFrame
        First column the time.
    column : str
    method : {"ebisuzaki", "random_shuffle", "seasonal"}
        The last adds shuffled residuals and Gaussian noise to a smoothing spline, and needs SciPy.
    numSurrogates : int
    alpha : float, optional
        Standard deviation of the noise of "seasonal"; a fifth of the data's range by default.
    smooth : float
        Smoothing factor of its spline.
    outputFile : str, optional
        Also write the frame there as CSV.

    Returns
    -------
    DataFrame
        The time, ``column_1``, ``column_2``, ...; rounded to 8 digits. Of random origin in each call.

    Raises
    ------
    InputError
        An argument cannot be used.
    """
    data = frames.frame(dataFrame, "SurrogateData")
    if not isinstance(column, str) or column not in data.columns:
        raise InputError(f"SurrogateData: column={column!r} is no column of the dataFrame")
    x = frames.doubles(data[column], "SurrogateData")
    if numSurrogates < 1:
        raise InputError(f"SurrogateData: numSurrogates={numSurrogates}; at least 1 is needed")
    room("SurrogateData: numSurrogates", (numSurrogates, len(x)))
    kind = method.lower()
    if kind in _METHODS:
        drawn = surrogate(x, _METHODS[kind], n=numSurrogates)
        if kind == "ebisuzaki":  # pyEDM gives each the data's own standard deviation, and takes the mean out
            spread = np.nanstd(x) / np.nanstd(drawn, axis=1, keepdims=True)
            drawn = (drawn - np.nanmean(drawn, axis=1, keepdims=True)) * spread
    elif kind == "seasonal":
        drawn = _seasonal(x, numSurrogates, alpha, smooth)
    else:
        raise InputError(f"SurrogateData: method={method!r}; 'ebisuzaki', 'random_shuffle' or 'seasonal' is needed")
    pandas = frames.pandas()
    table = pandas.DataFrame(drawn.T, columns=[f"{column}_{i + 1}" for i in range(numSurrogates)]).round(8)
    frame = data.iloc[:, [0]].reset_index(drop=True).join(table)
    if outputFile:
        frame.to_csv(outputFile, index=False)
    return frame


def _seasonal(x: Any, n: int, alpha: float | None, smooth: float) -> Any:
    from ...errors import MissingExtraError

    try:
        from scipy.interpolate import UnivariateSpline  # type: ignore[import-untyped, unused-ignore]
    except ImportError as error:
        raise MissingExtraError("method='seasonal' needs the package 'scipy': pip install scipy") from error
    for name, value in (("alpha", alpha), ("smooth", smooth)):
        if value is not None and value < 0:
            raise InputError(f"SurrogateData: {name}={value}; a number of at least 0 is needed")
    if len(x) < _LEAST or not np.isfinite(x).all():
        raise InputError(f"SurrogateData: method='seasonal' needs {_LEAST} rows at least, and no gaps")
    spline = UnivariateSpline(np.arange(len(x)), x)
    spline.set_smoothing_factor(smooth)
    trend = spline(np.arange(len(x)))
    rng = np.random.default_rng()
    size = np.ptp(x) / 5 if alpha is None else alpha
    return np.array([trend + rng.permutation(x - trend) + rng.normal(0, size, len(x)) for _ in range(n)])


# Convergent cross mapping with pyEDM's arguments, its own random sub-libraries, and returns.


Doubles = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass
class CCMTask:
    """What ``CCM(..., returnObject=True)`` returns.

    Attributes
    ----------
    libMeans : DataFrame
        LibSize, and the mean skill of both directions.
    E : int
    libSizes : list of int
    samples : ndarray (2, n_sizes, sample)
        Skill of each sample.
    """

    E: int
    libSizes: list[int]
    libMeans: Any = field(default=None, repr=False)
    samples: Any = field(default=None, repr=False)


def library_sizes(given: Any, E: int, n: int) -> list[int]:
    """pyEDM's reading of libSizes: a list, or (start, stop, increment) where the increment is below the stop.

    Raises
    ------
    InputError
        A size is too small or larger than the data.
    """
    sizes = frames.numbers(given, "libSizes", "CCM")
    if not sizes:
        raise InputError("CCM: libSizes is empty; library sizes, or start, stop and increment, are needed")
    if len(sizes) == 3 and sizes[2] < sizes[1]:
        start, stop, step = sizes
        if step < 1 or start > stop or start < max(E, 3):
            raise InputError(
                f"CCM: libSizes={shown(given)}: an increment of at least 1 and a start of at least {max(E, 3)}, not "
                "above the stop, are needed"
            )
        sizes = list(range(start, stop + 1, step))
    if max(sizes) > n:
        raise InputError(f"CCM: libSizes goes up to {shown(max(sizes))}; there are {n} rows")
    if min(sizes) < E + 2:
        raise InputError(f"CCM: libSizes begins with {shown(min(sizes))}; at least {E + 2} rows are needed for E={E}")
    return sizes


@checked
def CCM(
    dataFrame: Any = None, columns: Any = "", target: Any = "", libSizes: Any = "", sample: int = 30, E: int = 0,
    Tp: int = 0, knn: int = 0, tau: int = -1, exclusionRadius: int = 0, seed: int | None = None,
    embedded: bool = False, validLib: Any = (), includeData: bool = False, noTime: bool = False, mpMethod: Any = None,
    parallel: Any = True, sharedMB: float = 0.01, verbose: bool = False, showPlot: bool = False,
    returnObject: bool = False, legacy: bool = False,
) -> Any:  # fmt: skip
    """Mean cross-map skill for several library sizes, in both directions.

    The sub-libraries are those that pyEDM draws for the same seed.

    Parameters
    ----------
    columns, target : str or list of str
        Both sides; of several columns each is embedded, and the first is predicted.
    libSizes : str or list of int
        Library sizes, or start, stop and increment.
    sample : int
        Sub-libraries of each size.
    includeData : bool
        Also the variance over the samples.
    dataFrame, E, Tp, knn, tau, exclusionRadius, embedded, validLib, seed, showPlot, returnObject
        As in pyEDM.
    noTime, mpMethod, parallel, sharedMB, verbose, legacy
        Without effect.

    Returns
    -------
    DataFrame or CCMTask
        Columns LibSize, ``x:y`` (states of x predict y), ``y:x``.

    Raises
    ------
    InputError
        An argument cannot be used.
    """
    data = frames.frame(dataFrame, "CCM")
    one, other = (frames.names(given, what, "CCM", data) for given, what in ((columns, "columns"), (target, "target")))
    if not embedded and tau == 0:
        raise InputError("CCM: tau=0; a lag of at least one step is needed, negative for the past")
    if embedded:
        E = len(one)
    elif E < 1:
        raise InputError(f"CCM: E={E}; an embedding dimension of at least 1 is needed")
    if seed is not None and seed < 0:
        raise InputError(f"CCM: seed={seed}; a number of at least 0 is needed")
    draws("CCM: sample", sample)
    room("CCM: sample", (sample, len(data)))
    if abs(Tp) >= max(len(data), 1):
        raise InputError(f"CCM: Tp={Tp} leads beyond all {len(data)} rows")
    room("CCM: knn", (len(data), max(knn, 1)))
    sizes = library_sizes(libSizes, E, len(data))
    to_draw = SubLibraryDraws(sizes, sample, knn if knn > 0 else E + 1, exclusionRadius, seed)
    valid = frames.mask(validLib, len(data), "CCM")
    rho = np.array([
        _direction(data, library, data[library] if embedded else Embed(data, E=E, tau=tau, columns=library),
                   future(frames.doubles(data[targets[0]], "CCM"), Tp), valid, to_draw)
        for library, targets in ((one, other), (other, one))
    ])  # fmt: skip
    mean = means(rho)
    ways = [f"{one[0]}:{other[0]}", f"{other[0]}:{one[0]}"]
    table: dict[str, Any] = {"LibSize": sizes}
    for way, values in zip(ways, mean, strict=True):
        table[way] = values
    if includeData:
        for way, values, centre in zip(ways, rho, mean, strict=True):
            table[f"{way}_var"] = np.nanmean((values - centre[:, None]) ** 2, axis=1)
    task = CCMTask(E, sizes, frames.pandas().DataFrame(table), rho)
    if showPlot:
        plt = pyplot()
        ax = task.libMeans.plot("LibSize", list(dict.fromkeys(ways)), title=f"E = {E}", linewidth=3)
        ax.set(xlabel="Library Size", ylabel="CCM ρ")  # noqa: RUF001
        ax.axhline(y=0, linewidth=1)
        plt.show()
    return task if returnObject else task.libMeans


@dataclass(frozen=True)
class SubLibraryDraws:
    """Which sub-libraries are drawn, and how they predict.

    Attributes
    ----------
    sizes : list of int
    samples : int
        Sub-libraries of each size.
    k, radius : int
        Neighbours; rows around a predicted one that are none.
    seed : int or None
    anew : bool
        Whether draws begin anew for each size.
    """

    sizes: list[int]
    samples: int
    k: int
    radius: int
    seed: int | None
    anew: bool = True


def _direction(
    data: Any, library: list[str], embedding: Any, future_target: Doubles, valid: Mask | None, to_draw: SubLibraryDraws
) -> Doubles:
    """rho (n_sizes, samples) of one direction."""
    states = frames.doubles(embedding, "CCM")
    usable = np.isfinite(states).all(axis=1) & np.isfinite(future_target) & np.isfinite(data[library[0]].to_numpy())
    if valid is not None:
        usable &= valid
    rows = np.flatnonzero(usable)
    least = to_draw.k + 1
    if len(rows) < least:
        raise InputError(f"CCM: {library[0]!r} has {len(rows)} rows with a state and a target; {least} are needed")
    # Only these rows are drawn, and only these are predicted.
    future_targets = np.where(usable, future_target, np.nan)
    rho: Doubles = sampled_skill(states, future_targets[None], rows, to_draw)[0]
    return rho


def sampled_skill(
    states: Doubles, future_targets: Doubles, rows: NDArray[np.int64], to_draw: SubLibraryDraws
) -> Doubles:
    """rho (n_targets, n_sizes, samples) for pyEDM's own draws among ``rows``.

    Rows that have fewer than k neighbours are not predicted, as in pyEDM.
    """
    executor = open_device(None)
    dtype = "float64" if executor.info.fp64 else "float32"
    samples = to_draw.samples
    n, out = len(states), np.full((len(future_targets), len(to_draw.sizes), samples), np.nan)
    entropy = np.random.SeedSequence(to_draw.seed).entropy
    for place, size in enumerate(to_draw.sizes):
        drawn = min(size, len(rows))
        count = min(to_draw.k, drawn - 1)
        if to_draw.anew or place == 0:
            generator = np.random.default_rng(np.random.SeedSequence(entropy))
        members = np.zeros((samples, n), bool)
        for sample in range(samples):
            members[sample, rows[generator.choice(len(rows), size=drawn, replace=False)]] = True
        shared = np.broadcast_to(members, (len(future_targets), 1, samples, n))
        library_states = given_states(states, k=count, Tp=0, exclusion_radius=to_draw.radius, dtype=dtype)
        engine = SampledSkill(executor, library_states, future_targets, least=count)
        try:
            pairs = [CcmPair(0, target_index, (0, 0)) for target_index in range(len(future_targets))]
            out[:, place] = engine.skill(pairs, [drawn], samples, 0, shared)[:, 0]
        finally:
            engine.release()
    return out


# Maps of all columns of a frame, with pyEDM's arguments and returns.


def _features(data: Any, noTime: bool) -> list[str]:
    return list(data.columns if noTime else data.columns[1:])


def _dimensions(E: Any, n: int, who: str) -> list[int]:
    dims = [integer(f"{who}: E", e, 1) for e in several(f"{who}: E", E)]
    dims = dims * n if len(dims) == 1 else dims
    if len(dims) != n:
        raise InputError(f"{who}: E={shown(E)}; one dimension, or one for each of the {n} columns, is needed")
    return dims


def _write(table: Any, path: str, who: str) -> None:
    if path.endswith(".csv"):
        table.to_csv(path, index_label="variable")
    elif path.endswith(".feather"):
        table.to_feather(path)
    else:
        raise InputError(f"{who}: outputFile={path!r}; a name that ends in .csv or .feather is needed")


@checked
def CrossMap_Matrix(
    data: Any, E: Any = 0, Tp: int = 1, tau: int = -1, exclusionRadius: int = 0, lib: Any = None, pred: Any = None,
    threshold: float | None = None, cores: int = 5, mpMethod: Any = None, chunksize: int = 1,
    returnValue: str = "matrix", outputFile: str | None = None, noTime: bool = False, verbose: bool = False,
    plot: bool = False, title: str | None = None, figsize: tuple[float, float] = (5, 5), dpi: int = 150,
) -> Any:  # fmt: skip
    """Skill of :func:`Simplex` from each column (row of the matrix) to each column, with E of the target.

    Returns
    -------
    ndarray (n, n) or DataFrame
        NaN on the diagonal and, with ``threshold``, below it.
    """
    if returnValue not in ("matrix", "dataframe"):
        raise InputError(f"CrossMap_Matrix: returnValue={returnValue!r}; 'matrix' or 'dataframe' is needed")
    frames.frame(data, "CrossMap_Matrix")
    names = _features(data, noTime)
    dims = _dimensions(E, len(names), "CrossMap_Matrix")
    lib, pred = (frames.rows_or(rows, [1, len(data)]) for rows in (lib, pred))
    rho = np.full((len(names), len(names)), np.nan)
    for i, column in enumerate(names):
        for j, target in enumerate(names):
            if i != j:
                rho[i, j] = skill(Simplex(data, [column], [target], lib, pred, E=dims[j], Tp=Tp,
                                          tau=tau, exclusionRadius=exclusionRadius, noTime=noTime))  # fmt: skip
    if threshold is not None:
        rho[rho < threshold] = np.nan
    table = frames.pandas().DataFrame(rho, index=names, columns=names)
    if outputFile:
        _write(table, outputFile, "CrossMap_Matrix")
    if plot:
        plt = pyplot()
        figure = plt.figure(figsize=figsize, dpi=dpi)
        ax = figure.add_subplot()
        ax.set(title=f"{title}")
        ax.set_xticks(range(len(names)), names, rotation=90)
        ax.set_yticks(range(len(names)), names)
        figure.colorbar(ax.matshow(rho))
        plt.show()
    return rho if returnValue == "matrix" else table


@checked
def EmbedDim_Columns(
    data: Any, target: str | None = None, maxE: int = 15, minE: int = 1, lib: Any = None, pred: Any = None, Tp: int = 1,
    tau: int = -1, exclusionRadius: int = 0, firstMax: bool = False, validLib: Any = (), noTime: bool = False,
    ignoreNan: bool = True, nWorkers: Any = None, mpMethod: Any = None, chunksize: int = 1,
    outputFile: str | None = None, verbose: bool = False, logPct: float = 5, plot: bool = False,
) -> Any:  # fmt: skip
    """Embedding dimension of each column, by its own skill or that of ``target``.

    Parameters
    ----------
    firstMax : bool
        Take the first local maximum of rho instead of the highest value.

    Returns
    -------
    DataFrame
        column, target, E (0 where there is no skill) and rho.
    """
    frames.frame(data, "EmbedDim_Columns")
    minE = max(minE, 1)
    frames.checked_range(maxE, "maxE", "EmbedDim_Columns", data)
    if maxE < minE:
        raise InputError(f"EmbedDim_Columns: maxE={maxE} is below minE={minE}")
    if target is not None and target not in data.columns:
        raise InputError(f"EmbedDim_Columns: target={target!r} is no column of the data")
    lib, pred = (frames.rows_or(rows, [1, len(data)]) for rows in (lib, pred))
    rows = []
    for column in _features(data, noTime):
        target_column = column if target is None else target
        skills: list[tuple[int, float]] = []
        for E in range(minE, maxE + 1):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                try:
                    rho = skill(Simplex(data, [column], [target_column], lib, pred, E=E, Tp=Tp, tau=tau,
                                        exclusionRadius=exclusionRadius, validLib=validLib, noTime=noTime))  # fmt: skip
                except InputError:  # too short for this E
                    continue
            if np.isnan(rho):
                continue
            if firstMax and skills and rho < skills[-1][1]:
                break
            skills.append((E, rho))
        if firstMax:
            skills = skills[-1:]
        best = max(skills, key=lambda pair: (pair[1], -pair[0]), default=(0, float("nan")))
        rows.append((column, target_column, np.uint16(best[0]), np.float32(round(best[1], 4))))
    table = frames.pandas().DataFrame(rows, columns=["column", "target", "E", "rho"])
    if outputFile:
        table.to_csv(outputFile, index=False) if outputFile.endswith(".csv") else table.to_feather(outputFile)
    return table


class CCM_Matrix:
    """Convergent cross mapping of all pairs of columns; :meth:`Run` computes it.

    Parameters
    ----------
    dataFrame : DataFrame
        First column the time, unless ``noTime``.
    E : int or sequence of int
        Of each column's own states.
    libSizes : sequence of int
        Library sizes; else ``pLibSizes`` percent of the rows.
    Tp, tau, exclusionRadius, sample, seed, expConverge
        As in pyEDM; the sub-libraries are its own.
    parallel, mpMethod, sharedMB, targetBatchSize, progressLog, progressInterval
        Without effect.

    Attributes
    ----------
    tensor : ndarray of float32 (n, n, n_sizes)
        Mean skill with which column i's states predict column j (pyEDM keeps float16).
    slope, exp_a : ndarray of float32 (n, n)
        Slope of the skill against the share of the rows; rate of an exponential approach, if asked for.
    """

    def __init__(
        self, dataFrame: Any, E: Any, libSizes: Any = (), pLibSizes: Any = (10, 20, 80, 90), Tp: int = 0,
        tau: int = -1, exclusionRadius: int = 0, sample: int = 30, seed: int | None = None, noTime: bool = False,
        parallel: Any = True, mpMethod: Any = None, sharedMB: float = 0.01, targetBatchSize: int | None = None,
        expConverge: bool = False, progressLog: Any = None, progressInterval: int = 5,
    ) -> None:  # fmt: skip
        self._data = frames.frame(dataFrame, "CCM_Matrix")
        self.column_names = _features(self._data, noTime)
        if len(self.column_names) < 2:
            raise InputError(f"CCM_Matrix: there are {len(self.column_names)} columns; at least 2 are needed")
        self.E_vec = _dimensions(E, len(self.column_names), "CCM_Matrix")
        n = len(self._data)
        percent = np.round(np.asarray(pLibSizes, float) / 100 * n).astype(int)
        self.libSizes = list(libSizes) or np.unique(np.clip(percent, 2, n)).tolist()
        self.Tp, self.tau, self.exclusionRadius = Tp, tau, exclusionRadius
        self.sample, self.seed, self.expConverge = sample, seed, expConverge
        self.tensor: Any = None
        self.slope: Any = None
        self.exp_a: Any = None

    def Run(self) -> dict[str, Any]:
        """Compute tensor, slope and rate: a dict with these, "columns" and "libSizes"."""
        values = frames.doubles(self._data[self.column_names], "CCM_Matrix")
        n, m = len(values), len(self.column_names)
        future_targets = future(values.T, self.Tp)
        tensor = np.full((m, m, len(self.libSizes)), np.nan, np.float32)
        for i, (name, E) in enumerate(zip(self.column_names, self.E_vec, strict=True)):
            states = frames.doubles(Embed(self._data, E=E, tau=self.tau, columns=[name]), "CCM_Matrix")
            rows = np.flatnonzero(np.isfinite(states).all(axis=1))
            if len(rows) < E + 2:
                continue
            others = [j for j in range(m) if j != i]
            to_draw = SubLibraryDraws(self.libSizes, self.sample, E + 1, self.exclusionRadius, self.seed, anew=False)
            rho = sampled_skill(states, future_targets[others], rows, to_draw)
            tensor[i, others] = means(rho)
        self.tensor = tensor
        share = np.asarray(self.libSizes, float) / n
        if len(self.libSizes) > 1:
            self.slope = _slope(tensor, share)
        if self.expConverge:
            self.exp_a = _rate(tensor, share)
        return {"tensor": tensor, "columns": self.column_names, "slope": self.slope, "exp_a": self.exp_a,
                "libSizes": self.libSizes}  # fmt: skip


def _slope(tensor: Any, share: Doubles) -> Any:
    values = tensor.astype(np.float64)
    middle = means(values)[..., None]
    values = np.where(np.isnan(values), middle, values)
    apart = share - share.mean()
    return (((values - values.mean(axis=-1, keepdims=True)) @ apart) / (apart @ apart)).astype(np.float32)


def _rate(tensor: Any, share: Doubles) -> Any:
    try:
        from scipy.optimize import curve_fit  # type: ignore[import-untyped, unused-ignore]
    except ImportError as error:
        raise MissingExtraError("CCM_Matrix(expConverge=True) needs the package 'scipy': pip install scipy") from error

    def curve(x: Doubles, a: float, b: float, y0: float) -> Doubles:
        out: Doubles = y0 + b * (1.0 - np.exp(-a * x))
        return out

    rates = np.full(tensor.shape[:2], np.nan, np.float32)
    for place in np.ndindex(*rates.shape):
        y = tensor[place].astype(np.float64)
        if np.isfinite(y).sum() < 3:
            continue
        try:
            fitted, _ = curve_fit(curve, share, y, p0=[2.0, 1.0, 0.1], bounds=([0, 0, 0], [100, 1, 1]), method="dogbox")
        except (RuntimeError, ValueError):  # no fit
            continue
        rates[place] = fitted[0]
    return rates
