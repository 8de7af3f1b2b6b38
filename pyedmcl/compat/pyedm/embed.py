"""Delay embedding as a frame."""

from __future__ import annotations

from typing import Any

from ...errors import InputError
from ..checked import checked
from . import frames


@checked
def Embed(
    dataFrame: Any = None, E: int = 0, tau: int = -1, columns: Any = "", includeTime: bool = False,
    pathIn: str = "./", dataFile: str | None = None,
) -> Any:  # fmt: skip
    """Lags of columns side by side: ``x(t-0)``, ``x(t-1)``, ...

    Parameters
    ----------
    dataFrame : DataFrame
    E : int
        Lags of each column.
    tau : int
        Steps between them: negative into the past, positive into the future.
    columns : str or list of str
    includeTime : bool
        Put the first column of the frame before them.
    pathIn, dataFile : str
        Read the frame from this CSV file instead.

    Returns
    -------
    DataFrame
        NaN where a lag lies outside the data.
    """
    if E < 1:
        raise InputError(f"Embed: E={E}; an embedding dimension of at least 1 is needed")
    if tau == 0:
        raise InputError("Embed: tau=0; a lag of at least one step is needed, negative for the past")
    data = frames.pandas().read_csv(pathIn + dataFile) if dataFile is not None else frames.frame(dataFrame, "Embed")
    chosen = frames.names(columns, "columns", "Embed", data)
    if (E - 1) * abs(tau) >= max(len(data), 1):
        raise InputError(f"Embed: E={E} and tau={tau} reach over all {len(data)} rows, so that no state is whole")
    sign = "-" if tau < 0 else "+"
    lags = {f"{name}(t{sign}{e * abs(tau)})": data[name].shift(-e * tau) for e in range(E) for name in chosen}
    table = frames.pandas().DataFrame(lags, index=data.index)
    return data.iloc[:, [0]].join(table) if includeTime else table
