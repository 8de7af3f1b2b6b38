"""Stores that several processes fill together: sinks whose blocks are claimed in a folder; see :mod:`.claims`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..errors import StoreWriteError
from ..files import PRIVATE_PREFIX
from . import durable, layout
from .blocks import Block, BlockResult, Record, Wait, cut, default_block_rows
from .claims import Member
from .parts import StageSink, found, is_part, packed, rows_name
from .records import as_searched, digest_of
from .sinks import ListSink, ResultsSink, StoreSink
from .store import XmapStore
from .turns import Pace, SharedBlocks

#: Seconds between two looks at what others have done, while there is work; more where a look takes long.
LOOK_SECONDS = 5.0
_STAGE_FILES = 16  # of a first stage that one process computes
_GATHERING = 0.2  # seconds between two looks whether somebody else has read all journals
_GATHER = "journals"  # the claim of who reads them


@contextlib.contextmanager
def sink_at(
    where: Path, device: str, begin: float | None, open_stores: Callable[[Member | None], Sequence[XmapStore]]
) -> Iterator[AloneSink | SharedSink]:
    """A sink for the stores of a folder, which this process fills alone or together with others.

    Parameters
    ----------
    where : Path
        The folder.
    device : str
        Its name, to be told to others.
    begin : float or None
        From :func:`.turns.begin_of`; None: alone.
    open_stores : callable
        Gives stores that are open for writing, one for each layer, for this process as one of several or alone.
    """
    with contextlib.ExitStack() as stack:
        member = None if begin is None else stack.enter_context(Member(where, device))
        stores = open_stores(member)
        for store in stores:
            stack.enter_context(store)
        if member is None or begin is None:
            yield AloneSink(stores, where)
        else:
            yield stack.enter_context(SharedSink(stores, where, member, begin))


class AloneSink(StoreSink):
    """Stores that this process fills alone. What a first stage finds is kept until the stores have it."""

    def stage(self, name: str, n: int, blocks: Sequence[Block]) -> ResultsSink:
        """Cut so that some minutes of work are not lost, and that there are few files."""
        rows = min(len(blocks[0]), max(default_block_rows(n), -(-n // _STAGE_FILES)))
        blocks = cut(n, rows, len(blocks[0].layers))
        return KeptStage(self._stage_folder(name), blocks, self, identity_of(self.stores[0]))

    def set_E(self, E: ArrayLike, record: Record) -> None:
        super().set_E(E, record)
        with contextlib.suppress(OSError):
            layout.remove_folder(self._stage_folder("E"), is_part)

    def _stage_folder(self, name: str) -> Path:
        return Path(self._where) / f"{PRIVATE_PREFIX}{name}-{identity_of(self.stores[0])}"


class KeptStage(ListSink):
    """Blocks of a stage, each in a file named by its rows, of which those that are there are not computed again.

    Parameters
    ----------
    folder : Path
        Made when the first block is written.
    blocks : sequence of Block
    job : StoreSink
        Whose stage this is.
    of : str
        Digest of what decides it.
    """

    def __init__(self, folder: Path, blocks: Sequence[Block], job: StoreSink, of: str) -> None:
        super().__init__(blocks, job)
        self._kept_in, self._n, self._of = folder, len(blocks), of
        for block in blocks:
            part = found(folder / rows_name(block.begin, block.end), self._rows_of(block))
            if part is not None:
                head, arrays = part
                searched = tuple(as_searched(one) for one in head["searched"])
                self._unclaimed.remove(block)
                super().write(block, BlockResult(list(arrays.values()), Record(searched=searched)))

    def write(self, block: Block, result: BlockResult) -> None:
        arrays = {f"array{place}": np.asarray(array) for place, array in enumerate(result.arrays)}
        head = {"searched": [dict(one) for one in result.record.searched]}
        part = self._kept_in / rows_name(block.begin, block.end)
        with durable.explained(f"{part} could not be written", ", then run the same command again"):
            durable.inner_folder(self._kept_in)
            durable.write_file(part, packed(arrays, head, self._rows_of(block)))
        super().write(block, result)

    def _rows_of(self, block: Block) -> str:
        """To what the file of a block belongs."""
        return f"{self._of} rows {block.begin}-{block.end}"

    def kept(self) -> str:
        done = self._n - len(self._pending)
        return (
            f"{done:,} of {self._n:,} blocks of the search for E are kept in {self._kept_in.parent}; the same call (or "
            "command) continues there"
        )


def identity_of(store: XmapStore) -> str:
    """What decides a first stage of the job of a store, as a few letters."""
    manifest = store.manifest
    same = {name: value for name, value in manifest.parameters.items() if name != "lib_size"}
    return digest_of([manifest.input_digest, same, manifest.version])[:16]


def stage_blocks(n: int, block_rows: int) -> list[Block]:
    """Blocks of a stage of a job whose store has blocks of ``block_rows`` rows: of all who share it, the same."""
    return cut(n, min(default_block_rows(n), block_rows))


class SharedAnswers(MutableMapping[str, dict[str, Any]]):
    """Tuned parameters of a job that several processes share: who asks first decides for all.

    What a device refuses may be replaced for this process only.

    Parameters
    ----------
    stores : sequence of XmapStore
        Where they are kept, each in all; the first one decides.
    """

    def __init__(self, stores: Sequence[XmapStore]) -> None:
        self._stores = stores
        self._known: dict[str, dict[str, Any]] = {}
        for store in stores:
            self._known |= store.parameters

    def __getitem__(self, question: str) -> dict[str, Any]:
        answer = self._known.get(question) or self._stores[0].kept_answer(question)
        if answer is None:
            raise KeyError(question)
        if question not in self._known:
            self[question] = answer
        return answer

    def __setitem__(self, question: str, answer: dict[str, Any]) -> None:
        if question not in self._known:
            for store in self._stores:
                answer = store.keep_answer(question, answer)
        self._known[question] = answer

    def __delitem__(self, question: str) -> None:
        del self._known[question]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


class SharedSink(StoreSink):
    """Stores that several processes fill together; a context manager.

    Parameters
    ----------
    stores : sequence of XmapStore
        One for each layer, from :meth:`.store.XmapStore.join`.
    where : path-like
        The folder that is shared.
    member : Member
    begin : float
        From :func:`.turns.begin_of`.
    """

    def __init__(self, stores: Sequence[XmapStore], where: Any, member: Member, begin: float) -> None:
        super().__init__(stores, where)
        self.answers = SharedAnswers(stores)
        self._member, self._begin = member, begin
        self._known = {block.number: block for block in super().pending()}  # not done, as the runner knows
        self._lacking = set(self._known)  # not done, at the last look
        self._doubtful: set[int] = set()  # written, but in no journal: who wrote it was killed in between
        self._looks = Pace(LOOK_SECONDS)
        self._blocks = SharedBlocks(member, "block", stores[0].n_blocks, begin, self._left, self._finished)

    def __enter__(self) -> SharedSink:
        return self

    def __exit__(self, kind: object, *rest: object) -> None:
        if kind is None and self._complete():
            self._member.settle(self._settle)

    def _settle(self) -> None:
        for store in self.stores:
            store.settle()

    def _left(self) -> set[int] | Wait:
        self._lacking = {number for store in self.stores for number in store.unwritten()}
        if self._lacking or self._complete():
            return self._lacking
        # There may be a thousand journals. One process reads them, once all is written, and the others its summary.
        for store in self.stores:
            store.refresh(whole=True)
        if not self._complete():
            if not (self._member.take(_GATHER) or self._member.take_over(_GATHER)):
                return Wait(_GATHERING)
            try:
                for store in self.stores:
                    store.gather()
            finally:
                self._member.give(_GATHER)
            self._lacking = {block.number for block in self.pending()}
            self._doubtful = set(self._lacking)
        return self._lacking

    def _complete(self) -> bool:
        return all(store.complete for store in self.stores)

    def _finished(self, number: int) -> bool:
        return all([self._has(store, number) for store in self.stores])

    def _has(self, store: XmapStore, number: int) -> bool:
        """Whether a store has a block, also if somebody else wrote it a moment ago."""
        if number not in self._doubtful:
            return store.written(number)
        store.refresh()
        return store.finished(number)

    def _is_done(self, block: Block) -> bool:
        """Whether somebody else has finished what was asked of a block."""
        stores = [self.stores[place] for place in block.layers]
        for store in stores:
            store.refresh()
        return all(store.finished(block.number) for store in stores)

    def claim(self) -> Block | Wait | None:
        number = self._blocks.claim()
        if number is None or isinstance(number, Wait):
            return number
        layers: tuple[int, ...] = (0,)
        if len(self.stores) > 1:
            layers = tuple(place for place, store in enumerate(self.stores) if not self._has(store, number))
        return Block(number, *self.stores[0].rows(number), layers)

    def give_back(self, block: Block) -> None:
        self._blocks.give_back(block.number)

    def elsewhere(self) -> Sequence[Block]:
        with self._looks as due:
            if due:
                self._left()
        if len(self._lacking) >= len(self._known):
            return ()
        done = [block for number, block in self._known.items() if number not in self._lacking]
        self._known = {number: block for number, block in self._known.items() if number in self._lacking}
        return done

    def write(self, block: Block, result: BlockResult) -> None:
        try:
            super().write(block, result)
        except StoreWriteError as error:
            # Others computed the block while this process gave no sign of life, as when it was suspended, and the last
            # of them cleared what it had begun to write.
            if not isinstance(error.__cause__, FileNotFoundError) or not self._is_done(block):
                raise
        self._known.pop(block.number, None)
        self._lacking.discard(block.number)
        self._blocks.done(block.number)

    def _keep_answers(self, place: int) -> None:
        pass  # they were kept when they were asked for

    def stage(self, name: str, n: int, blocks: Sequence[Block]) -> ResultsSink:
        """As every process that shares the folder cuts and keeps it."""
        kind = f"{name}-{identity_of(self.stores[0])}"
        blocks = stage_blocks(n, self.stores[0].block_rows)
        folder, of = self._member.folder / kind, identity_of(self.stores[0])
        return StageSink(folder, kind, blocks, self._member, self._begin, of, self)
