"""Work that a thread of its own does piece by piece, mostly while nothing else goes on."""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Piece = TypeVar("Piece", bound=Hashable)

# Seconds after which there seems to be time, and after which a piece is done whatever goes on; between looks.
_QUIET, _PATIENCE, _LOOK = 0.5, 60.0, 0.1


class Background(Generic[Piece]):
    """Does pieces of work in their order, in one thread that ends with the last of them.

    A process that ends waits for the piece under way, since a driver crashes where it is unloaded in the middle of
    compiling, and leaves out what is waiting.

    Parameters
    ----------
    work : callable
        Given a piece; what it raises is dropped, and whoever needs the piece does it again and hears of it.
    last_used : callable
        When (``time.monotonic()``) what the pieces are for was used last. A piece waits until that is half a second
        ago: a driver that compiles holds up the launches of other threads. After a minute it waits no longer, since
        much work repays it.

    Attributes
    ----------
    failed : set
        Pieces at which ``work`` raised.
    """

    def __init__(self, work: Callable[[Piece], None], last_used: Callable[[], float]) -> None:
        self._work, self._last_used = work, last_used
        self._lock = threading.Lock()
        self._waiting: deque[tuple[Piece, float]] = deque()  # and since when
        self._at: Piece | None = None
        self._thread: threading.Thread | None = None
        self._hurried = False
        self.failed: set[Piece] = set()

    def add(self, piece: Piece) -> None:
        """Have a piece done, unless it is waiting or under way."""
        with self._lock:
            if piece == self._at or any(piece == other for other, _ in self._waiting):
                return
            self._waiting.append((piece, time.monotonic()))
            if self._thread is None:
                self._hurried = False
                thread = threading.Thread(target=self._run, name="pyedmcl background")
                with contextlib.suppress(RuntimeError):  # no thread is to be had: the piece waits for the next call
                    thread.start()
                    self._thread = thread

    def _run(self) -> None:
        while self._next():
            piece = self._at
            if piece is None:  # too early
                threading.main_thread().join(_LOOK)  # which ends at once where the process does
                continue
            try:
                self._work(piece)
            except Exception:
                self.failed.add(piece)

    def _next(self) -> bool:
        """Take the next piece, if it is time; False ends the thread."""
        with self._lock:
            if not threading.main_thread().is_alive():  # the interpreter waits for this thread before it ends
                self._waiting.clear()
            self._at = self._waiting.popleft()[0] if self._waiting and self._is_time() else None
            if self._at is None and not self._waiting:
                self._thread = None
                return False
            return True

    def _is_time(self) -> bool:
        now = time.monotonic()
        return self._hurried or now - self._last_used() >= _QUIET or now - self._waiting[0][1] >= _PATIENCE

    def wait(self) -> None:
        """Wait until all pieces are done, which is begun at once."""
        with self._lock:
            thread, self._hurried = self._thread, True
        if thread is not None:
            thread.join()

    def close(self) -> None:
        """Leave out what is waiting, and wait for the piece under way."""
        with self._lock:
            self._waiting.clear()
        self.wait()
