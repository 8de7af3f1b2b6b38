"""Device memory that was given back serves again."""

import numpy as np
import pytest

import pyedmcl
from pyedmcl.device.memory import BufferSet, BufferSets, DeviceBuffer, KeptBuffer, MemoryUse, SpareMemory
from pyedmcl.device.select import open_device


class Memory:
    def __init__(self):
        self.free = False

    def release(self):
        assert not self.free
        self.free = True


def test_memory_of_the_same_size_is_taken_again():
    spare, one, two = SpareMemory(1000), Memory(), Memory()
    spare.keep(one, 100)
    spare.keep(two, 200)
    assert spare.take(150) is None
    assert spare.take(200) is two and spare.take(200) is None
    assert spare.take(100) is one and not one.free


def test_large_memory_is_freed_at_once():
    spare, large = SpareMemory(1000), Memory()
    spare.keep(large, 251)
    assert large.free and spare.take(251) is None


def test_sizes_that_were_not_used_for_long_go_first():
    spare, kept = SpareMemory(1205), {size: Memory() for size in (298, 299, 300, 301)}
    for size in (298, 299, 300, 301):
        spare.keep(kept[size], size)
    assert not any(memory.free for memory in kept.values())
    spare.keep(spare.take(298), 298)  # 299 is the oldest now
    kept[8] = Memory()
    spare.keep(kept[8], 8)
    assert [memory.free for memory in kept.values()] == [False, True, False, False, False]


def test_clearing_frees_all():
    spare, memory = SpareMemory(100), [Memory(), Memory()]
    for each in memory:
        spare.keep(each, 8)
    spare.clear()
    assert all(each.free for each in memory) and spare.take(8) is None


def test_an_executor_takes_memory_again_and_keeps_the_account(one_device):
    executor = open_device(one_device)
    before = executor.memory.held
    first = executor.upload(np.arange(7_003, dtype=np.int32))
    memory = first.memory
    first.release()
    assert executor.memory.held == before
    second = executor.allocate(7_003 * 4)
    assert second.memory is memory and second.serial != first.serial and second.itemsize == 0
    assert executor.memory.held == before + 7_003 * 4
    second.release()
    second.release()
    assert executor.memory.held == before


def test_the_tables_of_a_map_serve_the_next_one(one_device, monkeypatch):
    executor, made = open_device(one_device), []
    x = np.random.default_rng(1).standard_normal((1000, 80)).astype(np.float32)
    pyedmcl.xmap(x, E=5, device=one_device)
    new = type(executor)._new_memory
    monkeypatch.setattr(type(executor), "_new_memory", lambda self, nbytes: made.append(nbytes) or new(self, nbytes))
    pyedmcl.xmap(x, E=5, device=one_device)
    assert made == []


def test_what_is_spare_is_freed_before_the_driver_is_out_of_memory(one_device, monkeypatch):
    executor = open_device(one_device)
    executor.allocate(12_345).release()
    tries = []

    class Refusing:
        mem_flags = executor.cl.mem_flags

        @staticmethod
        def Buffer(*arguments):  # noqa: N802 - the name that PyOpenCL uses
            tries.append(arguments)
            if len(tries) == 1:
                raise real.Error("MEM_OBJECT_ALLOCATION_FAILURE")
            return real.Buffer(*arguments)

    real = executor.cl
    monkeypatch.setattr(executor, "cl", Refusing)
    executor.allocate(54_321).release()
    assert len(tries) == 2 and executor._spare.take(12_345) is None


@pytest.mark.parametrize("kept", [True, False])
def test_a_simulator_that_watches_memory_gets_new_one(one_device, kept):
    from dataclasses import replace

    from pyedmcl.device.quirks import quirks_for

    info = open_device(one_device).info
    assert quirks_for(info if kept else replace(info, kind="simulator")).reuse_buffers is kept


def kept(nbytes, use):
    return BufferSet(a=KeptBuffer(DeviceBuffer(Memory(), nbytes, use), b"known"))


def test_a_set_of_buffers_serves_one_call_of_its_shape_at_a_time():
    use = MemoryUse()
    sets, first = BufferSets(1000, use), kept(100, use)
    sets.keep("shape", first)
    assert use.held == 0 and sets.take("another shape") == {}
    assert sets.take("shape") is first and use.held == 100
    assert sets.take("shape") == {}


def test_sets_that_wait_longest_go_first_and_large_ones_at_once():
    use = MemoryUse()
    sets, made = BufferSets(1000, use), [kept(nbytes, use) for nbytes in (400, 400, 500, 501)]
    memory = [each["a"].buffer.memory for each in made]
    for number, each in enumerate(made):
        sets.keep(number, each)
    assert [each.free for each in memory] == [True, False, False, True] and use.held == 0
    sets.clear()
    assert all(each.free for each in memory) and use.held == 0 and sets.take(2) == {}
