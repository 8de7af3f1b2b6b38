"""Who holds what in a shared folder: exclusive, renewed, taken over from who is gone, whatever clocks say."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace

import pytest

from pyedmcl import config
from pyedmcl.atomic_files import write_new
from pyedmcl.errors import InputError, PyedmclWarning, StoreError, StoreWriteError
from pyedmcl.jobs import claims
from pyedmcl.jobs.blocks import Wait
from pyedmcl.jobs.claims import FOLDER, MEMBER, Holder, Member, SharedBlocks, Watch, part_of, processes, require_alone

ELSEWHERE = Holder("far-1", "far", 1, "another boot", "GPU", lifetime=60.0)


class Clock:
    """Time that passes when somebody sleeps."""

    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    found = Clock()
    for module in (claims, claims):
        monkeypatch.setattr(module, "time", found)
    return found


@pytest.fixture
def member(tmp_path):
    with Member(tmp_path) as found:
        found.enter()
        yield found


def claimed_elsewhere(folder, name, holder=ELSEWHERE, mtime=0.0):
    """What another machine has claimed, by a clock of its own."""
    (folder / FOLDER).mkdir(exist_ok=True)
    path = folder / FOLDER / name
    path.write_text(json.dumps(holder.said()))
    os.utime(path, (mtime, mtime))
    return path


def test_one_of_two_holds_a_claim(tmp_path, member):
    with Member(tmp_path) as other:
        other.enter()
        assert member.take("block-3") and not other.take("block-3") and not other.take_over("block-3")
        other.give("block-3")  # which it does not hold
        assert other.names() == {"block-3", f"member-{member.me.id}", f"member-{other.me.id}"}
        member.give("block-3")
        assert other.take("block-3")
        assert member.others() and member.alive("block-3") == replace(other.me, time=member.alive("block-3").time)
    assert member.names() == {f"member-{member.me.id}"} and not member.others()
    member.close()
    assert not (tmp_path / FOLDER).exists()


@pytest.mark.parametrize("skew", [-3600.0, 0.0, 3600.0])
def test_clocks_that_disagree_do_not_matter(tmp_path, member, clock, skew):
    """A claim that is touched lives; one that is not is stale after its lifetime: by whatever time its maker writes."""
    path = claimed_elsewhere(tmp_path, "block-1", mtime=os.stat(tmp_path).st_mtime + skew)
    for step in range(10):
        assert not member.take_over("block-1")
        clock.sleep(50.0)
        os.utime(path, (skew + step, skew + step))
    assert not member.take_over("block-1"), "it was touched since the last look"
    clock.sleep(50.0)
    assert not member.take_over("block-1")
    clock.sleep(20.0)
    assert member.take_over("block-1") and member.look("block-1")[0].id == member.me.id


def test_each_holder_has_a_lifetime_of_its_own(tmp_path, member, clock):
    claimed_elsewhere(tmp_path, "block-1", replace(ELSEWHERE, lifetime=600.0))
    claimed_elsewhere(tmp_path, "block-2", replace(ELSEWHERE, lifetime=6.0))
    (tmp_path / FOLDER / "block-3").write_text("")  # killed before it said anything
    assert not any(map(member.stale, ["block-1", "block-2", "block-3"]))
    clock.sleep(100.0)
    assert [member.stale(f"block-{i}") is not None for i in (1, 2, 3)] == [False, True, True]


def test_what_ended_on_this_machine_is_taken_over_at_once(tmp_path, member):
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    claimed_elsewhere(tmp_path, "block-1", replace(member.me, id="x", pid=ended.pid))
    claimed_elsewhere(tmp_path, "block-2", replace(member.me, id="y", pid=os.getppid()))
    assert member.me.place, "this test needs a machine that tells its boot and namespace of pids"
    assert member.take_over("block-1") and not member.take_over("block-2")


def test_of_many_who_take_over_one_wins(tmp_path, clock):
    claimed_elsewhere(tmp_path, "block-1")
    members = [Member(tmp_path) for _ in range(8)]
    assert not any(one.take_over("block-1") for one in members)
    clock.sleep(100.0)
    won, barrier = [], threading.Barrier(8)

    def contend(one):
        barrier.wait(30)
        won.append(one.take_over("block-1"))

    threads = [threading.Thread(target=contend, args=[one]) for one in members]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(won) == 1
    assert Watch(tmp_path / FOLDER).names() == {"block-1"}
    assert sorted(os.listdir(tmp_path / FOLDER)) == ["block-1"]


def test_claims_are_renewed(tmp_path, monkeypatch):
    monkeypatch.setenv("PYEDMCL_CLAIM_LIFETIME", "0.04")
    with Member(tmp_path) as member:
        member.enter()
        member.take("block-1")
        path = tmp_path / FOLDER / "block-1"
        os.utime(path, (1.0, 1.0))
        touched = threading.Event()
        for _ in range(1000):
            if path.stat().st_mtime > 1.0:
                break
            touched.wait(0.01)
        assert path.stat().st_mtime > 1.0
    monkeypatch.setenv("PYEDMCL_CLAIM_LIFETIME", "soon")
    with pytest.raises(InputError, match="PYEDMCL_CLAIM_LIFETIME='soon': a positive, finite number"):
        Member(tmp_path)


def test_who_was_suspended_and_lost_a_claim_leaves_that_of_the_other(tmp_path, member, clock):
    member.take("block-1")
    clock.sleep(100.0)
    path = claimed_elsewhere(tmp_path, "block-1")
    member.give("block-1")
    assert json.loads(path.read_text())["id"] == "far-1"


def test_the_first_one_decides(tmp_path, member):
    with Member(tmp_path) as other:
        assert member.decide("seed", 3) == 3
        assert other.decide("seed", 4) == 3


def test_what_is_written_once_without_hard_links(tmp_path, monkeypatch):
    def refused(*_):
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    assert write_new(tmp_path / "a", b"1") and not write_new(tmp_path / "a", b"2")
    monkeypatch.setattr(os, "link", refused)
    assert write_new(tmp_path / "b", b"1") and not write_new(tmp_path / "b", b"2")
    assert sorted(os.listdir(tmp_path)) == ["a", "b"] and (tmp_path / "b").read_bytes() == b"1"


def test_a_folder_that_cannot_be_written(tmp_path, monkeypatch):
    def refused(*_):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    with Member(tmp_path) as member:
        monkeypatch.setattr(claims.durable, "make_folder", refused)
        with pytest.raises(StoreWriteError, match=r"Read-only file system\. Make the folder writable, then run"):
            member.enter()
    assert not os.listdir(tmp_path)


def test_who_wants_to_be_alone_hears_of_others(tmp_path, member, clock):
    require_alone(tmp_path / "nowhere")
    with pytest.raises(StoreError, match=f"joined runs .pid {os.getpid()} on .*join them"):
        require_alone(tmp_path)
    member.withdraw()
    claimed_elsewhere(tmp_path, "member-far-1")
    before = clock.now
    require_alone(tmp_path)  # it was lost: nothing changes for its lifetime
    assert 60 < clock.now - before < 62


def test_a_member_elsewhere_is_seen_by_its_touch(tmp_path, monkeypatch, clock):
    path = claimed_elsewhere(tmp_path, "member-far-1")

    def sleep(seconds):
        clock.now += seconds
        os.utime(path, (clock.now, clock.now))

    monkeypatch.setattr(clock, "sleep", sleep)
    with pytest.raises(StoreError, match="pid 1 on far"):
        require_alone(tmp_path)


def blocks_of(member, begin, done):
    return SharedBlocks(member, "block", 8, begin, lambda: set(range(8)) - done, lambda number: number in done)


def test_blocks_are_shared_out(tmp_path, member):
    done = set()
    with Member(tmp_path) as other:
        other.enter()
        mine, theirs = blocks_of(member, 0.0, done), blocks_of(other, 0.5, done)
        assert [mine.claim() for _ in range(3)] == [0, 1, 2]
        assert [theirs.claim() for _ in range(4)] == [4, 5, 6, 7]
        assert theirs.claim() == 3
        assert isinstance(mine.claim(), Wait)
        theirs.give_back(6)
        assert mine.claim() == 6
        done |= {0, 1, 2, 6}
        for number in (0, 1, 2, 6):
            mine.done(number)
        assert isinstance(mine.claim(), Wait) and theirs.claim() is None, "it waits for nobody but itself"
        done |= {3, 4, 5, 7}
        assert mine.claim() is None


def test_blocks_of_who_is_gone_and_blocks_done_a_moment_ago(tmp_path, member, clock):
    done = set()
    claimed_elsewhere(tmp_path, "block-2")
    shared = blocks_of(member, 0.0, done)
    done |= {0, 1, 3, 4, 5, 6}
    assert shared.claim() == 7 and isinstance(shared.claim(), Wait)
    assert "block-0" not in member.names(), "what was done already is not kept"
    clock.sleep(100.0)
    assert shared.claim() == 2


def test_what_hangs_is_computed_once_more_by_one(tmp_path, member, clock, monkeypatch):
    """Its process lives and says so, but does not come to an end."""
    monkeypatch.setattr(claims, "time", clock)
    done = set()
    with Member(tmp_path) as other:
        other.enter()
        mine, theirs = blocks_of(member, 3 / 8, done), blocks_of(other, 3 / 8, done)
        for number in (3, 4, 5, 6, 7, 0, 1):
            assert mine.claim() == number
            clock.sleep(7.0)
            done.add(number)
            mine.done(number)
        path, waited = claimed_elsewhere(tmp_path, "block-2"), clock.now
        while isinstance(found := mine.claim(), Wait):
            assert isinstance(theirs.claim(), Wait)
            clock.sleep(5.0)
            os.utime(path, (clock.now, clock.now))
        assert found == 2 and 14 < clock.now - waited <= 20, "twice as long as a block"
        clock.sleep(1000.0)
        os.utime(path, (clock.now, clock.now))
        assert isinstance(theirs.claim(), Wait), "two are enough"
        mine.give_back(2)
        assert theirs.claim() == 2, "who has computed none waits for two lifetimes"
        done.add(2)
        theirs.done(2)
        assert mine.claim() is None and "block-2" in member.names() and "block-2-again" not in member.names()


def test_who_works_sees_what_is_left_behind_and_who_ends_first_need_not_wait(tmp_path, member, clock, monkeypatch):
    monkeypatch.setattr(claims, "time", clock)
    done, n, opened = set(), 40, []
    claimed_elsewhere(tmp_path, "block-30")
    slow = claimed_elsewhere(tmp_path, "block-31")
    monkeypatch.setattr(Watch, "look", lambda self, name, look=Watch.look: opened.append(name) or look(self, name))
    shared = SharedBlocks(member, "block", n, 0.0, lambda: set(range(n)) - done, lambda number: number in done)
    order = []
    for _ in range(39):
        order.append(shared.claim())
        clock.sleep(7.0)
        os.utime(slow, (clock.now, clock.now))
        done.add(order[-1])
        shared.done(order[-1])
    place = order.index(30)
    assert 2 * 60 < 7 * place < 3 * 60, "it was seen twice, a lifetime apart, once it had been there for a lifetime"
    assert sorted(order) == [number for number in range(40) if number != 31]
    assert sum(name in ("block-30", "block-31") for name in opened) < 40, "and was seldom opened"
    assert shared.claim() == 31, "it has been there for so long that nobody needs to wait for it"


def test_one_look_passes_what_others_have_done(tmp_path, member):
    """A process that has done its share does not ask of each block whether it is done."""
    done, looks = set(range(1, 900)), []

    def pending():
        looks.append(1)
        return set(range(1000)) - done

    shared = SharedBlocks(member, "block", 1000, 0.0, pending, lambda number: number in done)
    first, *others = (shared.claim() for _ in range(4))
    assert first == 0 and len(looks) == 1 and len(set(others)) == 3 and min(others) >= 900


def test_where_a_process_begins(monkeypatch):
    for name in list(os.environ):
        if name.startswith(("SLURM_", "SGE_", "LSB_", "OMPI_", "PMI_")):
            monkeypatch.delenv(name)
    assert config.part() is None and 0 <= part_of(None) < 1
    assert part_of("1/4") == 0 and part_of("4/4") == 0.75 and processes("1/4") == 4 and processes(None) == 1
    for name, value in {"ID": 7, "MIN": 5, "COUNT": 4, "STEP": 1}.items():
        monkeypatch.setenv(f"SLURM_ARRAY_TASK_{name}", str(value))
    assert config.part() == (2, 4) and part_of(None) == 0.5 and processes(None) == 4
    monkeypatch.setenv("SLURM_ARRAY_TASK_ID", "no number")
    for name, value in {"SGE_TASK_ID": 5, "SGE_TASK_FIRST": 1, "SGE_TASK_LAST": 9, "SGE_TASK_STEPSIZE": 4}.items():
        monkeypatch.setenv(name, str(value))
    assert config.part() == (1, 3)
    monkeypatch.setenv("SGE_TASK_ID", "undefined")
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "2")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "3")
    assert config.part() == (2, 3)
    for wrong in ("0/3", "4/3", "1", "a/b", "1/2/3", "-1/2", 3, True, "1/0", "²/3"):
        with pytest.raises(InputError, match="'I/N' is needed"):
            part_of(wrong)


ODD_CLAIMS = [
    b"", b"null", b"[1]", b"{", b"\xff", b"[" * 5000, b'{"lifetime": NaN, "pid": 1}',
    b'{"lifetime": 60, "pid": Infinity}',
    b'{"id": "", "host": "", "place": "", "device": "", "time": "", "pid": 1, "lifetime": 1' + b"0" * 330 + b"}",
    b'{"id": "", "host": "", "place": "", "device": "", "time": "", "pid": 1e999, "lifetime": 60}',
    b'{"id": "", "host": "", "place": "", "device": "", "time": "", "pid": 1, "lifetime": NaN}',
    b'{"id": "", "host": "", "place": "", "device": "", "time": "", "pid": 1, "lifetime": Infinity}',
]  # fmt: skip


@pytest.mark.parametrize("content", [*ODD_CLAIMS, "folder", "link", "pipe"])
def test_a_claim_that_says_nothing_goes_stale(content, tmp_path, member, clock):
    """Whatever it is: it is waited for as long as for others, and then taken over."""
    place = tmp_path / FOLDER / "setup"
    place.parent.mkdir(exist_ok=True)
    if content == "folder":
        place.mkdir()
    elif content == "link":
        place.symlink_to(tmp_path / "nothing")
    elif content == "pipe":
        os.mkfifo(place)
    else:
        place.write_bytes(content)
    assert not member.take("setup") and not member.take_over("setup")
    clock.sleep(100.0)
    assert member.take_over("setup")


@pytest.mark.parametrize("content", [b"", b"null", b"[1]", b"Infinity", b"NaN", b"{", b"1.5", b'"1"', b"[" * 5000])
def test_a_decision_that_is_damaged_is_refused(content, tmp_path, member):
    member.enter()
    (tmp_path / FOLDER / "seed").write_bytes(content)
    with pytest.raises(StoreError, match=r"seed is damaged: remove it"):
        member.decide("seed", 3)


def test_who_waits_says_for_whom_after_a_minute(tmp_path, member, clock):
    claimed_elsewhere(tmp_path, "setup")
    asked = iter([True] * 200 + [False])
    with pytest.warns(PyedmclWarning, match=r"this process waits for pid \d+ on far, which holds .*setup") as told:
        member.once("setup", lambda: next(asked), lambda: None)
    assert len(told) == 1


def test_who_is_interrupted_while_joining_leaves_the_folder_free(tmp_path, monkeypatch):
    """Wherever Ctrl-C comes, the same process can go on there."""
    for place in ("start", "__init__"):
        def stop(*given, **named):
            raise KeyboardInterrupt

        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt), Member(tmp_path) as interrupted:
            patch.setattr(threading.Thread, place, stop)
            interrupted.enter()
        require_alone(tmp_path)
    with Member(tmp_path) as another:
        another.enter()
        # Between making the file and knowing it, as an interrupt may come.
        said = json.dumps(replace(another.me, id="gone").said())
        (tmp_path / FOLDER / f"{MEMBER}gone").write_text(said)
    require_alone(tmp_path)


@pytest.mark.parametrize("after", ["open", "write"])
def test_ctrl_c_while_a_claim_is_made_leaves_no_claim(tmp_path, monkeypatch, after):
    """Also between making the file and writing who holds it, when nobody could tell whose it is."""
    real = getattr(os, after)

    def interrupted(*given, **named):
        done = real(*given, **named)
        signal.raise_signal(signal.SIGINT)
        return done

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # processes of pytest-xdist have another
    try:
        with pytest.raises(KeyboardInterrupt), Member(tmp_path) as member:
            member.enter()
            with monkeypatch.context() as patch:
                patch.setattr(os, after, interrupted)
                member.take("block-7")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    require_alone(tmp_path)


def test_what_is_not_ours_among_claims_is_left_and_told(tmp_path):
    folder = tmp_path / FOLDER
    with Member(tmp_path) as member:
        member.enter()
        (folder / "thesis.txt").write_text("mine")
        (folder / "round-1").mkdir()
        (folder / "round-1" / "part-0-1.npz").write_text("ours")
        (folder / "round-1" / "notes.txt").write_text("mine")
        (folder / "block-3").write_text("")
        with pytest.warns(PyedmclWarning, match=r"did not write, and which is left there"):
            member.settle(lambda: None)
    assert sorted(str(path.relative_to(folder)) for path in folder.rglob("*")) == [
        "round-1", "round-1/notes.txt", "thesis.txt"
    ]  # fmt: skip
