"""What problems of all pairs have in common, maps at several lags, and predictions of chosen pairs."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..device.info import DeviceInfo, device_key
from ..embedding.dimension import DimensionRule, EmbedDimensionProblem, tell_doubtful
from ..engines.crossmap import MapData
from ..engines.lagged import LaggedMap, Libraries, Span, centred, laid_out, room_for
from ..engines.predict import PairPredictions
from ..engines.targets import TOO_FEW
from ..errors import InputError, shown, warn
from ..jobs.blocks import Arrays, Block, BlockResult, Manifest, Record, Report, cut, rows_of_a_block
from ..jobs.runner import ArraySink, PairsSink, Runner
from ..kernels import spec
from ..search.choose import SearchRequest
from ..search.plan import SearchProblem
from ..search.tables import delay_problem
from ..series.fields import Grid
from ..series.groups import Layout, take_groups
from ..series.scaling import Prepared
from ..series.series import Series, as_series, check_embedding, require_rows, tell_constant
from ..states import arguments
from ..states.arguments import operations
from ..states.rows import MapRows, library_mask_of
from ..states.states import targets_of, tell_stateless

if TYPE_CHECKING:
    from ..device.executor import Executor


# How precise the skill of maps is to be: what ``precision=`` allows, and what is said where it was not possible.




def check_map_precision(precision: str, dtype: str, others: Mapping[str, Any]) -> str:
    """The precision of a map, checked.

    Parameters
    ----------
    precision, dtype : str
        Of the map.
    others : mapping
        What a map of less precision cannot have -> whether it was asked for.
    """
    if precision == "full":
        return precision
    reasons = [words for words, given in others.items() if given]
    if dtype != "float32":
        reasons.append(f"dtype={shown(dtype)}")
    if reasons:
        raise InputError(
            f"precision={shown(precision)} cannot be used with {reasons[0]}: leave one of them out; less precision is "
            "for maps with Pearson's rho in float32"
        )
    return precision


def tell_in_full(provenance: Mapping[str, Any]) -> None:
    """Warn where targets of a map with ``precision="compact"`` were computed in full, though it could save time."""
    entries = [entry for entry in provenance.get("precision", ()) if entry["full"] and entry["why"] != TOO_FEW]
    if entries:
        worst = max(entries, key=lambda entry: int(entry["full"]))
        warn(
            f"precision='compact': {worst['full']} of {worst['targets']} targets were computed in full, since "
            f"{worst['why']}"
        )


_P = TypeVar("_P", bound="PairsProblem")
_BLOCK_SERIES = 1024  # libraries of a block in memory


@dataclass(frozen=True)
class PairsProblem(ABC):
    """A problem of all pairs of some series, or of these and other ones, cut into blocks of libraries."""

    # The libraries.
    data: Prepared
    # Embedding dimension of each target; None while it is to be found.
    E: tuple[int, ...] | None
    # Largest dimension that is tried where E is to be found, or was; None where E was asked for.
    E_max: int | None
    tau: int
    Tp: int
    exclusion_radius: int
    # Neighbours; E + 1 if None.
    knn: int | None
    # How neighbours are searched.
    search: SearchRequest
    # The targets, where these are not the libraries.
    targets: Prepared | None = field(default=None, kw_only=True)
    # Rows of the library, and rows that are predicted; None for all.
    rows: MapRows | None = field(default=None, kw_only=True)
    # Which dimension is taken where E is to be found.
    E_rule: DimensionRule = field(default=DimensionRule(), kw_only=True)

    @property
    def target_data(self) -> Prepared:
        """The targets, whichever they are."""
        return self.data if self.targets is None else self.targets

    @property
    def unit(self) -> str:
        return "series"

    @property
    def total(self) -> int:
        return self.data.series.n_series

    @property
    def highest(self) -> int:
        """The largest dimension that may be met."""
        return max(self.E) if self.E_max is None and self.E is not None else int(self.E_max or 1)

    @property
    def dims(self) -> Sequence[int]:
        """Dimensions that may be met."""
        return range(1, self.E_max + 1) if self.E_max is not None else self.E or ()

    def size(self, block: Block) -> int:
        return len(block)

    @abstractmethod
    def blocks(self) -> list[Block]:
        """Ranges of libraries."""

    @property
    @abstractmethod
    def kernels(self) -> tuple[str, ...]:
        """Kernels that the answer depends on."""

    def arguments(self) -> dict[str, Any]:
        """What identifies the problem beside its data; plain numbers and text."""
        named: dict[str, Any] = {
            "E": "auto" if self.E_max is not None else _digest(self.E or ()), "tau": self.tau, "Tp": self.Tp,
            "exclusion_radius": self.exclusion_radius, "knn": self.knn, "E_max": self.E_max, "dtype": self.data.dtype,
            **self.own_arguments(), **({} if self.rows is None else self.rows.arguments()),
        }  # fmt: skip
        if self.E_max is not None and self.E_rule != DimensionRule():
            named["E_rule"] = self.E_rule.value
        if self.search.search != "exact":  # the first stores knew no other
            named |= {"neighbors": self.search.search, "recall": self.search.recall}
        return named

    @property
    def compact(self) -> bool:
        """Whether lookups may take targets of 16 bits."""
        return False

    def own_arguments(self) -> dict[str, Any]:
        """Those that other problems of all pairs do not have."""
        return {}

    def manifest(self, info: DeviceInfo, **more: Any) -> Manifest:
        """What a store of the result is made from, on a device; ``more`` are further parameters."""
        from .. import __version__

        digest = self.data.series.digest()
        if self.targets is not None:
            digest = hashlib.sha256((digest + self.targets.series.digest()).encode()).hexdigest()
        return Manifest(
            input_digest=digest,
            names=self.data.series.names,
            block_rows=len(self.blocks()[0]),
            parameters=self.arguments() | more,
            version=__version__,
            kernels={name: spec(name).digest() for name in self.kernels},
            device=device_key(info).as_dict(),
            dtype=self.data.dtype,
            targets=None if self.targets is None else self.targets.series.names,
            grids=_described([self.data.series.grid, self.target_data.series.grid]),
        )

    def first_stage(self) -> EmbedDimensionProblem:
        """How E is found: by the skill of each target predicting itself one step ahead."""
        return EmbedDimensionProblem(
            self.target_data, self.E_max or 1, self.tau, 1, self.exclusion_radius, self.knn, self.search, "dimensions",
            self.E_rule.parts,
        )


def _described(grids: Sequence[Grid | None]) -> list[Any] | None:
    """Grids as a manifest holds them; None where there is none."""
    described = [None if grid is None else grid.described() for grid in grids]
    return None if described == [None, None] else described


def libraries_of_a_block(n_libraries: int, devices: int = 1) -> int:
    """Libraries of a block of a map in memory, which ``devices`` share; a store's blocks are smaller."""
    return rows_of_a_block(n_libraries, _BLOCK_SERIES, devices)


