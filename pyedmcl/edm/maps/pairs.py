"""What problems of all pairs have in common: arguments, what identifies them, and E, which a first stage may find."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...data.arguments import shown
from ...data.condition import Prepared
from ...data.grid import Grid
from ...data.group_labels import take_groups
from ...data.groups import Layout
from ...data.series import Series, as_series, check_embedding, require_rows, tell_constant
from ...device.fingerprint import device_key
from ...device.info import DeviceInfo
from ...errors import InputError
from ...jobs.blocks import Block, Record, rows_of_a_block
from ...jobs.manifest import Manifest
from ...jobs.runner import Runner
from ...jobs.sinks import PairsSink
from ...kernels import spec
from ...neighbors.choose import SearchRequest
from ..embedding.dimension_rule import DimensionRule, tell_doubtful
from ..embedding.embed_dimension_problem import EmbedDimensionProblem
from ..shared import arguments
from ..shared.map_rows import MapRows
from ..shared.masks import library_mask_of
from ..shared.states import tell_stateless
from ..shared.targets import targets_of

_P = TypeVar("_P", bound="PairsProblem")
_BLOCK_SERIES = 1024  # libraries of a block in memory


@dataclass(frozen=True)
class PairsProblem:
    """A problem of all pairs of some series, or of these and other ones, cut into blocks of libraries.

    Attributes
    ----------
    data : Prepared
        The libraries.
    E : tuple of int or None
        Embedding dimension of each target; None while it is to be found.
    E_max : int or None
        Largest dimension that is tried where E is to be found, or was; None where E was asked for.
    tau, Tp, exclusion_radius : int
    knn : int or None
        Neighbours; E + 1 if None.
    search : SearchRequest
        How neighbours are searched.
    targets : Prepared or None
        The targets, where these are not the libraries.
    rows : MapRows or None
        Rows of the library, and rows that are predicted; None for all.
    E_rule : DimensionRule
        Which dimension is taken where E is to be found.
    """

    data: Prepared
    E: tuple[int, ...] | None
    E_max: int | None
    tau: int
    Tp: int
    exclusion_radius: int
    knn: int | None
    search: SearchRequest
    targets: Prepared | None = field(default=None, kw_only=True)
    rows: MapRows | None = field(default=None, kw_only=True)
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

    def blocks(self) -> list[Block]:
        """Ranges of libraries."""
        raise NotImplementedError

    @property
    def kernels(self) -> tuple[str, ...]:
        """Kernels that the answer depends on."""
        raise NotImplementedError

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
        from ... import __version__

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

    Raises
    ------
    InputError
        Data or an argument cannot be used.
    """
    _, tau = check_embedding(1, tau)
    fields = {
        "tau": tau, "Tp": arguments.integer("Tp", Tp),
        "exclusion_radius": arguments.exclusion(exclusion_radius),
        "knn": arguments.count("knn", knn), "search": arguments.neighbor_search(neighbors, recall),
    }  # fmt: skip
    fields["E_rule"] = DimensionRule.parse(E_rule)
    dtype = arguments.precision(dtype)
    E_max = arguments.integer("E_max", E_max, 1)
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
