"""Programs and kernels of any binding: kernels by name and thread, arguments by name, checked and set once."""

from __future__ import annotations

import struct
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

from ..errors import BuildError
from .buffers import DeviceBuffer
from .slots import Slot, names_differ, packer, refusal

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
