"""Small calls that are repeated: copies and launches are recorded, and done again for the next call of the same shape.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from ..device.memory import BufferSet, KeptBuffer, plan_of
from ..errors import DeviceMemoryError, LaunchError
from ..kernels.build import is_noting
from ..tuning.parameters import source, watching
from .progress import report_of, reporting_to

if TYPE_CHECKING:
    from ..device.executor import Buffer, Event, Executor, Kernel


# Copies and launches of a sequence that is gone through again, and how those of a small call become fewer.
#
# A copy costs a small call some 20 to 45 microseconds on a GPU, however small it is. The buffers of small arrays that
# are copied to the device before the first launch are therefore laid into one, and so are those that are copied back
# after the last launch: one copy each way serves them.


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


# Which searches run, with which kernels, parameters, buffers and sizes, follows for most small calls from shapes and
# arguments alone, and to find it out takes the host longer than the device takes to compute. :func:`replayed` therefore
# keeps the sequence of copies and launches, with the buffers that they are of, and goes through it again with other
# data. Nothing is kept but where a sequence is known to depend on nothing else: see what :class:`_Recorder` notes.


#: Bytes of an array of a small call, for work that is done in batches where there is more: their progress counts.
FEW_BYTES = 8 << 20
_MOST_CONSTANT = 1 << 20  # bytes of what a small call has copied once

T = TypeVar("T")
# Where a copy begins in the array called so, and how many elements it has.
_Place = tuple[str, int, int]


@dataclass(frozen=True)
class _Sequence:
    """What was done."""

    steps: Sequence[Step]
    # Which parameters were asked for, for provenance.
    questions: tuple[Any, ...]
    outcome: Any
    # Kernels belong to a thread.
    thread: int


def replayed(
    executor: Executor, key: Hashable, inputs: Arrays, outputs: Arrays, work: Callable[[Executor], T],
    numbers: Mapping[str, float] | None = None,
) -> T:  # fmt: skip
    """What ``work`` returns, after it, or what it did before in a call of the same key, has filled ``outputs``.

    Parameters
    ----------
    key : hashable
        Whatever copies and launches follow from, beside the shapes of inputs and outputs and what the user and the
        database say. The values of inputs must decide nothing but the values of outputs.
    inputs, outputs : mapping of str to ndarray
        What is copied to the device, and what is copied back. C-contiguous.
    work : callable
        Given an executor, does it all: it allocates what it needs by pools that have a shape, and releases them. What
        it returns is kept, and must follow from the key.
    numbers : mapping of str to float, optional
        Arguments of launches that are others in each call, which ``work`` passes as :class:`NamedNumber`.
    """
    footing = None if is_noting() else source.footing()
    if footing is None:
        return work(executor)
    place = ("replay", key, _shapes(inputs), _shapes(outputs), footing, plan_of())
    held = executor.sets.take(place)
    sequence = cast("_Sequence | None", getattr(held, "sequence", None))
    if sequence is not None and sequence.thread == threading.get_ident():
        unmeasured = executor.unmeasured()
        try:
            source.ask_again(sequence.questions)
            for step in sequence.steps:
                step(unmeasured, inputs, outputs, numbers or {})
        except BaseException:
            with suppress(LaunchError, DeviceMemoryError):  # nothing may use the buffers when they serve others
                unmeasured.finish()
            held.release()
            raise
        executor.sets.keep(place, held)
        return cast(T, sequence.outcome)
    held.release()
    return _recorded(executor, place, inputs, outputs, work)


def _recorded(
    executor: Executor, place: Hashable, inputs: Arrays, outputs: Arrays, work: Callable[[Executor], T]
) -> T:
    recorder = _Recorder(executor, inputs, outputs)
    kept = False
    try:
        with watching() as questions, reporting_to(recorder.reporting()):
            outcome = work(cast("Executor", recorder))
        buffers = recorder.buffers()
        if buffers is not None:
            # The work is done. Where its buffers cannot be joined, the next call does it in the same way.
            with suppress(LaunchError, DeviceMemoryError):
                steps = recorder.join(buffers)
                buffers.sequence = _Sequence(steps, tuple(questions.items()), outcome, threading.get_ident())
                executor.sets.keep(place, buffers)
                kept = True
        return outcome
    finally:
        if not kept:
            recorder.sets.give_back()


def _shapes(arrays: Arrays) -> Hashable:
    """Names, types and shapes, and which of them are one array."""
    first: dict[int, int] = {}
    return tuple(
        (name, each.dtype.char, each.shape, first.setdefault(_where(each)[0], number))
        for number, (name, each) in enumerate(arrays.items())
    )


class _OwnSets:
    """Buffers of pools that are released while a sequence is recorded: they are of the sequence from then on."""

    def __init__(self, executor: Executor) -> None:
        self._shared = executor.sets
        self.held: dict[Hashable, list[BufferSet]] = {}

    def take(self, key: Hashable) -> BufferSet:
        kept = self.held.get(key)
        return kept.pop() if kept else self._shared.take(key)

    def keep(self, key: Hashable, buffers: BufferSet) -> None:
        self.held.setdefault(key, []).append(buffers)

    def give_back(self) -> None:
        for key, several in self.held.items():
            for buffers in several:
                self._shared.keep(key, buffers)


class _Waited:
    """A launch that is recorded. Who waits for it wants its time, by which further launches are cut."""

    def __init__(self, event: Event, recorder: _Recorder) -> None:
        self._event, self._recorder = event, recorder

    def wait(self) -> None:
        self._recorder.sound = False
        self._event.wait()

    @property
    def seconds(self) -> float:
        self._recorder.sound = False
        return self._event.seconds


class _Recorder:
    """An executor that notes what is done on another one.

    It is no longer ``sound``, and nothing is kept, once something happens that need not happen again with other data:
    a copy of what is neither input nor a constant of a pool, or from the device to somewhere else than an output; a
    launch that is waited for, or told of as progress; a kernel that is compiled meanwhile; memory that lies in no pool.
    """

    def __init__(self, executor: Executor, inputs: Arrays, outputs: Arrays) -> None:
        self._executor = executor
        self._inputs = {_where(array): name for name, array in reversed(list(inputs.items()))}
        self._outputs = [(name, *_where(array), array.itemsize) for name, array in outputs.items()]
        self._constants: list[tuple[Buffer, bytes]] = []
        self._used: dict[int, Buffer] = {}
        self.sets = _OwnSets(executor)
        self.steps: list[Step] = []
        self.sound = all(array.flags.c_contiguous for array in (*inputs.values(), *outputs.values()))

    def __getattr__(self, name: str) -> Any:  # what changes nothing on the device
        return getattr(self._executor, name)

    def reporting(self) -> Callable[[int, int, str], None]:
        """Where progress is told while this records."""
        report = report_of()

        def told(done: int, total: int, unit: str) -> None:
            self.sound = False
            if report is not None:
                report(done, total, unit)

        return told

    def build_meanwhile(self, source: str, options: Sequence[str] = ()) -> bool:
        built = self._executor.build_meanwhile(source, options)
        self.sound = self.sound and built
        return built

    def borrow(self, memory: Any, nbytes: int) -> Buffer:
        self.sound = False
        return self._executor.borrow(memory, nbytes)

    def upload(self, array: NDArray[Any], into: Buffer | None = None, offset: int = 0) -> Buffer:
        name = self._inputs.get(_where(array))
        buffer = self._executor.upload(array, into, offset)
        if name is not None:
            self.steps.append(Upload(name, buffer, offset, array.nbytes))
            self._used[id(buffer)] = buffer
        elif offset or array.nbytes > _MOST_CONSTANT:
            self.sound = False
        else:
            self._constants.append((buffer, np.ascontiguousarray(array).tobytes()))
        return buffer

    def download(self, buffer: Buffer, into: NDArray[Any], offset: int = 0) -> NDArray[Any]:
        place = self._place_of(into)
        if place is None:
            self.sound = False
        else:
            self.steps.append(Download(*place, buffer, offset, into.nbytes))
            self._used[id(buffer)] = buffer
        return self._executor.download(buffer, into, offset)

    def launch(
        self, kernel: Any, global_size: Sequence[int], local_size: Sequence[int] | None, /, **arguments: Any
    ) -> Event:
        event = self._executor.launch(kernel, global_size, local_size, **arguments)
        for value in arguments.values():
            if hasattr(value, "nbytes"):
                self._used[id(value)] = value
        self.steps.append(Launch.of(kernel, global_size, local_size, arguments))
        return cast("Event", _Waited(event, self))

    def _place_of(self, array: NDArray[Any]) -> _Place | None:
        """Which elements of an output an array is."""
        at, nbytes = _where(array)
        for name, begin, size, item in self._outputs:
            if begin <= at and at + nbytes <= begin + size and item == array.itemsize:
                return name, (at - begin) // item, (at - begin + nbytes) // item
        return None

    def buffers(self) -> BufferSet | None:
        """All buffers of the sequence, which from now on belong together; None where it must not be kept."""
        # It has to end with a copy, so that nothing is under way when the buffers serve others.
        if not self.sound or not self.steps or not isinstance(self.steps[-1], Download):
            return None
        held = BufferSet()
        for key, several in self.sets.held.items():
            for number, buffers in enumerate(several):
                held.update({f"{key} {number} {name}": each for name, each in buffers.items()})
        content = {id(each.buffer): each.content for each in held.values()}
        if any(number not in content for number in self._used):
            return None
        if any(content.get(id(buffer)) != values for buffer, values in self._constants):
            return None
        return held if self._executor.sets.keeps(held) else None

    def join(self, held: BufferSet) -> list[Step]:
        """The steps with as few copies as will do; in ``held`` their buffers give place to those that they lie in."""
        constant = {id(buffer) for buffer, _ in self._constants}
        steps, joints, gone = joined(self._executor, self.steps, constant)
        for name in [name for name, each in held.items() if id(each.buffer) in gone]:
            del held[name]
        held.update({f"joint {number}": KeptBuffer(joint) for number, joint in enumerate(joints)})
        return steps


def _where(array: NDArray[Any]) -> tuple[int, int]:
    return int(array.__array_interface__["data"][0]), array.nbytes