def pairs_arguments(data: Any, **given: Any) -> dict[str, Any]:
    """The fields of a :class:`PairsProblem` from what the user gave; see :func:`pairs_in_groups`."""
    return pairs_in_groups(data, **given)[0]


def pairs_in_groups(
    data: Any, *, E: Any, tau: Any, Tp: Any, exclusion_radius: Any, knn: Any, E_max: Any, columns: Any, dtype: Any,
    neighbors: Any = "exact", recall: Any = 0.99, targets: Any = None, groups: Any = None, E_rule: Any = "best",
    lags: Sequence[int] = (),
) -> tuple[dict[str, Any], Layout | None]:  # fmt: skip
    """The fields of a :class:`PairsProblem` from what the user gave, and how groups lie among the rows.

    The field of targets is there only where there are other ones. ``lags`` are intervals that are met instead of Tp.
    """
    _, tau = check_embedding(1, tau)
    fields = {
        "tau": tau, "Tp": Tp,
        "exclusion_radius": exclusion_radius,
        "knn": knn, "search": SearchRequest(neighbors, recall),
    }  # fmt: skip
    fields["E_rule"] = DimensionRule.parse(E_rule)
    rest, of = take_groups(data, groups, "data")
    series = as_series(rest, columns=columns)
    target_series = series
    if targets is not None:
        target_series = targets_of(rest, series, take_groups(targets, groups, "targets", required=False)[0])
    dims = _dimensions(E, target_series, tau, "series" if target_series is series else "targets")
    tell_constant(data=series, **({} if target_series is series else {"targets": target_series}))
    highest = E_max if dims is None else max(dims)
    require_rows(series, E=highest, tau=tau, Tp=fields["Tp"], k=1, name="E_max" if dims is None else "E")
    if dims is not None:
        tell_stateless(series, min(dims), tau)
    layout = None
    if of is not None:  # E is found one step ahead
        ahead = [*(lags or [fields["Tp"]]), *([1] if dims is None else [])]
        layout = of.layout(E=highest, tau=tau, Tp=ahead, exclusion_radius=fields["exclusion_radius"])
        laid, fields["exclusion_radius"] = layout.series(series), layout.exclusion_radius
        series, target_series = laid, laid if target_series is series else layout.series(target_series, "targets")
    fields["data"] = Prepared(series, dtype)
    if targets is not None:
        fields["targets"] = Prepared(target_series, dtype)
    for name in {"data", "targets"} & fields.keys():
        _ = fields[name].conditioned  # it is needed, and tells of outliers and levels whatever the engine
    return {**fields, "E": dims, "E_max": E_max if dims is None else None}, layout


