"""pyEDM's pictures."""

from __future__ import annotations

from typing import Any

from ...errors import missing_extra
from ..checked import checked
from .skill import ComputeError


def pyplot() -> Any:
    """matplotlib's pyplot. Raises MissingExtraError where it is not installed."""
    try:
        from matplotlib import pyplot as found
    except ImportError as error:
        raise missing_extra("matplotlib", "plot", "showPlot=True") from error
    return found


@checked
def PlotObsPred(df: Any, dataName: str = "", E: int = 0, Tp: int = 0, block: bool = True) -> None:
    """Show observations and predictions over time."""
    plt = pyplot()
    skill = ComputeError(df["Observations"], df["Predictions"])
    title = f"{dataName}\nE={E} Tp={Tp}  ρ={skill['rho']:.3g} RMSE={skill['RMSE']:.3g}"  # noqa: RUF001
    df.plot(df.columns[0], ["Observations", "Predictions"], title=title, linewidth=3)
    plt.show(block=block)


@checked
def PlotCoeff(df: Any, dataName: str = "", E: int = 0, Tp: int = 0, block: bool = True) -> None:
    """Show S-map coefficients over time."""
    plt = pyplot()
    when = df.columns[0]
    title = f"{dataName}\nE={E} Tp={Tp}  S-Map Coefficients"
    df.plot(when, [name for name in df.columns if name != when], title=title, linewidth=3, subplots=True)
    plt.show(block=block)


def show_curve(df: Any, x: str, y: str, title: str, xlabel: str, label: str) -> None:
    """Show skill against a parameter."""
    plt = pyplot()
    ax = df.plot(x, y, title=title, label=label, linewidth=3)
    ax.set(xlabel=xlabel, ylabel="Prediction Skill ρ")  # noqa: RUF001
    plt.show()
