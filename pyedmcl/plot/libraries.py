"""Skill against what was varied: library size with its spread over samples, Tp, theta, radius, or surrogates."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .figure import as_label, finished, new_figure
from .palette import MIDDLE, PAIR, PALE, RED, folded, legend, whole_steps

_LEAST_SPAN = 0.05  # of rho on an axis: smaller differences must not look like much
_PANEL = 46  # letters above one of two panels
_MEANING = {"Tp": "steps ahead, Tp", "exclusion_radius": "exclusion radius (steps)",
            "theta": "localisation of S-map, theta"}  # fmt: skip


def skill_against_library(
    result: Any, path: str | os.PathLike[str] | None = None, *, title: str | None = None, dpi: int = 150
) -> Any:
    """Median skill of both directions with bands that hold the middle half and nine tenths of the samples.

    Parameters
    ----------
    result : CcmResult
    path, title, dpi
        As for :func:`.figure.finished`, which also says what is raised.

    Returns
    -------
    matplotlib.figure.Figure
    """
    figure = new_figure(6.4, 4.2)
    ax = figure.add_subplot()
    order = np.argsort(result.lib_sizes)
    sizes, spread = result.lib_sizes[order], result.quantiles((0.05, 0.25, 0.5, 0.75, 0.95))[:, order]
    for d, (library, target) in enumerate(map(as_label, link) for link in result.links):
        color, mark, line = PAIR[d]
        ax.plot(sizes, spread[d, :, 2], color=color, marker=mark, linestyle=line, markersize=3.5, linewidth=1.4,
                label=f"{library} predicts {target} ({target} drives {library}?)")  # fmt: skip
        for low, high, alpha in ((0, 4, 0.12), (1, 3, 0.22)):
            ax.fill_between(sizes, spread[d, :, low], spread[d, :, high], color=color, alpha=alpha, linewidth=0)
    ax.set_xlabel("library size (states)")
    ax.set_ylabel("cross-map skill rho")
    ax.grid(alpha=0.25)
    legend(ax)
    ax.set_title(title or f"median of {result.rho.shape[2]} samples, middle 50 and 90 %", fontsize=10)
    return finished(figure, path, dpi=dpi)


def skill_against_Tp(
    result: Any, path: str | os.PathLike[str] | None = None, *, title: str | None = None, dpi: int = 150
) -> Any:
    """Skill of both directions against Tp with the best of each; arguments as for :func:`skill_against_library`.

    Parameters
    ----------
    result : LaggedCcmResult
    """
    figure = new_figure(6.4, 4.2)
    ax = figure.add_subplot()
    order = np.argsort(result.Tp)
    for d, (library, target) in enumerate(map(as_label, link) for link in result.links):
        color, mark, line = PAIR[d]
        ax.plot(result.Tp[order], result.rho[d][order], color=color, marker=mark, linestyle=line, markersize=3.5,
                linewidth=1.4, label=f"{library} predicts {target} (best at Tp = {result.best[d]})")  # fmt: skip
        ax.axvline(result.best[d], color=color, linewidth=0.8, linestyle=":")
    whole_steps(ax.xaxis)
    ax.set_xlabel("steps from state to target, Tp")
    ax.set_ylabel("cross-map skill rho")
    ax.grid(alpha=0.25)
    legend(ax)
    if title:
        ax.set_title(title, fontsize=10)
    return finished(figure, path, dpi=dpi)


def skill_against_parameter(
    result: Any, path: str | os.PathLike[str] | None = None, *, title: str | None = None, dpi: int = 150
) -> Any:
    """Forecast skill against a parameter with its best value; arguments as for :func:`skill_against_library`.

    Parameters
    ----------
    result : SkillResult, NonlinearResult or SmapResult
        Of the last, a sweep over theta.
    """
    figure = new_figure(6.4, 4.0)
    ax = figure.add_subplot()
    name = getattr(result, "parameter", "theta")
    values, rho = np.atleast_1d(result.values if name != "theta" else result.theta), np.atleast_1d(result.rho)
    order = np.argsort(values)
    ax.plot(values[order], rho[order], "o-", color=MIDDLE, markersize=3.5, linewidth=1.4)
    if np.isfinite(rho).any():
        best = values[np.where(np.isnan(rho), -np.inf, rho).argmax()]
        ax.axvline(best, color=RED, linewidth=1, linestyle=":", label=f"best at {best:g}")
        legend(ax)
        low, high = ax.get_ylim()
        room = max(_LEAST_SPAN - (high - low), 0) / 2
        ax.set_ylim(low - room, high + room)
    if name != "theta":
        whole_steps(ax.xaxis)
    ax.set_xlabel(_MEANING[name])
    ax.set_ylabel("forecast skill rho")
    ax.grid(alpha=0.25)
    ax.set_title(title or f"{'S-map' if name == 'theta' else 'simplex projection'}, E = {result.E}", fontsize=10)
    return finished(figure, path, dpi=dpi)


def skill_against_surrogates(
    result: Any, path: str | os.PathLike[str] | None = None, *, title: str | None = None, dpi: int = 150
) -> Any:
    """Skill of both directions beside the distribution of their surrogates'; arguments as for the others.

    Parameters
    ----------
    result : CcmSignificance
    """
    figure = new_figure(7.2, 3.4)
    panels = figure.subplots(1, 2, sharey=True)
    for d, (library, target) in enumerate(map(as_label, link) for link in result.links):
        ax = panels[d]
        finite = result.surrogates[d][np.isfinite(result.surrogates[d])]
        ax.hist(finite, bins=min(max(len(finite) // 8, 5), 40), color=PALE, label=f"{len(finite)} surrogates")
        ax.axvline(result.rho[d], color=RED, linewidth=2, label=f"rho = {result.rho[d]:.3f}")
        question = folded(f"{library} predicts {target} ({target} drives {library}?)", _PANEL)
        ax.set_title(f"{question}\np = {result.p_value[d]:.3g}, q = {result.q_value[d]:.3g}", fontsize=9)
        ax.set_xlabel("cross-map skill rho")
        legend(ax)
    panels[0].set_ylabel("surrogates per bin")
    if title:
        figure.suptitle(title, fontsize=11)
    return finished(figure, path, dpi=dpi)