def gap_patterns(problem: PairsProblem) -> tuple[NDArray[np.int_], dict[int, NDArray[np.bool_]]]:
    """Of each target the number of its pattern of gaps, 0 for none, and the library rows that each pattern allows."""
    values, gaps = problem.target_data.series.values, problem.target_data.conditioned.gaps
    patterns, masks = np.zeros(len(gaps), int), {}
    numbers: dict[bytes, int] = {}
    for column in np.flatnonzero(gaps):
        mask = library_mask_of(values[:, column], problem.Tp)
        assert mask is not None
        patterns[column] = number = numbers.setdefault(mask.tobytes(), len(numbers) + 1)
        masks[number] = mask
    return patterns, masks


def with_dimensions(problem: _P, runner: Runner, sink: PairsSink) -> _P:
    """The problem with E of each series: as asked for, as an earlier run found it, or from a first stage of the job."""
    E: Any = problem.E if sink.E is None else sink.E
    record = Record()
    if E is None:
        stage = problem.first_stage()
        stage_sink = sink.stage("E", stage.total, stage.blocks(runner.devices))
        runner.run(stage, stage_sink)
        results = [np.concatenate(arrays) for arrays in zip(*stage_sink.results(), strict=True)]
        E = problem.E_rule.choose(*results)
        tell_doubtful(problem.target_data.series.names, E, results[0])
        record = Record(searched=tuple({**entry, "for": "E"} for entry in stage_sink.record.searched))
    sink.set_E(E, record)
    return replace(problem, E=tuple(np.asarray(E).tolist()))


def _dimensions(E: Any, series: Series, tau: int, what: str = "series") -> tuple[int, ...] | None:
    """Dimension of each series, or None for "auto"."""
    n = series.n_series
    if isinstance(E, str):
        if E != "auto":
            raise InputError(f"E={shown(E)}: 'auto', an integer of at least 1, or one for each of the {n} {what}")
        return None
    values = arguments.several("E", E)
    if len(values) == 1 and not hasattr(E, "__len__"):
        return (check_embedding(E, tau)[0],) * n
    if len(values) != n:
        raise InputError(f"E has {len(values)} values, but there are {n} {what}")
    return tuple(check_embedding(value, tau)[0] for value in values)


def _digest(dims: Sequence[int]) -> Any:
    """Dimensions as a manifest holds them: one number if they are equal, else a digest."""
    if len(set(dims)) == 1:
        return dims[0]
    return "sha256:" + hashlib.sha256(np.array(dims, "<i4").tobytes()).hexdigest()


# What a device gets of a map: targets grouped by dimension, gaps and library rows.


def map_data(problem: PairsProblem) -> MapData:
    """What the device gets of a problem whose E is known: targets grouped by dimension and pattern of gaps."""
    return layered_map_data(problem, np.array([problem.E], int))


def layered_map_data(problem: PairsProblem, E: NDArray[np.int_]) -> MapData:
    """The same for several layers with dimensions ``E`` (n_layers, n_targets)."""
    conditioned, n = problem.data.conditioned, problem.data.series.n_steps
    gap_pattern, library_masks = gap_patterns(problem)
    neighbors = n - (E.max(axis=1) - 1) * problem.tau - abs(problem.Tp)  # rows that may be neighbours, of each layer
    predicted = hidden = None
    if problem.rows is not None:
        gap_pattern, library_masks = row_patterns(problem, E, gap_pattern, library_masks)
        least = [min(map(int, own)) for own in _library_rows(E, gap_pattern, library_masks, problem.tau)]
        neighbors, predicted = np.minimum(neighbors, least), problem.rows.predicted(n)
        hidden = problem.rows.holes(n)
    gaps = conditioned.gaps.any() or problem.target_data.conditioned.gaps.any() or hidden is not None
    return MapData(
        conditioned.values, E, problem.tau, problem.Tp, problem.exclusion_radius, problem.knn, gap_pattern,
        library_masks, gaps=gaps | (neighbors - 2 * problem.exclusion_radius - 1 < 1), search=problem.search,
        targets=None if problem.targets is None else problem.targets.conditioned.values, predicted=predicted,
        hidden=hidden, compact=problem.compact, stateless=problem.data.stateless,
    )  # fmt: skip


