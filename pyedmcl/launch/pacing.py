"""Keeps launches short enough for watchdogs and Ctrl-C: how much is launched at once follows from measured time."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

from ..device.quirks import quirks_for

if TYPE_CHECKING:
    from ..device.executor import Event
    from ..device.info import DeviceInfo

#: How long a launch should take.
LAUNCH_SECONDS = 0.2
# A launch that is expected to take less is not waited for, and tells nothing of the rate.
_UNTIMED = 0.01
_KEPT_MOST = 4096

# Rates (cost per second) that launches of this process have shown, by device and work.
_shown: dict[Hashable, float] = {}


class Pacer:
    """Keeps the rate of one kernel on one device and says how much to launch next.

    Parameters
    ----------
    info : DeviceInfo
        The device. Its quirks give the first guess of the rate.
    *work : hashable
        A name for what is launched: the kernel, and whatever its rate depends on beside the cost. The first guess is
        then the rate that earlier launches of the same name have shown, so that a small call is launched as a whole and
        not waited for. Without a name the guess is that of the device.
    """

    def __init__(self, info: DeviceInfo, *work: Hashable) -> None:
        self._place = (info, work) if work else None
        self._rate = _shown.get(self._place) or quirks_for(info).first_rate

    def units(self, cost_per_unit: float) -> int:
        """How many units of work take about :data:`LAUNCH_SECONDS`; at least one."""
        return max(int(LAUNCH_SECONDS * self._rate / max(cost_per_unit, 1.0)), 1)

    def launched(self, event: Event, cost: float) -> None:
        """Learn the rate from a launch. A long one is waited for, so that a queue never holds seconds of work."""
        if cost / self._rate < _UNTIMED:
            return
        seconds = event.seconds
        if seconds > 1e-6:  # some drivers report no time
            self._rate = cost / seconds
            if self._place is not None:
                if len(_shown) > _KEPT_MOST:
                    _shown.clear()
                _shown[self._place] = self._rate
