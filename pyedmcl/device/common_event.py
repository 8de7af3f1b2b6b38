"""A queued launch of any binding: how long it took, and what is raised where it failed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .common import CommonExecutor

# Nanoseconds. rusticl without a GPU (22.3) has no clock, and answers 0, 1, 2, 3 when asked when a launch was queued,
# submitted, begun and ended.
_SHORTEST = 100


class CommonEvent(ABC):
    """A queued launch.

    Parameters
    ----------
    event
        The binding's object, which has ``wait()``.
    executor : CommonExecutor
    """

    __slots__ = ("_event", "_executor")

    def __init__(self, event: Any, executor: CommonExecutor) -> None:
        self._event = event
        self._executor = executor

    @abstractmethod
    def _nanoseconds(self) -> int:
        """Time on the device, once the launch has ended."""

    def wait(self) -> None:
        """Block until the launch has ended. Raises LaunchError where it failed on the device."""
        try:
            self._event.wait()
        except self._executor.errors as error:
            raise self._executor.failure("a kernel failed while it ran", error) from error

    @property
    def seconds(self) -> float:
        """Time on the device in seconds, 0 where the driver has no clock; waits for the end."""
        self.wait()
        elapsed = self._nanoseconds()
        return elapsed * 1e-9 if elapsed >= _SHORTEST else 0.0