def _library_rows(
    E: NDArray[np.int_], patterns: NDArray[np.int_], masks: dict[int, Any], tau: int
) -> Iterator[list[Any]]:
    """Library rows of the patterns of each layer."""
    for dims, own in zip(E, patterns, strict=True):
        pairs = sorted({*zip(dims.tolist(), own.tolist(), strict=True)})
        yield [masks[number][(dim - 1) * tau :].sum() for dim, number in pairs]


def row_patterns(
    problem: PairsProblem, E: NDArray[np.int_], gap_pattern: NDArray[np.int_], masks: dict[int, Any]
) -> tuple[NDArray[np.int_], dict[int, Any]]:
    """Patterns of gaps together with the rows of the library, which may depend on the dimension.

    Rows that have no state in a dimension count as allowed: dimensions with no other difference share a search.
    """
    assert problem.rows is not None
    patterns, mask_of = np.zeros(E.shape, int), {}
    numbers: dict[bytes, int] = {}
    n = problem.data.series.n_steps
    for dim, number in sorted({*zip(E.ravel().tolist(), np.broadcast_to(gap_pattern, E.shape).ravel().tolist(),
                                    strict=True)}):  # fmt: skip
        rows = problem.rows.library_mask(n, dim, problem.tau, problem.Tp)
        mask = np.ones(n, bool) if rows is None else rows.copy()
        if number:
            mask &= masks[number]
        mask[: (dim - 1) * problem.tau] = True
        pattern = numbers.setdefault(mask.tobytes(), len(numbers) + 1)
        mask_of[pattern] = mask
        patterns[np.equal(E, dim) & (gap_pattern == number)] = pattern
    return patterns, mask_of


# Cross maps of all pairs at several intervals as a job: at which lag does an effect remember its cause best?


@dataclass(frozen=True)
class LaggedMapProblem(PairsProblem):
    """Skill of each series as library against each as target, E being that of the library; rows are intervals."""

    # Tp of each map; the field Tp is not used.
    lags: tuple[int, ...]

    @property
    def kernels(self) -> tuple[str, ...]:
        return ("stage", "knn", "lookup")

    @property
    def unit(self) -> str:
        return "lags"

    @property
    def total(self) -> int:
        return len(self.lags)

    def blocks(self) -> list[Block]:
        """Lag by lag."""
        return cut(self.total, 1)

    @property
    def operations(self) -> float:
        n, N = self.data.series.n_steps, self.data.series.n_series
        return len(self.lags) * operations(self.dims, n_library=n, n_query=n, n_series=N, n_targets=N)

    def open(self, executor: Executor) -> LaggedMapEngine:
        return LaggedMapEngine(self, executor)


class LaggedMapEngine:
    """The engine of :class:`LaggedMapProblem`: all series on a device, as libraries and as targets."""

    def __init__(self, problem: LaggedMapProblem, executor: Executor) -> None:
        self._problem, self._n = problem, problem.data.series.n_series
        self._map = LaggedMap(executor, libraries_of(problem, np.arange(self._n), problem.lags))
        series = problem.data.series.values
        values = room_for(len(series), self._n, problem.data.dtype)
        for j in range(self._n):
            values[: len(series), j] = laid_out(series[:, j].astype(np.float64), *centred(series[:, j]))
        try:
            self._map.load(values, [Span(j, j + 1, missing_of(series[:, j])) for j in range(self._n)])
        except BaseException:
            self._map.release()
            raise

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """rho (lags of the block, n_series, n_series)."""
        (out,) = [np.empty((len(block), self._n, self._n))] if into is None else into
        everything = np.ones((self._n, self._n), bool)
        for place, Tp in enumerate(self._problem.lags[block.begin : block.end]):
            out[place] = self._map.skill(Tp, everything)
            report(place + 1)
        return BlockResult([out], Record(self._map.parameters))

    def release(self) -> None:
        """Give the device memory back."""
        self._map.release()


def missing_of(values: NDArray[np.floating]) -> NDArray[np.bool_] | None:
    """Rows of a series that are gaps; None where there is none."""
    missing = np.isnan(values)
    return missing if missing.any() else None


