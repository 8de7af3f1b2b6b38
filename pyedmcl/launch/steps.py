"""Copies and launches of a sequence that is gone through again, and how those of a small call become fewer.

A copy costs a small call some 20 to 45 microseconds on a GPU, however small it is. The buffers of small arrays that are
copied to the device before the first launch are therefore laid into one, and so are those that are copied back after
the last launch: one copy each way serves them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ..device.executor import Buffer, Executor, Kernel

Arrays = Mapping[str, NDArray[Any]]

_MOST_JOINT = 1 << 16  # bytes of an array: larger ones gain less, since the host copies them once more


class NamedNumber(float):
    """A number among the arguments of a launch that is another one in the next call, by its name."""

    __slots__ = ("name",)
    name: str

    def __new__(cls, name: str, value: float) -> NamedNumber:
        made = super().__new__(cls, value)
        made.name = name
        return made


class Step(Protocol):
    """One copy or launch, done again with the executor, the inputs, the outputs and the numbers of another call."""

    def __call__(
        self, executor: Executor, inputs: Arrays, outputs: Arrays, numbers: Mapping[str, float], /
    ) -> Any: ...


@dataclass(frozen=True)
class Upload:
    """A copy of the input ``name`` to byte ``offset`` of a buffer."""

    name: str
    buffer: Buffer
    offset: int
    nbytes: int

    def __call__(self, executor: Executor, inputs: Arrays, outputs: Arrays, numbers: Mapping[str, float]) -> Any:
        executor.upload(inputs[self.name], self.buffer, self.offset)


@dataclass(frozen=True)
class Download:
    """A copy from byte ``offset`` of a buffer to the elements from ``first`` up to ``end`` of the output ``name``."""

    name: str
    first: int
    end: int
    buffer: Buffer
    offset: int
    nbytes: int

    def __call__(self, executor: Executor, inputs: Arrays, outputs: Arrays, numbers: Mapping[str, float]) -> Any:
        executor.download(self.buffer, outputs[self.name].reshape(-1)[self.first : self.end], self.offset)


@dataclass(frozen=True)
class Launch:
    """A launch, of whose arguments some have a name by which each call has its own."""

    kernel: Kernel
    global_size: Sequence[int]
    local_size: Sequence[int] | None
    arguments: Mapping[str, Any]
    named: Mapping[str, str]

    @classmethod
    def of(
        cls, kernel: Kernel, global_size: Sequence[int], local_size: Sequence[int] | None, arguments: Mapping[str, Any]
    ) -> Launch:
        named = {argument: value.name for argument, value in arguments.items() if type(value) is NamedNumber}
        return cls(kernel, global_size, local_size, arguments, named)

    def __call__(self, executor: Executor, inputs: Arrays, outputs: Arrays, numbers: Mapping[str, float]) -> Any:
        of_this_call = {argument: numbers[name] for argument, name in self.named.items()}
        executor.launch(self.kernel, self.global_size, self.local_size, **{**self.arguments, **of_this_call})


@dataclass(frozen=True)
class _JointUpload:
    """One copy of several inputs, which are put side by side on the host first."""

    copies: Sequence[tuple[str, slice]]
    buffer: Buffer
    together: NDArray[np.uint8]

    def __call__(self, executor: Executor, inputs: Arrays, outputs: Arrays, numbers: Mapping[str, float]) -> Any:
        for name, place in self.copies:
            self.together[place] = inputs[name].reshape(-1).view(np.uint8)
        executor.upload(self.together, self.buffer)


@dataclass(frozen=True)
class _JointDownload:
    """One copy of several outputs, which are told apart on the host."""

    copies: Sequence[tuple[Download, slice]]
    buffer: Buffer
    together: NDArray[np.uint8]

    def __call__(self, executor: Executor, inputs: Arrays, outputs: Arrays, numbers: Mapping[str, float]) -> Any:
        executor.download(self.buffer, self.together)
        for copy, place in self.copies:
            output = outputs[copy.name].reshape(-1)
            output[copy.first : copy.end] = self.together[place].view(output.dtype)


def joined(executor: Executor, steps: Sequence[Step], kept: set[int]) -> tuple[list[Step], list[Buffer], set[int]]:
    """The steps with fewer copies.

    Parameters
    ----------
    executor : Executor
        All steps have been done on it, and nothing of them is under way.
    steps : sequence of Step
    kept : set of int
        ``id`` of buffers that hold what no step copies there again.

    Returns
    -------
    steps : list of Step
    joints : list of Buffer
        Buffers that hold those of several steps from now on.
    gone : set of int
        ``id`` of the buffers that lie in these.
    """
    launches = [number for number, step in enumerate(steps) if isinstance(step, Launch)]
    if not launches:
        return list(steps), [], set()
    begin, end = launches[0], launches[-1] + 1
    before, during, after = list(steps[:begin]), list(steps[begin:end]), list(steps[end:])
    elsewhere = [*kept, *_buffers(during)]
    uploads = _joinable(before, Upload, elsewhere)
    downloads = _joinable(after, Download, [*elsewhere, *_buffers(before)])
    joints: list[Buffer] = []
    gone: set[int] = set()
    several: tuple[Sequence[Any], ...] = (uploads, downloads)
    for copies in several:
        joint = executor.join([copy.buffer for copy in copies]) if copies else None
        if joint is None:
            continue
        buffer, begins = joint
        joints.append(buffer)
        gone |= {id(copy.buffer) for copy in copies}
        places = [slice(first, first + copy.nbytes) for first, copy in zip(begins, copies, strict=True)]
        together = np.zeros(places[-1].stop, np.uint8)
        of_each = list(zip(copies, places, strict=True))
        if copies is uploads:
            sent = _JointUpload([(copy.name, place) for copy, place in of_each], buffer, together)
            before = [sent, *(step for step in before if step not in copies)]
        else:
            after = [*(step for step in after if step not in copies), _JointDownload(of_each, buffer, together)]
    return [*before, *during, *after], joints, gone


def _buffers(steps: Sequence[Step]) -> list[int]:
    """``id`` of the buffer of each copy."""
    return [id(step.buffer) for step in steps if isinstance(step, Upload | Download)]


_Copy = TypeVar("_Copy", Upload, Download)


def _joinable(steps: Sequence[Step], kind: type[_Copy], elsewhere: Sequence[int]) -> list[_Copy]:
    """Those steps that are small copies of one kind, of a whole buffer that is copied once; none if only one."""
    times = Counter([*elsewhere, *_buffers(steps)])
    copies = [
        step for step in steps
        if isinstance(step, kind) and times[id(step.buffer)] == 1 and not step.offset and step.nbytes <= _MOST_JOINT
    ]  # fmt: skip
    return copies if len(copies) > 1 else []
