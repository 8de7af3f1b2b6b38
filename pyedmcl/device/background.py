"""Work that a thread of its own does piece by piece, while others go on without it."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Piece = TypeVar("Piece", bound=Hashable)


class Background(Generic[Piece]):
    """Does pieces of work in their order, in one thread that ends with the last of them.

    A process that ends waits for the piece under way, since a driver may crash where it is unloaded in the middle of
    compiling, and leaves out what is waiting.

    Parameters
    ----------
    work : callable
        Given a piece; what it raises is dropped, and whoever needs the piece does it again and hears of it.

    Attributes
    ----------
    failed : set
        Pieces at which ``work`` raised.
    """

    def __init__(self, work: Callable[[Piece], None]) -> None:
        self._work = work
        self._lock = threading.Lock()
        self._waiting: deque[Piece] = deque()
        self._at: Piece | None = None
        self._thread: threading.Thread | None = None
        self.failed: set[Piece] = set()

    def add(self, piece: Piece) -> None:
        """Have a piece done, unless it is waiting or under way."""
        with self._lock:
            if piece == self._at or piece in self._waiting:
                return
            self._waiting.append(piece)
            if self._thread is None:
                thread = threading.Thread(target=self._run, name="pyedmcl background")
                with contextlib.suppress(RuntimeError):  # no thread is to be had: the piece waits for the next call
                    thread.start()
                    self._thread = thread

    def _run(self) -> None:
        while (piece := self._next()) is not None:
            try:
                self._work(piece)
            except Exception:
                self.failed.add(piece)

    def _next(self) -> Piece | None:
        """The piece to be done now; None ends the thread."""
        with self._lock:
            if not threading.main_thread().is_alive():  # the interpreter is waiting for this thread before it ends
                self._waiting.clear()
            self._at = self._waiting.popleft() if self._waiting else None
            if self._at is None:
                self._thread = None
            return self._at

    def wait(self) -> None:
        """Wait until all pieces are done."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def close(self) -> None:
        """Leave out what is waiting, and wait for the piece under way."""
        with self._lock:
            self._waiting.clear()
        self.wait()
