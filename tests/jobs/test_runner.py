"""The loop that runs blocks: order, progress, Ctrl-C, memory that a device refuses, several devices. No device."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from job_helpers import COLUMNS, ROWS, Diary, FakeProblem, executor, expected, refused

from pyedmcl.errors import DeviceMemoryError, HostMemoryError, Interrupted, WrongResultError
from pyedmcl.jobs.blocks import Block, Record, cut
from pyedmcl.jobs.runner import ArraySink, LocalRunner
from pyedmcl.launch.progress import reporting
from pyedmcl.tuning.parameters import tunable


def array_sink(rows=4, layers=1):
    arrays = [np.full((ROWS, COLUMNS), np.nan) for _ in range(layers)]
    return ArraySink(cut(ROWS, rows, layers), arrays), arrays


class KeepingSink(ArraySink):
    """A sink that outlives its process."""

    def kept(self):
        return f"{3 - len(self.pending())} of 3 blocks of FOLDER are finished and kept; the same call continues there"


def run(problem, sink, n_devices=1):
    """Run and give what progress was told, and the record."""
    seen = []

    @reporting
    def call(progress=None):
        return LocalRunner([executor(f"device {n}") for n in range(n_devices)]).run(problem, sink)

    return seen, call(progress=lambda *report: seen.append(report))


def test_blocks_cover_all_rows_once():
    assert cut(10, 4, 2) == [Block(0, 0, 4, (0, 1)), Block(1, 4, 8, (0, 1)), Block(2, 8, 10, (0, 1))]
    assert cut(3, 8) == [Block(0, 0, 3)]
    assert [len(block) for block in cut(10, 4)] == [4, 4, 2]


def test_blocks_run_in_order_on_one_engine():
    problem = FakeProblem()
    sink, arrays = array_sink()
    seen, record = run(problem, sink)
    np.testing.assert_array_equal(arrays, expected())
    assert problem.diary.blocks == [0, 1, 2] and not sink.pending()
    assert (problem.diary.opened, problem.diary.released) == (1, 1)
    assert seen == [(0, 10, "rows"), (4, 10, "rows"), (8, 10, "rows"), (10, 10, "rows")]
    assert record == Record({"kernel": {"wg": 2}}, "default", ({"E": 1, "used": "exact"}, {"E": 2, "used": "exact"}))
    assert sink.record == record


def test_layers_are_written_each():
    sink, arrays = array_sink(layers=2)
    run(FakeProblem(), sink)
    np.testing.assert_array_equal(arrays, expected(2))


def test_nothing_is_opened_where_nothing_is_left():
    problem = FakeProblem()
    sink = ArraySink([], [])
    seen, record = run(problem, sink)
    assert problem.diary.opened == 0 and seen == [(10, 10, "rows")] and record == Record()


def test_parts_of_a_block_are_told_and_its_end_once_it_is_written():
    def happens(engine, block, report):
        report(1)
        report(len(block))

    sink, _ = array_sink(rows=5)
    written = []
    write = sink.write
    sink.write = lambda block, result: (written.append(len(seen_by_writer)), write(block, result))
    seen_by_writer = []

    @reporting
    def call(progress=None):
        LocalRunner([executor()]).run(FakeProblem(happens=happens), sink)

    call(progress=lambda done, *_: seen_by_writer.append(done))
    assert seen_by_writer == [0, 1, 5, 6, 10]
    assert written == [2, 4], "5 and 10 were told after the blocks were written"


def test_a_result_computed_in_place_is_not_copied():
    problem = FakeProblem()
    sink, arrays = array_sink(rows=ROWS)
    engine = problem.open(executor())
    result = engine.block(sink.claim(), None, print)
    room = sink.room(Block(0, 0, ROWS))
    room[0][...] = 7.0
    result.arrays[0] = room[0]
    sink.write(Block(0, 0, ROWS), result)
    assert (arrays[0] == 7.0).all()


def test_ctrl_c_says_what_is_kept_and_how_to_go_on():
    def happens(engine, block, report):
        if block.number == 2:
            raise KeyboardInterrupt

    problem = FakeProblem(happens=happens)
    sink = KeepingSink(cut(ROWS, 4), [np.empty((ROWS, COLUMNS))])
    with pytest.raises(Interrupted, match=r"^stopped: 2 of 3 blocks of FOLDER .* the same call continues there$"):
        run(problem, sink)
    assert problem.diary.released == 1
    assert [block.number for block in sink.pending()] == [2]


def test_ctrl_c_is_plain_where_nothing_is_kept():
    def happens(engine, block, report):
        raise KeyboardInterrupt

    problem = FakeProblem(happens=happens)
    with pytest.raises(KeyboardInterrupt) as caught:
        run(problem, array_sink()[0])
    assert not isinstance(caught.value, Interrupted) and problem.diary.released == 1


def test_a_first_stage_tells_what_its_job_keeps():
    def happens(engine, block, report):
        raise KeyboardInterrupt

    job = KeepingSink(cut(ROWS, 4), [np.empty((ROWS, COLUMNS))])
    with pytest.raises(Interrupted, match="0 of 3 blocks of FOLDER"):
        run(FakeProblem(happens=happens), ArraySink(cut(ROWS, ROWS), [np.empty((ROWS, COLUMNS))], job=job))


def test_a_refused_block_is_computed_again_with_half_the_memory():
    def happens(engine, block, report):
        if block.number == 1 and len(diary.room) < 3:
            raise refused("8 bytes are not there")

    diary = Diary()
    problem = FakeProblem(diary, happens)
    sink, arrays = array_sink()
    run(problem, sink)
    np.testing.assert_array_equal(arrays, expected())
    assert diary.blocks == [0, 1, 1, 1, 2], "what was finished is not computed again"
    assert diary.opened == diary.released == 3
    assert diary.room[1] == diary.room[0] // 2 and diary.room[2] == diary.room[0] // 4


def test_opening_may_be_refused_too():
    def opens(engine):
        if len(diary.room) < 2:
            raise refused("targets are not there")

    diary = Diary()
    sink, arrays = array_sink()
    run(FakeProblem(diary, opens=opens), sink)
    np.testing.assert_array_equal(arrays, expected())
    assert diary.opened == 2


def test_at_last_the_error_has_the_numbers_of_both_ends():
    def happens(engine, block, report):
        raise refused(f"{engine.problem.diary.room[-1]:,} bytes were planned with")

    problem = FakeProblem(happens=happens)
    with pytest.raises(DeviceMemoryError) as caught:
        run(problem, array_sink()[0])
    room = problem.diary.room
    assert len(room) == 4 and problem.diary.released == 4
    for share in (room[0], room[-1]):
        assert f"{share:,} bytes were planned with" in str(caught.value)
    assert caught.value.refused


def test_a_call_is_not_repeated_where_a_block_is_refused_with_the_least_memory_that_an_earlier_one_needed():
    """Else tuning.retry computes an array in memory again from its start."""
    calls = []

    def happens(engine, block, report):
        if block.number == 2 or (block.number == 1 and len(diary.room) < 4):
            raise refused("8 bytes are not there")

    @tunable
    def call(tune=None):
        calls.append(tune)
        run(FakeProblem(diary, happens), array_sink()[0])

    diary = Diary()
    with pytest.raises(DeviceMemoryError, match=r"^8 bytes are not there \(This was with 12\.5 % of") as caught:
        call()
    assert caught.value.last and len(calls) == 1
    assert diary.blocks == [0, 1, 1, 1, 1, 2]


def test_what_may_be_a_work_groups_fault_is_left_to_who_tries_smaller_ones():
    def happens(engine, block, report):
        if block.number:
            raise refused("out of resources", kernel="knn", work_group=64)

    problem = FakeProblem(happens=happens)
    sink = KeepingSink(cut(ROWS, 4), [np.empty((ROWS, COLUMNS))])
    with pytest.raises(DeviceMemoryError, match=r"out of resources .*1 of 3 blocks") as caught:
        run(problem, sink)
    assert (caught.value.kernel, caught.value.work_group) == ("knn", 64), "of which the message must not lose sight"
    assert problem.diary.opened == problem.diary.released == 2, "half of the memory was tried once"
    assert problem.diary.room[1] == problem.diary.room[0] // 2


def test_memory_that_the_host_does_not_give_is_tried_with_less_and_then_told():
    def happens(engine, block, report):
        if len(diary.room) < short:
            raise MemoryError("Unable to allocate 3.64 TiB for an array")

    diary, short = Diary(), 3
    sink, arrays = array_sink()
    run(FakeProblem(diary, happens), sink)
    np.testing.assert_array_equal(arrays, expected())
    short = 99
    sink = KeepingSink(cut(ROWS, 4), [np.empty((ROWS, COLUMNS))])
    with pytest.raises(HostMemoryError, match=r"Unable to allocate 3.64 TiB.*bytes are free.*0 of 3 blocks of FOLDER"):
        run(FakeProblem(happens=happens), sink)


def test_then_a_store_says_how_to_go_on():
    def happens(engine, block, report):
        if block.number:
            raise refused("no")

    sink = KeepingSink(cut(ROWS, 4), [np.empty((ROWS, COLUMNS))])
    with pytest.raises(DeviceMemoryError, match=r"1 of 3 blocks of FOLDER .* continues there"):
        run(FakeProblem(happens=happens), sink)


def test_what_a_plan_found_too_large_is_not_tried_again():
    def opens(engine):
        raise DeviceMemoryError("targets need 9 bytes; 8 may be used")

    problem = FakeProblem(opens=opens)
    with pytest.raises(DeviceMemoryError, match=r"^targets need 9 bytes; 8 may be used$"):
        run(problem, array_sink()[0])
    assert problem.diary.opened == 1


def test_several_devices_share_the_blocks():
    meet = threading.Barrier(2, timeout=120)

    def happens(engine, block, report):
        if block.number < 2:
            meet.wait()  # both are at work at once, or this times out

    problem = FakeProblem(happens=happens)
    sink, arrays = array_sink(rows=1)
    seen, _ = run(problem, sink, n_devices=2)
    np.testing.assert_array_equal(arrays, expected())
    assert sorted(problem.diary.blocks) == list(range(ROWS))
    assert set(problem.diary.devices) == {"device 0", "device 1"}
    assert problem.diary.opened == problem.diary.released == 2
    assert [done for done, *_ in seen] == list(range(ROWS + 1))


def test_a_device_that_computes_nonsense_is_heard_and_no_block_is_begun_after_that():
    failed = threading.Event()

    def happens(engine, block, report):
        if engine.executor.info.name == "device 1":
            failed.set()
            raise WrongResultError("the second device computes nonsense")
        if not failed.wait(30):
            raise AssertionError("the second device never got a block")

    problem = FakeProblem(happens=happens)
    sink, _ = array_sink(rows=1)
    with pytest.raises(WrongResultError, match="second device computes nonsense"):
        run(problem, sink, n_devices=2)
    assert len(problem.diary.blocks) < ROWS
    assert problem.diary.opened == problem.diary.released
