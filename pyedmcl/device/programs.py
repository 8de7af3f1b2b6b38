"""Compiled programs: made when they are needed, side by side and in the background."""

from __future__ import annotations

import contextlib
import math
import struct
import threading
import time
from abc import ABC, abstractmethod
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from ..errors import BuildError
from .info import Slot, names_differ, packer, refusal
from .memory import DeviceBuffer

if TYPE_CHECKING:
    from .common import CommonExecutor


# A queued launch of any binding: how long it took, and what is raised where it failed.


# Nanoseconds. rusticl without a GPU (22.3) has no clock, and answers 0, 1, 2, 3 when asked when a launch was queued,
# submitted, begun and ended.
_SHORTEST = 100


class CommonEvent(ABC):
    """A queued launch.

    Parameters
    ----------
    event
        The binding's object, which has ``wait()``.
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


# Programs and kernels of any binding: kernels by name and thread, arguments by name, checked and set once.


_UNSET = object()


class CommonKernel:
    """A kernel of one thread.

    What was set last is remembered, since most arguments do not change from launch to launch: numbers as they were
    given, buffers by their serial number, so that none is kept alive. A binding gives ``_set_bytes`` and
    ``_set_memory``, which set the argument of an index.
    """

    buffer: ClassVar[type[DeviceBuffer]]

    __slots__ = ("_held", "_plan", "_set_bytes", "_set_memory", "kernel", "name", "slots")
    _set_bytes: Callable[[int, bytes], Any]
    _set_memory: Callable[[int, Any], Any]

    def __init__(self, kernel: Any, name: str, slots: Sequence[Slot]) -> None:
        self.kernel = kernel
        self.name = name
        self.slots = tuple(slots)
        self._plan = [(slot.name, None if slot.is_buffer else packer(slot)) for slot in self.slots]
        self._held: list[Any] = [_UNSET] * len(self.slots)

    def set(self, arguments: Mapping[str, Any]) -> None:
        """Set all arguments. Raises LaunchError for those that are not the kernel's, and the driver's errors."""
        held = self._held
        if len(arguments) != len(held):
            raise names_differ(self.name, self.slots, arguments)
        for index, (name, pack) in enumerate(self._plan):
            try:
                value = arguments[name]
            except KeyError:
                raise names_differ(self.name, self.slots, arguments) from None
            if pack is None:
                if type(value) is not self.buffer or value.serial != held[index] or value.memory is None:
                    self._set_buffer(index, value)
            elif value is not held[index]:
                held[index] = _UNSET
                try:
                    packed = pack(value)
                except (struct.error, OverflowError, TypeError) as error:
                    raise refusal(self.name, self.slots[index], value, f" ({error})") from error
                self._set_bytes(index, packed)
                held[index] = value

    def _set_buffer(self, index: int, value: Any) -> None:
        slot = self.slots[index]
        if not isinstance(value, self.buffer):
            raise refusal(self.name, slot, value)
        if value.memory is None:
            raise refusal(self.name, slot, value, ", which was released")
        if value.itemsize and value.itemsize != slot.dtype.itemsize:
            raise refusal(self.name, slot, value, f" whose elements have {value.itemsize} bytes")
        self._held[index] = _UNSET
        self._set_memory(index, value.memory)
        self._held[index] = value.serial


class CommonProgram(ABC):
    """A compiled source.

    Parameters
    ----------
    program
        The binding's object.
    log : str
        What the driver said while it compiled; usually empty.
    errors : tuple of type
        What the binding raises.
    """

    def __init__(self, program: Any, log: str, errors: tuple[type[Exception], ...]) -> None:
        self.program = program
        self.log = log
        self._errors = errors
        self._local = threading.local()

    def kernel(self, name: str, slots: Sequence[Slot]) -> CommonKernel:
        """The kernel called ``name``, one object per thread. Raises BuildError where the source has none like it."""
        kernels: dict[str, CommonKernel] | None = getattr(self._local, "kernels", None)
        if kernels is None:
            kernels = self._local.kernels = {}
        if name not in kernels:
            try:
                kernel, count = self._bare(name)
            except self._errors as error:
                raise BuildError(f"there is no kernel {name!r} in the compiled source ({error})") from error
            if count != len(slots):
                raise BuildError(f"kernel {name} takes {count} arguments, and {len(slots)} are declared for it")
            kernels[name] = self._wrap(kernel, name, slots)
        return kernels[name]

    @abstractmethod
    def _bare(self, name: str) -> tuple[Any, int]:
        """The binding's kernel and the number of its arguments."""

    @abstractmethod
    def _wrap(self, kernel: Any, name: str, slots: Sequence[Slot]) -> CommonKernel: ...


# Work that a thread of its own does piece by piece, mostly while nothing else goes on.


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
