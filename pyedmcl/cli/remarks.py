"""What ``pyedmcl check`` would say of a table, as remarks of a command that computes something from it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import warn
from .exits import running

if TYPE_CHECKING:
    from ..data.series import Series

_THEMSELVES = ("check", "network")  # commands that say more, and at another place
_PAIRS = ("xmap", "xmap-grid", "ccm", "ccm-matrix", "surrogate-test")
_MOST = 100  # series that are looked at: some milliseconds each
_OF_SERIES = {
    "trend": "with a trend, which others that have one seem to follow",
    "wanders": "without a mean to which they return: two such series seem to be linked by chance",
    "ties": "with few different values, so that many states are equal",
}
_TOLD = "pyedmcl.remarks"


def remark_on(series: Series) -> None:
    """Warn, once in a command, of what misleads in a table: a season that series share, trends, ties, too few rows."""
    context = running()
    if context is None or context.info_name in _THEMSELVES or context.params.get("groups") is not None:
        return
    told = context.meta.setdefault(_TOLD, set())
    if context.params.get("quiet") or series.names in told:
        return
    told.add(series.names)
    if series.n_series > _MOST:
        warn(f"{series.n_series:,} series were not looked at for seasons, trends and ties, as 'pyedmcl check' does")
        return
    from ..edm.check import check

    for text in _lines(check(series, E_max=1).remarks, context.info_name in _PAIRS):
        warn(text)


def _lines(remarks: Any, of_pairs: bool) -> list[str]:
    """Each kind of remark in a sentence."""
    from ..data.columns import some

    found = []
    for remark in remarks:
        if remark.code == "common-season" and of_pairs:
            said = remark.text.partition(". Test")[0]
            found.append(f"{said}. Test with 'pyedmcl surrogate-test --surrogate auto', or 'pyedmcl network'")
        elif remark.code in ("few-rows", "on-its-side"):
            found.append(remark.text.partition("; take")[0])
    for code, words in _OF_SERIES.items():
        names = [remark.series for remark in remarks if remark.code == code]
        if names:
            found.append(f"{some(names)}: {'a' if len(names) == 1 else len(names)} series {words}")
    return found
