"""Functions of several steps, each a job, that continue after any interruption."""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import StoreMismatchError
from . import durable, layout
from .blocks import Block, BlockResult, Problem, Record, cut
from .claims import Member, require_alone
from .records import (
    IDENTITY,
    DamagedError,
    as_searched,
    digest_of_identity,
    identity_file,
    is_ours,
    mark,
    read_identity,
)
from .runner import Runner, Sink
from .sharing import END, PartsSink, blocks_in, end_of, entries_in, found, is_part, packed

if TYPE_CHECKING:
    from ..device.executor import Executor
    from ..device.info import DeviceInfo


# A folder of random work: whoever continues it, or shares it, has the seed of the process that began it.


_SEED_BITS = 63


@contextlib.contextmanager
def seeded_folder(
    path: Path, begin: float | None, device: str, seed: int | None, identity: Callable[[int], Mapping[str, str]],
    blocks: int = 1, *, resume: bool = True,
) -> Iterator[tuple[Member, int]]:  # fmt: skip
    """A folder for this process alone (``begin`` None) or as one of several, and the seed.

    Parameters
    ----------
    path : Path
        New, empty, or of the same work.
    begin : float or None
        From :func:`.claims.begin_of`.
    device : str
        Its name, to be told to others.
    seed : int or None
        None: that of the work that is there, or of who began first.
    identity : callable
        Of a seed: what decides the answer, each as text, "seed" among them; the name "data" stands for their digest.
    blocks : int
        Into how many the work is cut, for a folder that is new.
    resume : bool
        False removes what a run has left there.
    """
    if not resume and _cleared(path):
        seed = secrets.randbits(_SEED_BITS) if seed is None else seed
        with durable.explained(f"{path} cannot be written", ", then run the same command again"):
            durable.write_file(path / IDENTITY, identity_file(blocks, identity(seed)))
    # Before anything is touched. An empty folder is nobody's, and has no seed.
    decided = _stored_seed(path) if seed is None else seed
    try:
        is_ours(path, identity(decided or 0), "out")
    except StoreMismatchError:
        if decided is not None or (decided := _stored_seed(path)) is None:
            raise
        is_ours(path, identity(decided), "out")  # another process has begun it a moment ago
    if begin is None:
        require_alone(path)
    with Member(path, device) as member:
        member.enter()
        if decided is None:
            decided = int(member.decide("seed", secrets.randbits(_SEED_BITS)))
        mark(path, blocks, identity(decided), "out")
        yield member, decided


def _cleared(path: Path) -> bool:
    """Remove the parts that a run has kept in its folder, and no files of others; False where there was no run."""
    try:
        if read_identity(path) is None:
            return False
    except (DamagedError, OSError):  # a folder of others, which is refused later
        return False
    require_alone(path)
    for step in steps_of(path):
        layout.remove_folder(step, lambda name: name == IDENTITY or is_part(name))
    durable.remove_from(path, is_part)
    return True


def _stored_seed(path: Path) -> int | None:
    """The seed of work that is in a folder; None where there is none."""
    with contextlib.suppress(DamagedError, OSError, ValueError, LookupError, TypeError):
        identity = read_identity(path)
        return None if identity is None else int(json.loads(identity[1]["seed"]))
    return None


# Functions of several steps, each a job: they can be killed at any moment, and several processes may share them.
#
# Every block of every step is kept in a file, and found again by whoever makes the same steps in the same order.


#: What an identity says of a folder of steps, whose number nobody knows before the end.
STEPS = {"kept": "steps"}
_STEP = re.compile(r"(\d{3,})-(\w+)")
# Pieces of a step where processes share a folder, so that several have something to do.
_PIECES = 16
# A first stage (the search for E) is cut as for this many devices, of which else nothing would be kept before its end.
_DEVICES = 4


@dataclass(frozen=True)
class Kept:
    """A folder of steps, at work."""

    folder: Path
    # This process, as one of those who share it.
    member: Member
    # Where among the blocks it begins.
    begin: float
    # Of the job.
    seed: int
    # Into at least how many a step is cut.
    pieces: int
    # Digest of the question.
    of: str


@contextlib.contextmanager
def kept_in(
    folder: Path, begin: float | None, device: str, seed: int | None, identity: Callable[[int], Mapping[str, str]],
    *, resume: bool = True,
) -> Iterator[Kept]:  # fmt: skip
    """A folder of kept steps; parameters and errors as for :func:`seeded_folder`."""
    blocks = 1 if begin is None else _PIECES

    def named(seed: int) -> dict[str, str]:
        return {**identity(seed), **STEPS}

    with seeded_folder(folder, begin, device, seed, named, blocks, resume=resume) as (member, decided):
        stored = read_identity(folder)
        pieces = blocks if stored is None else stored[0]  # as who began has cut
        yield Kept(folder, member, begin or 0.0, decided, pieces, digest_of_identity(named(decided)))


