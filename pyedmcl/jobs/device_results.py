"""Results in arrays of the caller on a device (``out=``): which they are, who computes them, how blocks get there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..data.arguments import precision, shown
from ..device.foreign_arrays import ForeignArray, described
from ..device.select import DeviceNames
from ..device.session import open_devices
from ..errors import InputError
from ..launch.delivery import DeviceRows
from .blocks import Block
from .runner import LocalRunner
from .sinks import ArraySink

#: Kernel that writes them.
KERNEL = "deliver"


def arrays_of(out: Any, wanted: Mapping[str, tuple[tuple[int, ...], Any]]) -> list[ForeignArray]:
    """``out=`` as arrays on a device.

    Parameters
    ----------
    out : array, or sequence of them
    wanted : mapping
        What each array holds: its shape and number type.

    Raises
    ------
    InputError
        Other arrays are needed; with what to give instead.
    """
    arrays = list(out) if isinstance(out, (list, tuple)) else [out]
    if len(arrays) != len(wanted):
        raise InputError(f"out=: arrays on the device are needed for {', '.join(wanted)}, and {len(arrays)} were given")
    foreign = []
    for array, (name, (shape, dtype)) in zip(arrays, wanted.items(), strict=True):
        held = described(array, f"out= ({name})")
        held.require(shape, dtype)
        foreign.append(held)
    return foreign


def runner_at(arrays: Sequence[ForeignArray], device: DeviceNames, dtype: str) -> LocalRunner:
    """What runs a job whose result goes to these arrays: after the queue of the first where no device is named.

    Raises
    ------
    InputError
        There are several devices, or one that does not compute in ``dtype``.
    """
    executors = open_devices(arrays[0].queue if device is None else device)
    if len(executors) > 1:
        raise InputError(f"device={shown(device)}: results in arrays on a device are computed by that device alone")
    precision(dtype, executors[0].info.fp64, executors[0].info.name)
    return LocalRunner(executors)


class DeviceSink(ArraySink):
    """Blocks that a single device writes into arrays of the caller.

    Parameters
    ----------
    blocks : sequence of Block
    layers : sequence of DeviceRows
        Rows first.
    """

    def __init__(self, blocks: Sequence[Block], layers: Sequence[DeviceRows]) -> None:
        super().__init__(blocks, ())
        self._rows = layers

    def room(self, block: Block) -> Any:
        return [self._rows[layer][block.begin : block.end] for layer in block.layers]

    def _take(self, block: Block, arrays: Any) -> None:
        """Nothing is left to do: the engine has written it."""
