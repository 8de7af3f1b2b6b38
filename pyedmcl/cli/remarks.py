"""What ``pyedmcl check`` would say of a table, as remarks of a command that computes something from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import warn
from .exits import running

if TYPE_CHECKING:
    from ..data.series import Series

_THEMSELVES = ("check", "network")  # commands that say it themselves
_PAIRS = ("xmap", "xmap-grid", "ccm", "ccm-matrix", "surrogate-test")
#: Commands that look for rows which come back: what cross mapping takes for a fault is their subject.
RECURRENCE = (
    "rqa", "rqa-batch", "recurrence-plot", "joint-rqa", "windowed-rqa", "recurrence-network", "lag-profile",
    "mutual-information", "demo-recurrence",
)  # fmt: skip
_MOST = 100  # series that are looked at, spread over all of them: some milliseconds each
_OF_SIZE = ("few-rows", "on-its-side")
_OF_TABLE = ("stray", "labels", "copies", "repeats", "few-returns")
_OF_SERIES = {
    "trend": "with a trend, which others that have one seem to follow",
    "wanders": "without a mean to which they return: two such series seem to be linked by chance",
    "ties": "with few different values, so that many states are equal",
}
_TOLD = "pyedmcl.remarks"


def remark_on(series: Series) -> None:
    """Warn, once in a command, of what misleads in a table: seasons that series share, trends, ties, too few rows.

    And copies of a series, rows that occur again, codes of gaps, labels, and series that hardly return.
    """
    context = running()
    if context is None or context.info_name in _THEMSELVES or context.params.get("groups") is not None:
        return
    remarked = context.meta.setdefault(_TOLD, set())
    if context.params.get("quiet") or series.names in remarked:
        return
    remarked.add(series.names)
    from ..edm.check import check
    from ..edm.table_remarks import remarks_on_size

    few = len(series.names) <= _MOST
    purpose = "recurrence" if context.info_name in RECURRENCE else "maps"
    looked_at = check(series if few else _some(series), E_max=1, purpose=purpose).remarks
    remarks = [remark for remark in looked_at if remark.code not in _OF_SIZE]
    of_some = "" if few else f" (of {_MOST} of the {series.n_series:,} series, which were looked at)"
    kept = context.params.get("surrogate") in ("auto", "seasonal")  # the season is kept by what is asked for
    of_pairs = context.info_name in _PAIRS and not kept
    of_size = remarks_on_size(series, 1) if purpose == "maps" else []
    for text in _lines([*of_size, *remarks], of_pairs, of_some):
        warn(text)


def _some(series: Series) -> Series:
    """The ``_MOST`` series that are looked at, the first and the last among them."""
    import numpy as np

    from ..data.series import build_series

    places = np.linspace(0, series.n_series - 1, _MOST).astype(int)
    return build_series(series.values[:, places], [series.names[place] for place in places])


def _lines(remarks: Any, of_pairs: bool, of_some: str) -> list[str]:
    """Each kind of remark in a sentence; ``of_some`` says what was looked at where that is not all."""
    from ..data.columns import some

    lines = []
    for remark in remarks:
        if remark.code == "common-season" and of_pairs:
            said = remark.text.partition(". Test")[0]
            lines.append(f"{said}{of_some}. Test with 'pyedmcl surrogate-test --surrogate auto', or 'pyedmcl network'")
        elif remark.code in _OF_SIZE:
            lines.append(remark.text.partition("; take")[0])
        elif remark.code in _OF_TABLE:
            lines.append(f"{remark}{of_some}")
    for code, words in _OF_SERIES.items():
        names = [remark.series for remark in remarks if remark.code == code]
        if names:
            lines.append(f"{some(names)}: {'a' if len(names) == 1 else len(names)} series {words}{of_some}")
    return lines
