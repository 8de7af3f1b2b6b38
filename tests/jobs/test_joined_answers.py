"""What processes that share a run agree on beside its blocks: tuned parameters, and the parts of a stage."""

from __future__ import annotations

import numpy as np
import pytest
from job_helpers import executor
from joined_worker import ROWS, N
from store_helpers import make_manifest, values, write_blocks

from pyedmcl.errors import StoreError
from pyedmcl.jobs import XmapStore, open_store
from pyedmcl.jobs.blocks import BlockResult, Record, cut
from pyedmcl.jobs.claims import FOLDER, Member
from pyedmcl.jobs.runner import StoreSink
from pyedmcl.jobs.sharing import PartsSink, SharedAnswers, SharedSink
from pyedmcl.kernels import spec
from pyedmcl.tuning.parameters import keeping, parameters


@pytest.fixture
def path(tmp_path):
    return tmp_path / "out.zarr"


def ask(answers):
    """What an engine is told of a kernel's parameters."""
    with keeping(answers):
        question = {"dtype": "float32", "k": 4, "columns": 40}
        return dict(parameters(spec("lookup"), question, executor().info, {"rows": 300}).parameters)


class Quicker(dict):
    """Answers of which another process gives each a moment before this one."""

    def __setitem__(self, question, answer):
        super().__setitem__(question, {**answer, "stage": False})


def test_an_answer_that_another_process_gave_meanwhile_is_taken():
    assert ask({})["stage"] and ask(Quicker()) == {**ask({}), "stage": False}


def test_who_asks_first_decides_for_all(path):
    plain, other = ask({}), {"row_lanes": 1}
    with Member(path) as one, Member(path) as two:
        stores = [XmapStore.join(path, make_manifest(N, ROWS), member) for member in (one, two)]
        first, second = (SharedAnswers([store]) for store in stores)
        assert ask(first) == plain and ask(second) == plain
        (question,) = first
        assert second[question] == plain
        stores[0].keep_answer("another question", other)
        assert second["another question"] == other and second.get("a third") is None
        second["another question"] = plain  # it was no good here
        assert second["another question"] == plain and first["another question"] == other
        # One who asked at the same moment, and was second.
        late = SharedAnswers([stores[1]])
        late._known.clear()
        stores[0].keep_answer("both at once", other)
        late["both at once"] = plain
        assert late["both at once"] == other
        for store in stores:
            store.close()
    with XmapStore.create_or_resume(path, make_manifest(N, ROWS)) as store:
        write_blocks(store, values(N))
    assert open_store(path).parameters == {}, "no block was there yet"


def test_parameters_of_joined_blocks_are_kept(path):
    with Member(path) as member:
        store = XmapStore.join(path, make_manifest(N, ROWS), member)
        with store, SharedSink([store], path, member, 0.0) as sink:
            sink.answers["question"] = {"wg": 64}
            write_blocks(store, values(N), [0])
    with XmapStore.create_or_resume(path, make_manifest(N, ROWS)) as store:
        assert store.parameters == {"question": {"wg": 64}} == dict(StoreSink([store], path).answers)


def test_a_damaged_answer_is_refused(path):
    with Member(path) as member, XmapStore.join(path, make_manifest(N, ROWS), member) as store:
        store.keep_answer("question", {"wg": 64})
        (file,) = (path / "rho" / "tuning").iterdir()
        file.write_text(file.read_text().replace("64", "32"))
        with pytest.raises(StoreError, match="has changed since it was written"):
            store.kept_answer("question")


class Stage:
    answers = folder = None
    device = {}  # noqa: RUF012

    def kept(self):
        return "kept"


def part(number):
    return BlockResult([np.full((2, 3), float(number))], Record(searched=({"E": number, "interval": (0.1, 0.2)},)))


def test_a_stage_is_computed_in_parts(path):
    with Member(path) as one, Member(path) as two:
        one.enter(), two.enter()
        folder = path / FOLDER / "E-1"
        first, second = (
            PartsSink(folder, "E-1", cut(6, 2), member, begin, "run", Stage())
            for member, begin in ((one, 0.0), (two, 0.5))
        )
        a, b = first.claim(), second.claim()
        first.write(a, part(a.number))
        second.write(b, part(b.number))
        c = second.claim()
        assert [a.number, b.number, c.number] == [0, 1, 2] and [b.number for b in first.pending()] == [2]
        assert [b.number for b in first.elsewhere()] == [1] and not first.elsewhere()
        second.write(c, part(2))
        assert first.claim() is None and not first.pending() and first.kept() == "kept"
        np.testing.assert_array_equal(np.concatenate([rows for (rows,) in first.results()])[:, 0], [0, 0, 1, 1, 2, 2])
        assert second.record.searched[1] == {"E": 1, "interval": (0.1, 0.2)}
        file = folder / "part-1-2.npz"
        file.write_bytes(file.read_bytes()[:-9])
        again = PartsSink(folder, "E-1", cut(6, 2), one, 0.0, "run")
        with pytest.warns(RuntimeWarning, match=r"part-1-2\.npz is damaged .* computed anew"):
            assert again.claim().number == 1
