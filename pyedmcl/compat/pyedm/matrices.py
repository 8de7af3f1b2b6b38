"""Maps of all columns of a frame, with pyEDM's arguments and returns."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.arguments import integer, several
from ...edm.shared.convergence import means
from ...edm.shared.states import future
from ...errors import InputError, MissingExtraError, shown
from ..checked import checked
from . import frames
from .ccm import SubLibraryDraws, sampled_skill
from .embed import Embed
from .plots import pyplot
from .simplex import Simplex
from .sweeps import skill

Doubles = NDArray[np.float64]


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
