"""What a causal network is: the evidence of all pairs, verdicts, sentences, and the network itself."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...data.grid import Grid
from ...errors import InputError, shown
from ...io.fields import labelled
from ...io.graphs import Graph, graph_of
from ...io.labels import Label
from ...io.optional import need, pandas_for
from ...io.result import Result
from .causal_statement import statement
from .verdicts import DIRECT, INDIRECT, LINK, MEANINGS, NONE, UNORDERED

Doubles = NDArray[np.float64]
COLUMNS = (
    "cause", "effect", "verdict", "rho", "Tp", "best_lag", "rho_at_best_lag", "lag_allows", "p_lag", "p_value",
    "q_value", "surrogates", "gain", "p_convergence", "other", "rho_through_other", "partial", "p_partial",
    "p_forecast", "E", "E_of", "tau", "reasons",
)  # fmt: skip
#: Said first where it is likely.
HIDDEN = "so many are linked, or both ways, that a driver which is not in the table is likely"
# Of all pairs: those that are linked in both directions, and those with an arrow; of so many series at least.
_MANY_MUTUAL, _MANY_ARROWS, _LEAST_SERIES = 0.25, 0.4, 4
#: The whole result, in the folder of a network.
NETWORK_FILE = "network.edm"
_ORDER = (DIRECT, LINK, INDIRECT, UNORDERED, NONE)


@dataclass(frozen=True, repr=False)
class CausalNetwork(Graph, Result):
    """The evidence of each pair of series, and the verdict on it.

    All tables are (n_series, n_series) with **row = effect** (the library, whose states estimate) and **column =
    cause** (the target, which is estimated). What was not tested is NaN or None.

    Attributes
    ----------
    names : tuple of str
    verdict : ndarray of str
        "direct", "indirect", "link" (direct or not was not asked), "unordered" or "none".
    codes : ndarray of tuple of str
        The reasons of each verdict.
    rho, Tp : ndarray
        The highest skill of lags that a cause may have, and that lag; with all rows as library.
    skill, lag, lags, by_lag
        The highest skill of all ``lags``, its lag (None if that leg is off), and the skill at each (n_lags, ...).
    p_lag : ndarray
        P-value of the best lag that a cause may have being better than all others; NaN for pairs that fail another leg.
    p_value, q_value, draws : ndarray
        Against surrogates of the cause, and how many there were.
    gain, p_convergence : ndarray
        Of skill from the smallest to the largest library, and the p-value of the trend (Kendall, one-sided).
    through, carried, partial : ndarray
        Number of the series that explains the link best (-1 for none), the skill of the estimate of the cause through
        it, and the partial correlation that is left without it.
    p_partial : ndarray or None
        P-value of that partial correlation against surrogates of the cause, where ``partial_surrogates`` were asked
        for: whether anything is left, and not whether the link is direct.
    p_forecast : ndarray
        P-value of the cause improving forecasts of the effect; NaN where other evidence decides.
    E : ndarray of int (n_series,)
        Embedding dimension of each series.
    tau, rate, latest, surrogate, seed, n_steps
        What it was made with.
    groups : int
        Recordings that the rows belong to, where they were told apart; else 0.
    reasons : tuple of str
        For surrogates of method "auto": what was taken for each series, and why.
    season, without_season : float, tuple of str
        Rows of the cycle that was removed, 0 for none; and the names of the series that had it.
    exclusion_radius : int
        Rows so near in time were no neighbours.
    grid : Grid or None
        Where the series lie, if they are a field.

    Examples
    --------
    >>> import pyedmcl
    >>> from pyedmcl.simulate import coupled_maps
    >>> network = coupled_maps(n_series=4, n_steps=400)
    >>> found = pyedmcl.causal_network(network.values[:, [0, 2]], E=3, seed=1)
    >>> found.verdict[0, 1]  # row = effect, column = cause
    'direct'
    >>> print(found.statement(cause="x1", effect="x0").split(".")[0])
    A driver of both that is not in the table would look like this, too
    >>> found.rows(["direct"])[0][:3]
    ('x1', 'x0', 'direct')
    """

    column_labels: ClassVar = {
        "lag": Label("rows", "interval Tp that was tried"), "rho_by_lag": Label("1", "skill at each interval"),
    }  # fmt: skip

    names: tuple[str, ...]
    verdict: NDArray[Any]
    codes: NDArray[Any]
    rho: Doubles
    skill: Doubles
    lag: NDArray[np.int_] | None
    lags: tuple[int, ...]
    by_lag: Doubles = field(repr=False)
    p_lag: Doubles
    p_value: Doubles
    q_value: Doubles
    draws: NDArray[np.int_] | None
    gain: Doubles
    p_convergence: Doubles
    through: NDArray[np.int_]
    carried: Doubles
    partial: Doubles
    p_forecast: Doubles
    E: NDArray[np.int_]
    tau: int
    Tp: NDArray[np.int_]
    rate: float
    latest: int
    surrogate: str | None
    seed: int
    n_steps: int
    groups: int = 0
    reasons: tuple[str, ...] = ()
    season: float = 0
    without_season: tuple[str, ...] = ()
    exclusion_radius: int = 0
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)
    grid: Grid | None = field(default=None, repr=False)
    p_partial: Doubles | None = None

    def __repr__(self) -> str:
        return f"CausalNetwork of {len(self.names)} series: {self.summary()}"

    def summary(self) -> str:
        """How many pairs have which verdict, in words."""
        counts = {word: int((self.verdict == word).sum()) for word in _ORDER}
        counts[NONE] -= len(self.names)
        said = ", ".join(f"{count:,} {word}" for word, count in counts.items() if count)
        return f"{said}; {HIDDEN}" if self.hidden_driver else said

    @property
    def hidden_driver(self) -> bool:
        """Whether so many pairs are linked both ways, or directly, that a driver outside of the table is likely."""
        linked = np.isin(self.verdict.astype(str), (DIRECT, LINK, UNORDERED))
        arrows, N = np.isin(self.verdict.astype(str), (DIRECT, LINK)), len(self.names)
        most = max((linked & linked.T).sum() / _MANY_MUTUAL, arrows.sum() / _MANY_ARROWS)
        return N >= _LEAST_SERIES and bool(most >= N * (N - 1))

    def rows(self, verdicts: Collection[str] | None = None) -> list[tuple[Any, ...]]:
        """Pairs as rows of :data:`COLUMNS`, by verdict and then by skill; only those of some verdicts if given."""
        shown_verdicts = self._verdicts(verdicts)
        places = [
            (effect, cause) for effect, cause in np.ndindex(*self.rho.shape)
            if effect != cause and self.verdict[effect, cause] in shown_verdicts
        ]  # fmt: skip
        strength = np.where(np.isnan(self.skill), -np.inf, self.skill)
        places.sort(key=lambda place: (_ORDER.index(self.verdict[place]), -strength[place]))
        return [self._row(*place) for place in places]

    def _row(self, effect: int, cause: int) -> tuple[Any, ...]:
        at = (effect, cause)
        z = int(self.through[at])
        lag = None if self.lag is None else int(self.lag[at])
        return (
            self.names[cause], self.names[effect], self.verdict[at], float(self.rho[at]), int(self.Tp[at]), lag,
            float(self.skill[at]), None if lag is None else lag <= self.latest,
            float(self.p_lag[at]), float(self.p_value[at]), float(self.q_value[at]),
            0 if self.draws is None else int(self.draws[at]), float(self.gain[at]), float(self.p_convergence[at]),
            "" if z < 0 else self.names[z], float(self.carried[at]), float(self.partial[at]),
            float("nan") if self.p_partial is None else float(self.p_partial[at]), float(self.p_forecast[at]),
            int(self.E[effect]), "effect", self.tau, " ".join(self.codes[at]),
        )  # fmt: skip

    def to_frame(self, verdicts: Collection[str] | None = None) -> Any:
        """A pandas DataFrame with a row for each pair; only those of some verdicts, such as ["direct"], if given."""
        return pandas_for("to_frame()").DataFrame(self.rows(verdicts), columns=list(COLUMNS))

    def statement(self, cause: str, effect: str) -> str:
        """What can be said of a cause and an effect, in plain sentences with the numbers."""
        return statement(self, self._number(cause, "cause"), self._number(effect, "effect"))

    def methods(self) -> str:
        """A paragraph for the methods section."""
        from .causal_statement import methods

        return methods(self)

    def to_networkx(self, verdicts: Collection[str] = (DIRECT, LINK)) -> Any:
        """A networkx.DiGraph with an edge from cause to effect for each pair of some verdicts. Needs networkx."""
        rows = self.rows(verdicts)
        edges = ((row[0], row[1], dict(zip(COLUMNS[2:], row[2:], strict=True))) for row in rows)
        return graph_of(self.names, dict(zip(self.names, self.E.tolist(), strict=True)), edges)

    def to_xarray(self) -> Any:
        """An xarray.Dataset of all tables (effect, cause), of E (effect), and of the skill at each lag (lag, effect,
        cause); the coordinates of a field take the place of its cells."""
        pairs = [("effect", self.grid or self.names), ("cause", self.grid or self.names)]
        tables = {
            "verdict": self.verdict.astype(str), "rho": self.rho, "Tp": self.Tp, "rho_at_best_lag": self.skill,
            "best_lag": self.lag, "p_lag": self.p_lag, "p_value": self.p_value, "q_value": self.q_value,
            "surrogates": self.draws, "gain": self.gain, "p_convergence": self.p_convergence,
            "rho_through_other": self.carried, "partial": self.partial, "p_partial": self.p_partial,
            "p_forecast": self.p_forecast,
        }  # fmt: skip
        parts = {name: labelled(table, pairs, name) for name, table in tables.items() if table is not None}
        other = np.array(["", *self.names])[self.through + 1]
        parts |= {"other": labelled(other, pairs, "other"), "E": labelled(self.E, pairs[:1], "E")}
        if self.lags:
            parts["rho_by_lag"] = labelled(self.by_lag, [("lag", self.lags), *pairs], "rho_by_lag")
        return need("xarray", "to_xarray()").Dataset(parts)

    def plot(
        self, path: str | None = None, *, verdicts: Collection[str] = (DIRECT, LINK), top: int = 40,
        layout: str = "circle", clusters: Any = None,
    ) -> Any:  # fmt: skip
        """Links of some verdicts as arrows from cause to effect; saved to ``path`` if given. Needs matplotlib.

        ``layout="force"`` puts series near those that they are linked to. ``clusters`` colours series and puts those of
        a cluster together: a label for each (by its name, or in order), or "auto" for those that are linked most among
        themselves.
        """
        from ...plot.network import causal_network

        shown_verdicts = self._verdicts(verdicts)
        keep = np.isin(self.verdict.astype(str), list(shown_verdicts)) & ~np.eye(len(self.names), dtype=bool)
        tests = f"{self.n_steps:,} rows, surrogates: {self.surrogate or 'none'}, rate {self.rate:g}"
        held = set(self.verdict[~np.eye(len(self.names), dtype=bool)].tolist())
        words = ", ".join([word for word in _ORDER if word in shown_verdicts & held] or [DIRECT])
        return causal_network(
            self.skill, self.names, path, keep=keep, top=top, title=f"verdict: {words} ({tests})", layout=layout,
            clusters=clusters,
        )  # fmt: skip

    def _verdicts(self, verdicts: Collection[str] | None) -> set[str]:
        chosen = set(_ORDER) if verdicts is None else {verdicts} if isinstance(verdicts, str) else set(verdicts)
        if not chosen <= set(MEANINGS):
            raise InputError(f"verdicts={shown(verdicts)}: some of {', '.join(map(repr, _ORDER))} are needed")
        return chosen

    def _number(self, name: str, what: str) -> int:
        if name not in self.names:
            raise InputError(f"{what}={shown(name)}: there is no such series; there are {', '.join(self.names)}")
        return self.names.index(name)
