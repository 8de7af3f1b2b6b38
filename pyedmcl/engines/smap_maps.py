"""Maps of local linear fits on a device: skill, and mean slopes, of blocks of libraries against all targets."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..device.memory import budget, memory_share
from ..errors import DeviceMemoryError
from ..jobs.blocks import Record
from ..kernels import spec
from ..kernels.texts import GAP
from ..launch.replay import FEW_BYTES, replayed
from ..launch.staging import Pool, Staging, require_rho
from .smap_map_kernels import MapKernels, MapShape, MeanSlopes, host_bytes
from .targets import layout_of_smap, require_room

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor


# What maps of local linear fits are computed from, and which of their targets can be computed together.


@dataclass(frozen=True)
class SmapMapData:
    """What a map of local linear fits is computed from."""

    # ndarray (n_steps, n_targets). All targets, from :func:`pyedmcl.series.scaling.condition` for the working
    # precision.
    values: NDArray[Any]
    # ndarray (n_steps, n_series). All libraries, of float64, since regressors are made in double; or of float32 where
    # that holds them as they are.
    libraries: NDArray[Any]
    # ndarray of int (n_series,). ``libraries`` are the data times ``2**-exponent``, less a shift.
    exponents: NDArray[np.int_]
    # ndarray of int (n_targets,). Embedding dimension of each target.
    E: NDArray[np.int_]
    tau: int
    Tp: int
    exclusion_radius: int
    # ndarray of int (n_targets,). 0 for targets without gaps, else the number of the target's gap pattern.
    gap_pattern: NDArray[np.int_]
    # Pattern number -> library rows (n_steps,) that may be neighbours; see :mod:`pyedmcl.states.rows`.
    library_masks: Any
    # Whether any prediction or observation may be missing.
    gaps: bool
    # Localisations; a map for each.
    thetas: tuple[float, ...]
    # Penalty on the squared slopes, in units of the data.
    ridge: float = 0.0
    # ndarray (n_steps, n_targets), optional. The targets for what is done again in float64; ``libraries`` by default,
    # and of their types.
    in_double: NDArray[Any] | None = None
    # ndarray of bool (n_steps,), optional. Rows that are predicted; all by default. Else ``gaps`` must be True.
    asked: NDArray[np.bool_] | None = None
    # ndarray of int (n_targets,), optional. Mean slopes are wanted: ``in_double`` are the data times 2 to minus these
    # exponents, less a shift.
    slopes: NDArray[np.int_] | None = None
    # Predictions may be made with less precision on matrix units, where the device has them, which changes rho by up to
    # 1e-5.
    compact: bool = False

    @cached_property
    def doubles(self) -> NDArray[np.float64]:
        """The libraries in double."""
        return self.libraries.astype(np.float64, copy=False)

    @cached_property
    def targets(self) -> NDArray[np.float64]:
        """The targets in double."""
        return self.doubles if self.in_double is None else self.in_double.astype(np.float64, copy=False)

    def library_mask(self, pattern: int) -> NDArray[np.bool_]:
        """Library rows (n_steps,) that may be neighbours where a target has this pattern of gaps."""
        mask: NDArray[np.bool_] | None = self.library_masks.get(pattern)
        return np.ones(len(self.values), bool) if mask is None else mask

    @property
    def predicted(self) -> NDArray[np.bool_]:
        """Rows (n_steps,) that are predicted."""
        return np.ones(len(self.values), bool) if self.asked is None else self.asked

    def classes(self) -> tuple[NDArray[np.int_], list[tuple[int, int, int, int]]]:
        """Targets in an order in which those of one dimension and pattern of gaps are adjacent.

        And (E, pattern, begin, end) of each such class in that order: its targets share states and systems.
        """
        order = np.lexsort((np.arange(len(self.E)), self.E, self.gap_pattern))
        kinds = np.stack([self.gap_pattern[order], self.E[order]], axis=1)
        edges = [0, *(np.flatnonzero((kinds[1:] != kinds[:-1]).any(axis=1)) + 1).tolist(), len(order)]
        return order, [(int(kinds[a, 1]), int(kinds[a, 0]), a, b) for a, b in itertools.pairwise(edges)]


def left_around(members: NDArray[np.bool_], radius: int) -> NDArray[np.int32]:
    """How many members (n_libraries, n_steps) are farther than ``radius`` from each row: (n_libraries, n_steps)."""
    n = members.shape[-1]
    upto = np.zeros((len(members), n + 1), np.int32)
    np.cumsum(members, axis=1, out=upto[:, 1:])
    rows = np.arange(n)
    near = upto[:, np.minimum(rows + radius + 1, n)] - upto[:, np.maximum(rows - radius, 0)]
    out: NDArray[np.int32] = upto[:, -1:] - near
    return out


# Maps of local linear fits (S-map) on a device: skill, and mean slopes, of blocks of libraries against all targets.
#
# A prediction by S-map is linear in the targets: for each row of a library one small system is solved, which says how
# much each other row counts, and then serves all targets (``templates/smap_gram.cl.mako``). So a map is, for each
# *class* of targets (one dimension, one pattern of gaps, :meth:`SmapMapData.classes`) and each *batch* of libraries (as
# many as memory allows):
#
#     whiten   states of the libraries             for each theta; once where only theta changes, and is 1 or more
#     solve    a system for each row               for each theta
#     map      rho of all targets of the class     for each theta
#
# :class:`MapKernels` launches these. This module decides what is computed together, and does again in float64 the
# libraries of which some fit is too nearly singular for float32: the kernels call them *doubtful*.


_LIBRARIES_MOST = 4096  # at a time; a dimension of a launch
_SUMS_BYTES_MOST = 256 << 20
_HOST_BYTES_MOST = 512 << 20  # of what mean slopes are made from
_SHARE_OF_DOUBLE = 0.25  # of memory, for what is done again in float64


class SmapMap:
    """All-pairs skill by S-map: one small system for each library row, which serves all targets.

    Parameters
    ----------
    none_doubtful : ndarray of int32 (n_libraries,), optional
        Zeros for the first :meth:`maps`, to be copied before anything is launched.
    """

    def __init__(
        self, executor: Executor, data: SmapMapData, none_doubtful: NDArray[np.int32] | None = None
    ) -> None:
        self.executor, self._data = executor, data
        self.n_steps, self.n = data.values.shape
        self.dtype = data.values.dtype.name
        shape = MapShape(
            self.n_steps, self.n, data.tau, data.Tp, data.exclusion_radius, data.gaps, data.ridge > 0,
            data.slopes is not None, self.dtype, data.compact,
        )  # fmt: skip
        self._pool = Pool(executor, "smap_map", shape, data.libraries.shape, data.E.tobytes())
        self._kernels = MapKernels(executor, self._pool, shape)
        self._marked = none_doubtful is not None
        if none_doubtful is not None:  # before the first launch it goes with the first copy of a repeated map
            self._pool.put("doubtful", none_doubtful)
        self._slopes = None
        if data.slopes is not None:
            self._slopes = MeanSlopes(self._kernels, data.doubles, data.targets, (data.exponents, data.slopes))
        self._staged: list[Staging] = []
        try:
            room = self._load_targets()
            self._series = self._staged[0]
            if data.libraries is not data.values:
                self._series = Staging(executor, data.libraries, room=room // 8)
                self._staged.append(self._series)
            self._classes = [self._kernels.class_of(*key) for key in self._keys]
            self._batch = self._libraries_at_once(room)
        except BaseException:
            self.release()
            raise

    def _load_targets(self) -> int:
        """Targets time-major, those of one dimension and pattern of gaps side by side; returns the bytes left."""
        data, limit, item = self._data, budget(self.executor.info), self._data.values.itemsize
        layout = layout_of_smap(self.n_steps, self.n)
        self._stride = layout.stride
        nbytes = layout.elements * item
        require_room(self.executor.info, limit, (self.n_steps, self.n), nbytes)
        self._order, self._keys = data.classes()
        self._column_of = np.empty(self.n, np.int32)
        self._column_of[self._order] = np.arange(self.n)
        scored = (np.maximum((data.E - 1) * data.tau, -data.Tp) + data.Tp, min(self.n_steps, self.n_steps + data.Tp))
        room = int(limit.total - nbytes)
        staging = Staging(self.executor, data.values, scored=scored, room=room // 8)
        self._staged.append(staging)
        self._targets = self._pool.get("targets", nbytes)
        staging.targets(self._column_of, layout.stride, self._targets, layout.rows)
        self._target_of = self._pool.constant("target_of", self._order.astype(np.int32))
        return room

    def _libraries_at_once(self, room: int) -> int:
        """Libraries whose states, fits and sums fit on the device."""
        most, largest = 0, 0
        for each in self._classes:
            need = self._kernels.bytes_of_library(each)
            most, largest = max(most, sum(need.values())), max(largest, *need.values())
            most = max(most, -(-need["sums"] * room // (2 * _SUMS_BYTES_MOST)))
        limit = budget(self.executor.info)
        if most > room // 2 or largest > limit.largest:
            raise DeviceMemoryError(
                f"one library of {self.n_steps:,} steps needs {most:,} bytes on the device; {room // 2:,} may be used "
                f"on {self.executor.info.name} (raise PYEDMCL_MEMORY_FRACTION or PYEDMCL_MEMORY_LIMIT)"
            )
        at_once = min(room // 2 // most, limit.largest // largest, _LIBRARIES_MOST)
        if self._slopes is not None:
            at_once = min(at_once, _HOST_BYTES_MOST // host_bytes(self.n_steps, int(self._data.E.max())))
        return max(at_once, 1)

    @property
    def parameters(self) -> dict[str, Any]:
        """Tuned parameters of the kernels, as the widest class of targets has them."""
        widest = max(self._classes, key=lambda each: each.n)
        tuned = {"smap_gram": widest.gram, "smap_map": widest.map}
        return {name: {t.name: values[t.name] for t in spec(name).tunables} for name, values in tuned.items()}

    @property
    def precision(self) -> list[dict[str, Any]]:
        """Where less precision was allowed: how many targets were computed in full, and why."""
        if not self._data.compact:
            return []
        full = 0 if self._kernels.on_matrix_units else self.n
        why = "maps by local linear fits gain from matrix units only, which are not used on this device" if full else ""
        return [{"for": "precision", "asked": "compact", "targets": self.n, "full": full, "why": why}]

    # ---- Whole libraries against all targets ----

    def skill(
        self, a: int, b: int, out: Sequence[NDArray[Any]], report: Callable[[int], None] | None = None,
        slopes: NDArray[Any] | None = None,
    ) -> Sequence[NDArray[Any]]:  # fmt: skip
        """rho (b - a, n_targets) of libraries a to b against all targets, for each theta, into ``out`` (contiguous).

        ``report`` is called with the libraries that are done, batch by batch. Where the data ask for slopes, ``slopes``
        (b - a, n_targets, at least E of any target) gets their means for the last theta, and NaN behind E.
        """
        for first in range(a, b, self._batch):
            n = min(self._batch, b - first)
            self._skill(first, n, [layer[first - a : first - a + n] for layer in out],
                        None if slopes is None else slopes[first - a : first - a + n])  # fmt: skip
            if report is not None:
                report(first - a + n)
        return out

    def _skill(self, a: int, n: int, out: Sequence[NDArray[Any]], slopes: NDArray[Any] | None) -> None:
        """A batch of :meth:`skill`."""
        thetas = self._data.thetas
        doubtful = np.empty((len(thetas), n), np.int32)
        self.maps(a, out, np.zeros(n, np.int32), doubtful, slopes)
        self.again_in_double(a, doubtful, out, slopes)
        for layer in out:
            require_rho(self.executor, layer, "smap_map")

    def maps(
        self, a: int, out: Sequence[NDArray[Any]], none_doubtful: NDArray[np.int32], doubtful: NDArray[np.int32],
        slopes: NDArray[Any] | None = None,
    ) -> None:  # fmt: skip
        """rho of libraries from ``a`` on, no more than fit on the device, as :meth:`skill` writes it.

        What is done does not depend on values, where nothing has gaps: ``doubtful`` (n_thetas, n) tells of which
        libraries a fit is too nearly singular for float32. ``none_doubtful`` (n,) holds zeros.
        """
        n, thetas = len(none_doubtful), self._data.thetas
        if not self._marked:
            self._pool.put("doubtful", none_doubtful)
        self._load_libraries(a, n)
        for place, theta in enumerate(thetas):
            if place:
                self._pool.put("doubtful", none_doubtful)
            # The basis of the regressors depends on theta up to 1 only.
            whitened = place > 0 and min(theta, 1.0) == min(thetas[place - 1], 1.0)
            rho = self._fit(a, n, theta, whitened=whitened, slopes=slopes)
            self.executor.download(self._pool.get("doubtful", 0), doubtful[place])
            self.executor.download(rho, out[place])
        self._marked = False

    def _load_libraries(self, a: int, n: int) -> None:
        series = self._pool.get("series", n * self.n_steps * 8)
        self._series.series_in_double(a, a + n, series)
        self._put_strength(np.arange(a, a + n))
        self._kernels.reserve(self._classes, n)

    def _fit(
        self, a: int, n: int, theta: float, *, whitened: bool = False, slopes: NDArray[Any] | None = None
    ) -> Buffer:
        """rho on the device of the libraries that were loaded; ``whitened``: their regressors are made for one class.

        The mean slopes of all targets go into ``slopes``.
        """
        data = self._data
        rho = self._pool.get("rho", n * self.n * data.values.itemsize)
        for each in self._classes:
            if len(self._classes) > 1 or not whitened:
                self._kernels.whiten(each, n, theta, data.library_mask(each.pattern), data.asked)
            self._kernels.solve(each, n, theta)
            self._kernels.map(each, n, self._targets, self._stride, self._target_of, rho, self.n)
            if self._slopes is not None and slopes is not None:
                columns = self._order[each.begin : each.end]
                slopes[:, columns] = np.nan
                slopes[:, columns, : each.E] = self._slopes.of(
                    each, a, n, columns, data.library_mask(each.pattern), data.predicted
                )
        return rho

    def again_in_double(
        self, a: int, doubtful: NDArray[np.int32], out: Sequence[NDArray[Any]], slopes: NDArray[Any] | None = None
    ) -> None:
        """Once more, and in float64, for libraries of which :meth:`maps` found some fit too nearly singular."""
        if self.dtype == "float32":
            for place, theta in enumerate(self._data.thetas):
                if doubtful[place].any():
                    self._in_double(a, np.flatnonzero(doubtful[place]), theta, out[place], slopes)

    def _in_double(
        self, a: int, libraries: NDArray[np.int_], theta: float, out: NDArray[Any], slopes: NDArray[Any] | None
    ) -> None:
        """The same for some libraries, places in ``out``, and one theta."""
        other = self._twin_in_double((theta,))
        try:
            for run in np.split(libraries, np.flatnonzero(np.diff(libraries) > 1) + 1):
                skill, part = np.empty((len(run), self.n)), slice(run[0], run[-1] + 1)
                slopes_of_run = None if slopes is None else slopes[part]
                other.skill(a + int(run[0]), a + int(run[-1]) + 1, [skill], slopes=slopes_of_run)
                out[part] = skill
        finally:
            other.release()

    # ---- Parts of libraries, each against one target ----

    def sampled(self, libraries: NDArray[np.int_], members: NDArray[np.bool_], target: int) -> NDArray[Any]:
        """rho (n,) of one target, each predicted from some rows of a library.

        Parameters
        ----------
        libraries : ndarray of int (n,)
            Columns of the libraries; one may occur often.
        members : ndarray of bool (n, n_steps)
            Rows that may be neighbours. The data's ``gaps`` must say that not all rows count. Rows around which these
            leave fewer than E + 1 are not predicted.

        Returns
        -------
        ndarray (n,)
            For the first of the data's thetas.
        """
        out = np.empty(len(libraries), self.dtype)
        for first in range(0, len(out), self._batch):
            part = slice(first, first + self._batch)
            self._sampled(libraries[part], members[part], target, out[part])
        require_rho(self.executor, out, "smap_map")
        return out

    def _sampled(
        self, libraries: NDArray[np.int_], members: NDArray[np.bool_], target: int, out: NDArray[Any]
    ) -> None:
        """A batch of :meth:`sampled`."""
        n, column, theta = len(libraries), int(self._column_of[target]), self._data.thetas[0]
        target_class = self._kernels.class_of(int(self._data.E[target]), 0, column, column + 1)
        series = self._data.doubles[:, libraries].T
        self._pool.put("series", np.where(np.isnan(series), GAP, series))
        self._put_strength(libraries)
        self._none_doubtful(n)
        rho = self._pool.get("rho", out.nbytes)
        asked = self._data.predicted & (left_around(members, self._data.exclusion_radius) > target_class.E)
        self._kernels.whiten(target_class, n, theta, members, asked)
        self._kernels.solve(target_class, n, theta)
        at_first = self._pool.constant("target of one", np.zeros(self.n, np.int32))
        self._kernels.map(target_class, n, self._targets, self._stride, at_first, rho, 1)
        self.executor.download(rho, out)
        doubtful = np.flatnonzero(self._doubtful(n))
        if len(doubtful) and self.dtype == "float32":
            other = self._twin_in_double((theta,))
            try:
                out[doubtful] = other.sampled(libraries[doubtful], members[doubtful], target)
            finally:
                other.release()

    # ---- Both ----

    def _put_strength(self, libraries: NDArray[np.int_]) -> None:
        """The penalty, where there is one, in units of the scaled libraries."""
        if not self._data.ridge:
            return
        strength = np.ldexp(np.full(len(libraries), self._data.ridge), -2 * self._data.exponents[libraries])
        self._pool.put("strength", np.minimum(strength, 1e300))

    def _doubtful(self, n: int) -> NDArray[np.int32]:
        """By library, whether some fit is too nearly singular for float32."""
        marked = self.executor.download(self._pool.get("doubtful", 0), np.empty(n, np.int32))
        self._pool.changed("doubtful", marked.tobytes())
        return marked

    def _none_doubtful(self, n: int) -> None:
        """No library is doubtful before its systems are solved, which may make it so."""
        self._pool.constant("doubtful", np.zeros(n, np.int32))

    def _twin_in_double(self, thetas: tuple[float, ...]) -> SmapMap:
        """The same map in float64."""
        with memory_share(_SHARE_OF_DOUBLE):
            return SmapMap(self.executor, replace(self._data, values=self._data.targets, thetas=thetas))

    @property
    def batch(self) -> int:
        """Libraries that fit on the device together."""
        return self._batch

    def release(self) -> None:
        """Give the device memory back."""
        self._pool.release()
        for staging in self._staged:
            staging.release()


# A map of local linear fits that is computed in one go; small ones go through the launches of the one before.


def whole_smap_map(
    executor: Executor, data: SmapMapData, first: int, layers: Sequence[NDArray[Any]]
) -> Record | None:
    """Write the skill of libraries from ``first`` on for all targets to ``layers`` (n_libraries, n_targets), by theta.

    None, with nothing written, where what is done depends on more than shapes and options.
    """
    n = len(layers[0])
    many = max(data.values.nbytes, data.libraries.nbytes, sum(layer.nbytes for layer in layers)) > FEW_BYTES
    if many or data.slopes is not None or data.gaps or data.ridge or data.asked is not None or data.gap_pattern.any():
        return None
    none_doubtful, doubtful = np.zeros(n, np.int32), np.zeros((len(layers), n), np.int32)

    def work(executor: Executor) -> Record:
        mapping = SmapMap(executor, data, none_doubtful)
        try:
            if n <= mapping.batch:
                mapping.maps(first, layers, none_doubtful, doubtful)
            else:
                mapping.skill(first, first + n, layers)
            return Record(mapping.parameters, "", tuple(mapping.precision))
        finally:
            mapping.release()

    options = data.tau, data.Tp, data.exclusion_radius, data.thetas, data.compact
    inputs = {"values": data.values, "libraries": data.libraries, "none_doubtful": none_doubtful}
    outputs = {"doubtful": doubtful, **{f"rho {place}": layer for place, layer in enumerate(layers)}}
    record = replayed(executor, ("smap_map", data.E.tobytes(), options, first), inputs, outputs, work)
    if doubtful.any() and data.values.dtype == np.float32:
        mapping = SmapMap(executor, data)
        try:
            mapping.again_in_double(first, doubtful, layers)
        finally:
            mapping.release()
    for layer in layers:
        require_rho(executor, layer, "smap_map")
    return record
