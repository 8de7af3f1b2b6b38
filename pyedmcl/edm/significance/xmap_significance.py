"""Significance of all-pairs cross mapping: every skill against surrogates of its target, adjusted for all pairs."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...data.grid import Grid
from ...device.select import DeviceNames
from ...errors import InputError
from ...io.fields import labelled
from ...io.graphs import Graph, graph_of
from ...io.optional import need, pandas_for
from ...io.result import Result
from ...io.roles import role_columns
from ...io.saved import save_result
from ...jobs.function import public_function
from ...jobs.turns import begin_of
from ...launch.progress import Progress
from ...registry import BUDGET
from ..maps.pairs import pairs_in_groups
from ..shared import arguments
from ..shared.exceedance import p_values, smallest_p
from ..shared.false_discovery import false_discovery
from ..shared.sequential import FIRST, decided, tell_reach
from ..surrogates.group_surrogates import parts_of
from ..surrogates.method_choices import tell_lost
from ..surrogates.surrogate import SeriesMakers, check_method
from .surrogate_folder import folder_for
from .surrogate_tests import surrogate_tests
from .xmap_significance_problem import XmapSignificanceProblem

Doubles = NDArray[np.float64]
#: The result, in the folder ``out`` of a call that has ended.
SIGNIFICANCE_FILE = "significance.edm"


@dataclass(frozen=True, repr=False)
class XmapSignificance(Graph, Result):
    """All-pairs cross-map skill and its significance.

    Attributes
    ----------
    rho : ndarray of float64 (n_series, n_series)
        Row = library, column = target, as of :func:`pyedmcl.xmap`.
    p_value : ndarray of float64 (n_series, n_series)
        (1 + surrogates of the target that do as well) / (1 + n): one-sided; NaN on the diagonal and where rho is.
    q_value : ndarray of float64 (n_series, n_series)
        Adjusted for all pairs off the diagonal (Benjamini and Hochberg).
    E : ndarray of int (n_series,)
        Embedding dimension of each target.
    names : tuple of str
    n : int
        Surrogates of each target; of n="auto", the most that any pair got.
    method : str
        Of the surrogates.
    seed : int
    draws : ndarray of int (n_series, n_series)
        Surrogates of each pair that have a skill: those that its p-value counts.
    rate : float
        The false discovery rate at which n="auto" decided.
    reasons : tuple of str
        For method "auto", "seasonal" without a period, and "phase" and "iaaft" of series with gaps: what was taken for
        each target, and why.
    grid : Grid or None
        Where the series lie, if they are a field.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.xmap_significance(network.values[:, :2], E=3, n=99, seed=1)
    >>> result.significant(0.05).tolist()  # row = effect, column = cause: x0 drives x1
    [[False, False], [True, False]]
    >>> result.smallest_p, result.smallest_q
    (0.01, 0.02)
    """

    rho: Doubles
    p_value: Doubles
    q_value: Doubles
    E: NDArray[np.int_]
    names: tuple[str, ...]
    n: int
    method: str
    seed: int
    draws: NDArray[np.int_]
    rate: float = 0.05
    reasons: tuple[str, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)
    grid: Grid | None = field(default=None, repr=False)

    @property
    def smallest_p(self) -> float:
        """The smallest p-value that n surrogates can give."""
        return smallest_p(self.n)

    @property
    def smallest_q(self) -> float:
        """The smallest q-value that n surrogates can give a pair which alone is significant."""
        return min(int(np.isfinite(self.p_value).sum()) * self.smallest_p, 1.0)

    def decided(self, rate: float | None = None) -> NDArray[np.bool_]:
        """Pairs (n_series, n_series) whose significance more surrogates would not change, but for a chance of 0.001.

        ``rate`` is the false discovery rate; by default that at which n="auto" decided.
        """
        limit = self.rate if rate is None else arguments.share("rate", rate)
        return decided(self.p_value, self.draws, limit)

    def significant(self, rate: float = 0.05) -> NDArray[np.bool_]:
        """Pairs (n_series, n_series) that are called significant at a false discovery rate."""
        significant: NDArray[np.bool_] = self.q_value <= arguments.share("rate", rate)
        return significant

    def to_frame(self, rate: float | None = None) -> Any:
        """A pandas DataFrame of pairs off the diagonal, the strongest first.

        Columns: cause, effect, library (the effect), target (the cause), rho, p_value, q_value, E, and whose E it is.

        With ``rate``, only those significant at this false discovery rate.
        """
        chosen = ~np.eye(len(self.names), dtype=bool) if rate is None else self.significant(rate)
        library, target = np.nonzero(chosen)
        strength = np.where(np.isnan(self.rho), -np.inf, self.rho)[library, target]
        order = np.lexsort((target, library, -strength))
        library, target = library[order], target[order]
        return pandas_for("to_frame()").DataFrame({
            **role_columns([self.names[i] for i in library], [self.names[j] for j in target]),
            "rho": self.rho[library, target], "p_value": self.p_value[library, target],
            "q_value": self.q_value[library, target], "E": self.E[target],
            "E_of": "cause",
        })  # fmt: skip

    def to_xarray(self) -> Any:
        """An xarray.Dataset of rho, p_value, q_value and draws (library, target), and of E (target); the coordinates of
        a field take the place of its cells."""
        pairs = [("library", self.grid or self.names), ("target", self.grid or self.names)]
        names = ("rho", "p_value", "q_value", "draws")
        parts = {name: labelled(getattr(self, name), pairs, name) for name in names}
        return need("xarray", "to_xarray()").Dataset({**parts, "E": labelled(self.E, pairs[1:], "E")})

    def to_networkx(self, rate: float = 0.05) -> Any:
        """A networkx.DiGraph of all series, with an edge from cause to effect for each pair that is significant at a
        false discovery rate. Needs networkx."""
        frame = self.to_frame(rate)
        values = frame[["rho", "p_value", "q_value"]].to_dict("records")
        edges = zip(frame["cause"], frame["effect"], values, strict=True)
        return graph_of(self.names, dict(zip(self.names, self.E.tolist(), strict=True)), edges)

    def plot(self, path: str | None = None, rate: float = 0.05, *, cluster: bool = False) -> Any:
        """Map of the skill with a star for what is significant; saved to ``path`` if given. Needs matplotlib.

        ``cluster`` puts series that are alike side by side, for which SciPy is needed.
        """
        from ...plot import heat_map

        title = f"* significant at a false discovery rate of {rate:g} ({self.method} surrogates, up to {self.n:,})"
        return heat_map(self.rho, self.names, path, title=title, marks=self.significant(rate), cluster=cluster)

    def plot_network(
        self, path: str | None = None, rate: float = 0.05, *, top: int = 40, layout: str = "circle",
        clusters: Any = None,
    ) -> Any:  # fmt: skip
        """Significant pairs as arrows from cause to effect; saved to ``path`` if given. Needs matplotlib.

        ``layout`` and ``clusters`` as for ``CausalNetwork.plot``.
        """
        from ...plot.network import causal_network

        title = f"significant at a false discovery rate of {rate:g}"
        return causal_network(
            self.rho, self.names, path, keep=self.significant(rate), top=top, title=title, layout=layout,
            clusters=clusters,
        )  # fmt: skip


@public_function
def xmap_significance(
    data: Any,
    *,
    E: str | int | Sequence[int] = "auto",
    tau: int = 1,
    Tp: int = 0,
    surrogate: str = "auto",
    n: int | str = "auto",
    rate: float = 0.05,
    budget: int = BUDGET,
    seed: int | None = None,
    exclusion_radius: int = 0,
    knn: int | None = None,
    E_max: int = 20,
    E_rule: str | float = "best",
    period: float | None = None,
    recurrence: float = 0.1,
    columns: Sequence[str | int] | str | int | None = None,
    groups: Any = None,
    regular: str | None = None,
    out: str | os.PathLike[str] | None = None,
    join: bool = False,
    part: str | None = None,
    progress: Progress | None = None,
    dtype: str = "float32",
    device: DeviceNames = None,
    client: Any = None,
    tune: str | None = None,
) -> XmapSignificance:
    """Cross map every series onto every other, and onto surrogates of it: which skills are more than chance?

    Parameters
    ----------
    data : array_like (n_steps, n_series)
        Time along the first axis, NaN for gaps (which all methods but "twin" allow).
    surrogate : str
        Method of :func:`pyedmcl.surrogate`; "auto" chooses one for each target.
    n : int or "auto"
        Surrogates of each target. The smallest p-value is 1 / (n + 1): with many pairs, many surrogates are needed.
        "auto" draws them in rounds, and only for pairs of which it is open whether they are significant at ``rate``,
        until all are decided (but for a chance of 0.001 each) or the ``budget`` is spent.
    rate : float
        False discovery rate at which n="auto" decides; in (0, 1).
    budget : int
        For n="auto": surrogates of a pair, as a mean over all pairs; 2000 by default. What pairs that are soon decided
        leave goes to the others, up to 5 times as many for each, and 50 times where no surrogate has reached the skill.
    seed : int, optional
        Chooses the surrogates; by default a fresh one, which the result names.
    period, recurrence
        As for :func:`pyedmcl.surrogate`; "twin" takes each target's E, and tau.
    out : path, optional
        A folder that keeps what is finished, and at last the result, which :func:`pyedmcl.open_result` opens. The same
        call continues after an interruption, with the seed of the first, and gives the result again once it is
        complete.
    join, part
        Several processes that share the folder ``out`` compute one result; as for :func:`pyedmcl.xmap`.
    progress : callable or True, optional
        Called as ``progress(done, total, "series")`` with targets whose surrogates are done and, while E is searched,
        with unit "dimensions"; within long searches with unit "queries".
    groups : str, sequence of str, or labels (n_steps,), optional
        Recordings that stand one below the other, as for :func:`pyedmcl.xmap`; each has surrogates of its own rows.
    regular : {"insert", "ignore"}, optional
        What is done where times of rows are not regular, as for :func:`pyedmcl.xmap`.
    E, tau, Tp, exclusion_radius, knn, E_max, E_rule, columns, dtype, device, tune
        As for :func:`pyedmcl.xmap`.
    client : optional
        As for :func:`pyedmcl.xmap`.

    Returns
    -------
    XmapSignificance

    Raises
    ------
    InputError
        Data or an argument cannot be used.
    DeviceNotFoundError, DeviceMemoryError
        No device matches; the surrogates of one target or a table do not fit.
    StoreForeignError, StoreMismatchError, StoreWriteError
        ``out`` is not ours, belongs to other data or arguments, or cannot be written.
    Interrupted
        Ctrl-C with ``out``: what was finished is kept.
    ClientError
        Workers of ``client`` cannot be used, or were lost.

    See Also
    --------
    false_discovery : from p-values to false discovery rates.
    surrogate : the null hypotheses.

    Notes
    -----
    Cost: the lookups of :func:`xmap` for n + 1 times as many targets; its search is repeated for each batch of
    targets that fits into memory. With n="auto" most pairs need some forty surrogates; those that are not decided soon
    need more, the closer they are to the limit.

    A remark tells where n is so small that no pair could pass at ``rate``.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> result = pyedmcl.xmap_significance(network.values, E=3, n=19, seed=1)
    >>> result.p_value.shape
    (4, 4)
    """
    count = arguments.surrogates(n)
    out = arguments.folder("out", out)
    begin = begin_of(join, part, out, "out")
    number = None if seed is None and out is not None else arguments.stream(seed)
    limit, most = arguments.share("rate", rate), arguments.draws("budget", budget)
    arguments.reporter(progress)
    check_method(surrogate, "surrogate")
    fields, layout = pairs_in_groups(
        data, E=E, tau=tau, Tp=Tp, exclusion_radius=exclusion_radius, knn=knn, E_max=E_max, E_rule=E_rule,
        columns=columns, groups=groups, dtype=dtype,
    )  # fmt: skip
    series = fields["data"].series
    if series.n_series < 2:
        raise InputError("data: there is one series; pairs need two at least")
    makers = SeriesMakers(series, surrogate, fields["tau"], period, recurrence, layout=layout)
    tell_lost([part for _, part in parts_of(series, layout, "data")], surrogate)
    problem = XmapSignificanceProblem(**fields, makers=makers, n=count or min(FIRST, most), seed=number or 0)
    runner = arguments.runner_on(device, problem.data.dtype, client)
    with contextlib.ExitStack() as stack:
        folder = None
        if out is not None:
            rounds = {"n": count} if count else {"n": "auto", "rate": limit, "budget": most}
            stored_arguments = {**problem.arguments(), **rounds, "surrogate": surrogate, "period": period,
                     "recurrence": recurrence}  # fmt: skip
            folder = stack.enter_context(folder_for(
                Path(out), begin, runner.infos[0].name, stored_arguments, number, series.digest()
            ))  # fmt: skip
            problem = replace(problem, seed=folder.seed)
        record, dims, table = surrogate_tests(problem, runner, rate=limit, budget=0 if count else most, folder=folder)
        p_value = p_values(table.reached, table.n)
        tell_reach(p_value, int(table.n.max(initial=0)), limit)
        result = XmapSignificance(
            table.rho, p_value, false_discovery(p_value), dims, series.names, count or int(table.n.max(initial=0)),
            surrogate, problem.seed, table.n, limit, makers.reasons,
            runner.provenance(problem.kernels, record), series.grid,
        )  # fmt: skip
        if folder is not None:
            save_result(result, Path(out) / SIGNIFICANCE_FILE, of=folder.of)
            folder.settle()  # not before: who leaves last removes files that look unfinished
    return result