class KeepingRunner:
    """A runner whose steps are kept in a folder: whoever makes the same steps in the same order continues there.

    Parameters
    ----------
    runner : Runner
        Which computes what is not kept yet.
    """

    def __init__(self, runner: Runner, kept: Kept) -> None:
        self._runner, self._kept, self._steps = runner, kept, 0

    @property
    def devices(self) -> int:
        """As first stages are cut, by all who share the folder."""
        return _DEVICES

    @property
    def infos(self) -> Sequence[DeviceInfo]:
        return self._runner.infos

    @property
    def executor(self) -> Executor:
        return self._runner.executor

    @property
    def tuning(self) -> dict[str, list[dict[str, Any]]]:
        return self._runner.tuning

    def alike(self, kernels: Iterable[str]) -> DeviceInfo:
        """See :meth:`.runner.Runner.alike`."""
        return self._runner.alike(kernels)

    def provenance(self, kernels: Iterable[str], record: Record, **more: Any) -> dict[str, Any]:
        """See :meth:`.runner.Runner.provenance`."""
        return self._runner.provenance(kernels, record, **more)

    def run(self, problem: Problem, sink: Sink) -> Record:
        """Take the blocks that are kept, and compute and keep the others; see :meth:`.runner.Runner.run`."""
        step = f"{self._steps:03d}-{type(problem).__name__}"
        self._steps += 1
        step_sink = StepSink(self._kept, step, _cut(sink.pending(), self._kept.pieces))
        record = self._runner.run(problem, step_sink)
        return step_sink.hand_on(sink).joined(record)

    def done(self) -> None:
        """Say in the folder that all is done, and clear up behind those who shared it."""
        folder = self._kept.folder
        of = end_of(self._kept.of)
        if found(folder / END, of) is None:
            with durable.explained(f"{folder / END} could not be written", _ADVICE):
                durable.write_file(folder / END, packed({"done": np.ones(1)}, {"searched": []}, of))
        self._kept.member.settle(lambda: durable.remove_temporaries(folder))


_ADVICE = ", then run the same command again: it continues from there"


def _cut(blocks: Sequence[Block], pieces: int) -> list[Block]:
    """All rows of some blocks, in that many pieces at least, as far as there are rows."""
    if not blocks:
        return []
    total = blocks[-1].end
    rows = min(len(blocks[0]), -(-total // pieces))
    return cut(total, max(rows, 1), len(blocks[0].layers))


class StepSink(PartsSink):
    """The blocks of a step, as files of a folder of its own.

    Parameters
    ----------
    step : str
        Its name.
    """

    def __init__(self, kept: Kept, step: str, blocks: Sequence[Block]) -> None:
        place = kept.folder / step
        durable.inner_folder(place)
        mark(place, len(blocks), {}, "out")
        super().__init__(place, step, blocks, kept.member, kept.begin, kept.of)
        self.folder: Path | None = kept.folder

    def hand_on(self, sink: Sink) -> Record:
        """Give all that is kept to another sink, whose blocks may be others; returns how it came about."""
        record, of_blocks = Record(), []
        for head, arrays in self._all():
            record = record.joined(Record(searched=tuple(as_searched(one) for one in head["searched"])))
            of_blocks.append(list(arrays.values()))
        layers = [parts[0] if len(parts) == 1 else np.concatenate(parts) for parts in zip(*of_blocks, strict=True)]
        while isinstance(block := sink.claim(), Block):
            sink.write(block, BlockResult([layer[block.begin : block.end] for layer in layers]))
        return record

    def kept(self) -> str:
        step, left = self._folder.name.split("-", 1)[0], len(self.pending())
        return (
            f"steps before number {int(step) + 1} and {len(self._blocks) - left:,} of {len(self._blocks):,} blocks of "
            f"it are kept in {self._folder.parent}; the same call (or command) continues there"
        )


def steps_of(folder: Path) -> list[Path]:
    """The folders of steps that were begun, in their order."""
    steps = [(int(match[1]), name) for name in os.listdir(folder) if (match := _STEP.fullmatch(name))]
    return [folder / name for _, name in sorted(steps)]


def said_of_step(step: Path) -> str:
    """Which step that is, and how far: ``step 5 (lagged significance): 3 of 14 blocks are done``."""
    number, name = step.name.split("-", 1)
    words = re.sub(r"(?<=\w)(?=[A-Z])", " ", name.removesuffix("Problem")).lower()
    identity = read_identity(step)
    total = "" if identity is None else f" of {identity[0]:,}"
    return f"step {int(number) + 1} ({words}): {blocks_in(step):,}{total} blocks are done"


def entries_of_steps(folder: Path) -> list[dict[str, Any]]:
    """What is told of the blocks that are done, of all steps: when, and by whom."""
    return [entry for step in steps_of(folder) for entry in entries_in(step)]