def libraries_of(problem: PairsProblem, which: NDArray[np.int_], lags: tuple[int, ...]) -> Libraries:
    """Some series of a problem as libraries, each with its own E."""
    conditioned, n_steps = problem.data.libraries, problem.data.series.n_steps
    E = np.array(problem.E, int)
    far = max(abs(lag) for lag in lags)
    rows = n_steps - (int(E.max()) - 1) * problem.tau - far - 2 * problem.exclusion_radius - 1
    return Libraries(
        conditioned.values[:, which], E[which], problem.tau, problem.exclusion_radius, problem.knn,
        bool(conditioned.gaps.any()) or rows < 1, problem.search,
    )  # fmt: skip


# Predictions of pairs of series as a job: the problem, and the engine that computes some of them.


_BLOCK_PAIRS = 4096
Numbers = NDArray[np.int_]


@dataclass(frozen=True)
class PairOptions:
    """What all pairs share."""

    tau: int
    exclusion_radius: int
    # Neighbours; E + 1 if None.
    knn: int | None
    # What kernels compute in.
    dtype: str

    def search(self, E: int, Tp: int, n: int) -> SearchProblem:
        """The search of a library of ``n`` steps."""
        return delay_problem(E, self.tau, self.knn or E + 1, Tp, self.exclusion_radius, n, n, self.dtype)


@dataclass(frozen=True)
class PairPredictionsProblem:
    """Simplex predictions of targets from the states of libraries, pair by pair; rows of the result are pairs."""

    # libraries, targets: ndarray (n_steps, n_libraries), (n_steps, n_targets). NaN for gaps.
    libraries: NDArray[Any]
    targets: NDArray[Any]
    # ndarray of int (n_pairs, 4). Library, target, embedding dimension, and Tp; pairs of one dimension, Tp and library
    # side by side.
    pairs: Numbers
    options: PairOptions

    kernels: ClassVar[tuple[str, ...]] = ("knn", "predict")
    unit: ClassVar[str] = "predictions"

    @property
    def total(self) -> int:
        return len(self.pairs)

    def size(self, block: Block) -> int:
        return len(block)

    def blocks(self) -> list[Block]:
        """Ranges of pairs."""
        return cut(self.total, _BLOCK_PAIRS)

    @property
    def operations(self) -> float:
        n, n_libraries = len(self.libraries), len(np.unique(self.pairs[:, [0, 2, 3]], axis=0))
        dims = self.pairs[:, 2].tolist() or [1]
        return operations(dims, n_library=n, n_query=n, n_series=n_libraries, n_targets=self.total // n_libraries + 1)

    def open(self, executor: Executor) -> PairPredictionsEngine:
        return PairPredictionsEngine(self, executor)


class PairPredictionsEngine:
    """The engine of :class:`PairPredictionsProblem`; it holds nothing on the device between blocks."""

    def __init__(self, problem: PairPredictionsProblem, executor: Executor) -> None:
        self._problem, self._executor = problem, executor

    def block(self, block: Block, into: Arrays | None, report: Report) -> BlockResult:
        """Predictions (pairs of the block, n_steps) at the rows that are predicted."""
        p, record, done = self._problem, Record(), 0
        pairs = p.pairs[block.begin : block.end]
        (out,) = [np.empty((len(pairs), len(p.libraries)))] if into is None else into
        for E, Tp in np.unique(pairs[:, 2:], axis=0).tolist():
            rows = np.flatnonzero((pairs[:, 2] == E) & (pairs[:, 3] == Tp))
            libraries, library = np.unique(pairs[rows, 0], return_inverse=True)
            targets, target = np.unique(pairs[rows, 1], return_inverse=True)
            search = p.options.search(E, Tp, len(p.libraries))
            engine = PairPredictions(self._executor, p.libraries[:, libraries], p.targets[:, targets], search)
            try:
                for number, predicted in engine.predict(list(zip(library.tolist(), target.tolist(), strict=True))):
                    out[rows[number]] = predicted
                record = record.joined(Record(engine.parameters))
            finally:
                engine.release()
            done += len(rows)
            report(done)
        return BlockResult([out], record)

    def release(self) -> None:
        """Nothing is held."""


def predict_pairs(
    runner: Runner, libraries: NDArray[Any], targets: NDArray[Any], pairs: Numbers, options: PairOptions
) -> tuple[NDArray[np.float64], Record]:
    """Predictions (n_pairs, n_steps) of pairs in any order; see :class:`PairPredictionsProblem`."""
    order = np.lexsort((pairs[:, 1], pairs[:, 0], pairs[:, 3], pairs[:, 2]))
    problem = PairPredictionsProblem(libraries, targets, pairs[order], options)
    rho = np.empty((len(pairs), len(libraries)))
    record = runner.run(problem, ArraySink(problem.blocks(), [rho]))
    out = np.empty_like(rho)
    out[order] = rho
    return out, record
