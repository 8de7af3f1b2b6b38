"""The programs of an executor: compiled when they are needed, side by side before that, or in the background."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar

from ..errors import BuildError
from .background import Background
from .common_program import CommonProgram

BASELINE = "-cl-std=CL1.2"
#: A text and the options that it is compiled with.
Key = tuple[str, tuple[str, ...]]

_KEPT = 256


class Programs:
    """Programs of one device, each compiled once for as long as it is among those that were asked for last.

    Parameters
    ----------
    compiler : callable
        Given a text and its options; raises BuildError.
    at_once : int
        Texts that are compiled side by side, where several are needed (``Quirks.compilers``); 1: it gains nothing, and
        nothing is compiled in the background either.
    last_used : callable
        When (``time.monotonic()``) the device was used last: the background leaves it alone until it rests.
    """

    def __init__(
        self, compiler: Callable[[str, tuple[str, ...]], CommonProgram], at_once: int, last_used: Callable[[], float]
    ) -> None:
        self._compiler, self._at_once = compiler, at_once
        self._lock = threading.Lock()
        self._kept: OrderedDict[Key, CommonProgram] = OrderedDict()
        self._last_used, self._awaited_until = last_used, -math.inf
        self.background: Background[Key] = Background(self._compile, self._in_use)

    def get(self, key: Key) -> CommonProgram:
        """The program of a text, compiled now where it is not there. Raises BuildError."""
        # One build at a time: some drivers' compilers are not safe to enter twice.
        with self._lock:
            program = self._kept.get(key)
            if program is None:
                with self._awaited(1):
                    program = self._compiler(*key)
                self._keep(key, program)
            else:
                self._kept.move_to_end(key)
        return program

    def get_ahead(self, keys: Iterable[Key]) -> None:
        """Compile several texts side by side; one that the compiler refuses is left to :meth:`get`, which says so."""
        if self._at_once < 2:
            return
        with self._lock:
            absent = [key for key in dict.fromkeys(keys) if key not in self._kept]
            if len(absent) < 2:
                return
            with ThreadPoolExecutor(min(self._at_once, len(absent))) as pool, self._awaited(len(absent)) as done:
                for key, compiled in [(key, pool.submit(self._compiler, *key)) for key in absent]:
                    with contextlib.suppress(BuildError):
                        self._keep(key, compiled.result())
                    done()

    def is_ready(self, key: Key) -> bool:
        """Whether :meth:`get` need not be waited for; else the background compiles the text, when there is time.

        Where nothing is compiled there, and for a text that the compiler refuses, the answer is True: :meth:`get` then
        compiles it, or says why not.
        """
        if self._at_once < 2:
            return True
        with self._lock:
            if key in self._kept or key in self.background.failed:
                return True
        self.background.add(key)
        return False

    def _in_use(self) -> float:
        """When the device was used last, or a program was waited for: texts of the background would hold up both."""
        return max(self._last_used(), self._awaited_until)

    @contextlib.contextmanager
    def _awaited(self, total: int) -> Iterator[Callable[[], None]]:
        """Within the block somebody waits for ``total`` programs; what it yields is to be called when one is ready."""
        self._awaited_until = math.inf
        try:
            with _preparing(total) as done:
                yield done
        finally:
            self._awaited_until = time.monotonic()

    def _compile(self, key: Key) -> None:
        program = self._compiler(*key)
        with self._lock:
            self._keep(key, program)

    def _keep(self, key: Key, program: CommonProgram) -> None:
        self._kept[key] = program
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)

    def close(self) -> None:
        """Drop all programs, and wait for one that is being compiled."""
        self.background.close()
        self._kept.clear()


#: Called as (done, total) while programs are compiled or read from the cache, where somebody waits and watches.
watcher: ContextVar[Callable[[int, int], None] | None] = ContextVar("watcher", default=None)


@contextlib.contextmanager
def _preparing(total: int) -> Iterator[Callable[[], None]]:
    """Tell the watcher of ``total`` programs: when they begin, each that is ready, and when all are."""
    watch, ready = watcher.get(), 0

    def done() -> None:
        nonlocal ready
        ready += 1
        if watch is not None and ready < total:
            watch(ready, total)

    if watch is not None:
        watch(0, total)
    yield done
    if watch is not None:
        watch(total, total)


def flags_of(options: Sequence[str]) -> tuple[str, ...]:
    """The options of the compiler, with the language unless they name one."""
    flags = tuple(options)
    return flags if any(flag.startswith("-cl-std") for flag in flags) else (BASELINE, *flags)
