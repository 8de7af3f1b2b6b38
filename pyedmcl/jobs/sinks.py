"""Sinks take the blocks of a job, into arrays or into stores that outlive the process, and hand out what they lack."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .blocks import Arrays, Block, BlockResult, Record, Wait
from .store import XmapStore

Answers = MutableMapping[str, dict[str, Any]]


class Sink(Protocol):
    """Takes the blocks of a job, and hands out those that it lacks."""

    @property
    def record(self) -> Record:
        """How the blocks that the sink holds came about, as far as the sink keeps that."""

    @property
    def answers(self) -> Answers | None:
        """Tuned parameters of the job, see :func:`pyedmcl.tuning.parameters.keeping`; None where none are kept."""

    @property
    def device(self) -> Mapping[str, Any]:
        """Key of the kind of device that these parameters are for; empty where none are kept."""

    @property
    def folder(self) -> Path | None:
        """Where the job keeps its blocks; None where it keeps none."""

    def pending(self) -> Sequence[Block]:
        """Blocks that are still to be computed, claimed ones included. A sink may hand out such a block in pieces."""

    def claim(self) -> Block | Wait | None:
        """A block that nobody has claimed yet.

        A :class:`.blocks.Wait` says that other processes compute all that is left, which comes back if they are lost.
        None says that nothing is left.
        """

    def elsewhere(self) -> Sequence[Block]:
        """Blocks that other processes have finished since the last call of this method."""

    def give_back(self, block: Block) -> None:
        """Take back a block that was claimed but not computed, so that another device or process can claim it."""

    def room(self, block: Block) -> Arrays | None:
        """Arrays into which an engine may write a block directly; None where it must return arrays of its own."""

    def write(self, block: Block, result: BlockResult) -> None:
        """Take a block. It counts as done when this method returns."""

    def kept(self) -> str | None:
        """A sentence on what outlives this process and how the job continues; None where nothing outlives it."""


class PairsSink(Sink, Protocol):
    """Takes the blocks of a map of all pairs, and the embedding dimensions of its series, which a first stage finds."""

    @property
    def E(self) -> NDArray[np.int_] | None:
        """Embedding dimensions of the series, where the job has found them."""

    def set_E(self, E: ArrayLike, record: Record) -> None:
        """Keep the embedding dimensions and the record of how they were found, unless the sink has them already."""

    def stage(self, name: str, n: int, blocks: Sequence[Block]) -> ResultsSink:
        """The sink of a stage that the job runs before its own blocks, such as the search for E.

        Parameters
        ----------
        name : str
            Name of the stage.
        n : int
            Rows of the stage.
        blocks : sequence of Block
            Blocks as this process would cut them if it worked alone.
        """


class ResultsSink(Sink, Protocol):
    """A sink that gives the results of its blocks back."""

    def results(self) -> list[Any]:
        """Results of all blocks in their order; to be asked for once none is pending."""


class ListSink:
    """Keeps the results of blocks in memory as they come.

    Parameters
    ----------
    blocks : sequence of Block
    job : Sink, optional
        The sink of a job whose first stage goes here. Its tuned parameters are used, and messages say what it keeps.
    """

    def __init__(self, blocks: Sequence[Block], job: Sink | None = None) -> None:
        self._job = job
        self._pending = {block.number: block for block in blocks}
        self._unclaimed = deque(blocks)
        self._results: dict[int, Any] = {}
        self.record = Record()
        self.answers = None if job is None else job.answers
        self.device: Mapping[str, Any] = {} if job is None else job.device
        self.folder: Path | None = None if job is None else job.folder

    def results(self) -> list[Any]:
        """Results of the blocks in their order."""
        return [self._results[number] for number in sorted(self._results)]

    def pending(self) -> list[Block]:
        return list(self._pending.values())

    def claim(self) -> Block | None:
        return self._unclaimed.popleft() if self._unclaimed else None

    def give_back(self, block: Block) -> None:
        self._unclaimed.append(block)

    def elsewhere(self) -> Sequence[Block]:
        return ()

    def room(self, block: Block) -> Arrays | None:
        return None

    def write(self, block: Block, result: BlockResult) -> None:
        self._take(block, result.arrays)
        self.record = self.record.joined(result.record)
        del self._pending[block.number]

    def _take(self, block: Block, arrays: Any) -> None:
        self._results[block.number] = arrays

    def kept(self) -> str | None:
        return None if self._job is None else self._job.kept()


class ArraySink(ListSink):
    """Writes blocks into arrays in memory.

    Parameters
    ----------
    blocks : sequence of Block
    layers : sequence of ndarray
        Rows first.
    job : Sink, optional
        As for :class:`ListSink`.
    """

    def __init__(self, blocks: Sequence[Block], layers: Arrays, job: Sink | None = None) -> None:
        super().__init__(blocks, job)
        self._layers = layers
        self.E: NDArray[np.int_] | None = None

    def set_E(self, E: ArrayLike, record: Record) -> None:
        self.E = np.asarray(E, int)
        self.record = self.record.joined(Record(searched=record.searched))

    def stage(self, name: str, n: int, blocks: Sequence[Block]) -> ListSink:
        return ListSink(blocks, self)

    def room(self, block: Block) -> list[NDArray[Any]]:
        return [self._layers[layer][block.begin : block.end] for layer in block.layers]

    def _take(self, block: Block, arrays: Arrays) -> None:
        for place, rows in zip(self.room(block), arrays, strict=True):
            if not np.may_share_memory(place, rows):  # else the engine has written there itself
                place[...] = rows


class StoreSink:
    """Writes blocks of library rows to stores, one for each layer of the result, all of which are cut alike.

    What :mod:`.shared` makes of it, for one process or several, is a :class:`PairsSink`: it knows where stages go, too.

    Parameters
    ----------
    stores : sequence of XmapStore
    where : path-like
        The folder, as messages name it.
    """

    def __init__(self, stores: Sequence[XmapStore], where: Any) -> None:
        self.stores = stores
        self._where = where
        self.device: Mapping[str, Any] = stores[0].manifest.device
        self.folder = Path(where)
        self._searched = [store.searched for store in stores]
        self.record = Record()
        for records in self._searched:
            self.record = self.record.joined(Record(searched=tuple(records)))
        # A job that is continued computes its blocks with the parameters of those that are there.
        self.answers: Answers = {}
        for store in stores:
            self.answers |= store.parameters
        self._kept_answers = [store.parameters for store in stores]
        self._unclaimed = deque(self.pending())

    @property
    def E(self) -> NDArray[np.int_] | None:
        kept = next((E for store in self.stores if (E := store.E) is not None), None)
        return None if kept is None else np.asarray(kept, int)

    def set_E(self, E: ArrayLike, record: Record) -> None:
        self.record = self.record.joined(Record(searched=record.searched))
        for place, store in enumerate(self.stores):
            if store.E is None:
                # The record goes first: a run that continues finds E there and does not search for it again.
                self._set_searched(place)
                store.set_E(E)

    def pending(self) -> list[Block]:
        first = self.stores[0]
        lacking = [set(store.pending()) for store in self.stores]
        return [
            Block(number, *first.rows(number), tuple(place for place, own in enumerate(lacking) if number in own))
            for number in sorted(set().union(*lacking))
        ]

    def claim(self) -> Block | Wait | None:
        return self._unclaimed.popleft() if self._unclaimed else None

    def give_back(self, block: Block) -> None:
        self._unclaimed.append(block)

    def elsewhere(self) -> Sequence[Block]:
        return ()

    def room(self, block: Block) -> None:
        return None

    def write(self, block: Block, result: BlockResult) -> None:
        self.record = self.record.joined(result.record)
        for place, rows in zip(block.layers, result.arrays, strict=True):
            self._keep_answers(place)  # before the block, since a run that continues must know its parameters
            self._set_searched(place)
            self.stores[place].write(block.number, rows)

    def _keep_answers(self, place: int) -> None:
        if self.answers != self._kept_answers[place]:
            self.stores[place].set_parameters(self.answers)
            self._kept_answers[place] = dict(self.answers)

    def _set_searched(self, place: int) -> None:
        records = [dict(entry) for entry in self.record.searched]
        if records != self._searched[place]:
            self.stores[place].set_searched(records)
            self._searched[place] = records

    def kept(self) -> str:
        total = sum(store.n_blocks for store in self.stores)  # in the unit of ``pyedmcl status``
        done = total - sum(len(store.pending()) for store in self.stores)
        return (
            f"{done:,} of {total:,} blocks of {self._where} are finished and kept; the same call (or "
            "command) continues there"
        )
