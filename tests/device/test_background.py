"""Pieces of work that a thread does in the background: once, in order, and without keeping a process from its end."""

from __future__ import annotations

import subprocess
import sys
import threading
import time

import pytest

from pyedmcl.device import programs as module
from pyedmcl.device.programs import Background, Programs

ENDS = """
import threading
from pyedmcl.device.programs import Background
begun, go_on = threading.Event(), threading.Event()
def work(piece):
    begun.set()
    go_on.wait()
    print(piece, flush=True)
background = Background(work, lambda: 0.0)
for piece in ("first", "second", "third"):
    background.add(piece)
begun.wait()
threading.Thread(target=lambda: (threading.main_thread().join(), go_on.set())).start()
{}
"""


def test_pieces_are_done_once_and_in_order_and_failures_are_told():
    go_on, done = threading.Event(), []

    def work(piece):
        go_on.wait()
        done.append(piece)
        if piece == "bad":
            raise ValueError(piece)

    background = Background(work, lambda: 0.0)
    for piece in ("one", "one", "bad", "two", "one", "bad"):
        background.add(piece)
    go_on.set()
    background.wait()
    assert done == ["one", "bad", "two"]
    assert background.failed == {"bad"}
    background.add("one")  # whoever asks again has lost it
    background.wait()
    assert done == ["one", "bad", "two", "one"]


def test_closing_waits_for_the_piece_under_way_and_leaves_out_the_rest():
    begun, go_on, done = threading.Event(), threading.Event(), []

    def work(piece):
        begun.set()
        go_on.wait()
        done.append(piece)

    background = Background(work, lambda: 0.0)
    background.add("under way")
    begun.wait()
    background.add("waiting")
    closing = threading.Thread(target=background.close)
    closing.start()
    while background._waiting and closing.is_alive():
        time.sleep(0.001)
    go_on.set()
    closing.join()
    assert done == ["under way"]


def test_where_no_thread_is_to_be_had_a_piece_waits_for_the_next_call(monkeypatch):
    done = []
    background = Background(done.append, lambda: 0.0)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", _refuse)
        background.add("one")
    background.add("two")
    background.wait()
    assert done == ["one", "two"]


def _refuse(self):
    raise RuntimeError("can't start new thread")


def test_a_process_that_ends_waits_for_the_piece_under_way_only():
    for how in ("", "raise KeyboardInterrupt"):
        ended = subprocess.run([sys.executable, "-c", ENDS.format(how)], capture_output=True, text=True, timeout=60)
        assert ended.stdout == "first\n", ended.stderr
        assert (ended.returncode == 0) == (how == "")


# Seconds since the last use, and looks at which it is too early.
@pytest.mark.parametrize(("quiet", "waited"), [(1.0, 1), (0.25, 6)])
def test_a_piece_waits_until_there_is_time_or_for_a_minute(monkeypatch, quiet, waited):
    now, used, looks, done = [100.0], [100.0], [], threading.Event()

    def look(seconds):
        looks.append(seconds)
        now[0] += 10.0
        used[0] = now[0] - quiet

    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(threading.main_thread(), "join", look)
    background = Background(lambda piece: done.set(), lambda: used[0])
    background.add("piece")
    done.wait()
    assert len(looks) == waited


def test_a_process_that_ends_does_not_wait_for_what_has_no_time():
    code = ENDS.replace("lambda: 0.0", "lambda: float('inf')").replace("begun.wait()", "").format("")
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert ended.stdout == ""
    assert ended.returncode == 0, ended.stderr


def test_who_waits_for_the_background_need_not_leave_it_time():
    done = []
    background = Background(done.append, lambda: float("inf"))
    background.add("piece")
    background.wait()
    assert done == ["piece"]


def test_nothing_is_compiled_in_the_background_while_somebody_waits_for_a_program():
    """It would hold up the compiler, of which most drivers have one."""
    compiled, later = [], ("later", ())

    def compiler(text, options):
        if text.startswith("awaited"):
            programs.background.add(later)
            time.sleep(5 * module._LOOK)  # enough to begin
        compiled.append(text)
        return text

    programs = Programs(compiler, 2, lambda: time.monotonic() - 10 * module._QUIET)
    programs.get(("awaited alone", ()))
    programs.get_ahead([(f"awaited {each}", ()) for each in "ab"])
    assert later[0] not in compiled
    programs.background.wait()
    assert compiled[-1] == later[0]
    programs.close()
