"""Pictures for the choice of an embedding: skill over dimension and lag, and curves against lag or dimension."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .figure import as_label, colours, finished, new_figure
from .palette import legend, whole_steps

if TYPE_CHECKING:
    PathLike = str | os.PathLike[str]

_NAMED = 10  # series that are told apart; the others are faint


def skill_surface(scan: Any, path: PathLike | None = None, *, title: str | None = None, dpi: int = 150) -> Any:
    """Skill of an :class:`EmbeddingScan` over E and tau, a panel for each Tp; the best place of each is marked.

    Parameters
    ----------
    scan : EmbeddingScan
    path, title, dpi
        As for :func:`.figure.finished`, which also says what is raised.

    Returns
    -------
    matplotlib.figure.Figure
    """
    rho = scan.rho[None] if scan.single else scan.rho
    finite = np.isfinite(rho).any(axis=0)
    median = np.full(rho.shape[1:], np.nan)
    median[finite] = np.nanmedian(rho[:, finite], axis=0)
    n = len(scan.Tp)
    figure = new_figure(min(3.2 * n + 1.4, 16.0), 3.8)
    axes = figure.subplots(1, n, squeeze=False)[0]
    low, high = (float(of(median[finite])) if finite.any() else 0.0 for of in (np.min, np.max))
    for at, (ax, Tp) in enumerate(zip(axes, scan.Tp, strict=True)):
        panel = median[..., at]
        image = ax.imshow(np.ma.masked_invalid(panel.T), origin="lower", aspect="auto", cmap=colours("viridis"),
                          vmin=low, vmax=high, interpolation="nearest")  # fmt: skip
        if np.isfinite(panel).any():
            dimension, lag = np.unravel_index(int(np.nanargmax(panel)), panel.shape)
            ax.plot(dimension, lag, "o", color="white", markeredgecolor="black")
        ax.set_xticks(range(len(scan.E)), [str(E) for E in scan.E], fontsize=7)
        ax.set_yticks(range(len(scan.tau)), [str(tau) for tau in scan.tau], fontsize=7)
        ax.set_xlabel("E")
        ax.set_title(f"Tp = {Tp}", fontsize=9)
    axes[0].set_ylabel("tau")
    figure.colorbar(image, ax=list(axes), label="rho" if len(rho) == 1 else f"rho (median of {len(rho)} series)")
    if title:
        figure.suptitle(title)
    return finished(figure, path, dpi=dpi)


def curves(
    at: Sequence[int], values: NDArray[np.float64], names: Sequence[str], x_label: str, y_label: str,
    path: PathLike | None = None, *, dpi: int = 150,
) -> Any:  # fmt: skip
    """A line for each series, ten at most with their names; more are faint, with their median.

    Returns
    -------
    matplotlib.figure.Figure
    """
    rows = np.atleast_2d(values)
    figure = new_figure(6.4, 3.8)
    ax = figure.add_subplot()
    many = len(rows) > _NAMED
    for row, name in zip(rows, names, strict=True):
        ax.plot(at, row, linewidth=1.0, **({"color": "0.8"} if many else {"label": as_label(name)}))
    if many:
        ax.plot(at, np.nanmedian(rows, axis=0), color="#21526b", linewidth=2.0, label=f"median of {len(rows)} series")
    whole_steps(ax.xaxis)
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    ax.set_ylim(bottom=0)
    legend(ax)
    return finished(figure, path, dpi=dpi)
