"""Launches short enough for watchdogs and Ctrl-C: their size follows from measured time."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from ..device.quirks import quirks_for

if TYPE_CHECKING:
    from ..device.executor import Event
    from ..device.info import DeviceInfo

LAUNCH_SECONDS = 0.2
_UNTIMED = 0.01
_KEPT_MOST = 4096


#: Rates that launches of this process have shown, by device and work.
_shown: dict[Hashable, float] = {}


class Pacer:
    """Keeps the rate of one kernel on one device and says how much to launch next.

    Parameters
    ----------
    info : DeviceInfo
        Whose quirks give the first guess.
    *work : hashable
        What is launched: the kernel, and what its rate depends on beside the cost. The first guess of a call is then
        the rate that the last call has shown; without a name, that of the device. A small call that is known to be
        short is launched whole and not waited for.
    """

    def __init__(self, info: DeviceInfo, *work: Hashable) -> None:
        self._place = (info, work) if work else None
        self._rate = _shown.get(self._place) or quirks_for(info).first_rate

    def units(self, cost_per_unit: float) -> int:
        """Units of work that take about :data:`LAUNCH_SECONDS`; at least one."""
        return max(int(LAUNCH_SECONDS * self._rate / max(cost_per_unit, 1.0)), 1)

    def launched(self, event: Event, cost: float) -> None:
        """Take note of a launch; long ones are waited for, so that a queue never holds seconds of work."""
        if cost / self._rate < _UNTIMED:
            return
        seconds = event.seconds
        if seconds > 1e-6:  # some drivers report no time
            self._rate = cost / seconds
            if self._place is not None:
                if len(_shown) > _KEPT_MOST:
                    _shown.clear()
                _shown[self._place] = self._rate
