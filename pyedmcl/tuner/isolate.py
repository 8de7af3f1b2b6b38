"""Configurations are tried in processes of their own, so that one that crashes or hangs takes nothing with it.

Several processes compile at the same time; only one is asked to run something at any moment. The parent watches: who
does not answer in time is killed and replaced.
"""

from __future__ import annotations

import faulthandler
import os
import pickle
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from .. import config
from ..errors import PyedmclError
from ..tuning.key import canonical
from .measure import Bench, Parameters, Reply
from .problem import TuningCase

START_SECONDS = 60.0
_ORPHAN_SECONDS = 30.0
_POLL_SECONDS = 0.2
_TAIL = 600


class _Worker:
    """One child process. Requests and replies are pickled, one after the other."""

    def __init__(self, command: Sequence[str]) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  closed with the worker
        # In a session of its own, Ctrl-C reaches the parent only, which then ends the children in order.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, start_new_session=True,
            env=config.child_environment(),
        )  # fmt: skip
        self._replies: queue.Queue[Reply | None] = queue.Queue()
        self.prepared: set[str] = set()
        self.answered = False
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        try:
            while True:
                self._replies.put(pickle.load(self._process.stdout))
        except (EOFError, pickle.UnpicklingError):  # it ended, perhaps within an answer
            self._replies.put(None)

    def send(self, request: dict[str, Any] | None) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(pickle.dumps(request))
            self._process.stdin.flush()
        except OSError:
            pass  # it is gone: the reply will say so

    def reply(self, seconds: float) -> Reply | None:
        """The reply to the request, a "failed" one if the process ended; None after ``seconds``."""
        try:
            reply = self._replies.get(timeout=max(seconds, 0.0))
        except queue.Empty:
            return None
        self.answered = self.answered or reply is not None
        return reply or Reply("failed", note=self._obituary())

    @property
    def gone(self) -> bool:
        return self._process.poll() is not None

    def _obituary(self) -> str:
        code = self._process.wait()
        try:
            how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        except ValueError:
            how = f"ended with code {code}"
        try:
            size = self._errors.seek(0, os.SEEK_END)
            self._errors.seek(max(size - _TAIL, 0))
            said = self._errors.read().decode(errors="replace").strip()
        except (OSError, ValueError):
            said = ""
        return f"the process {how}" + (f": {said}" if said else "")

    def end(self, *, kill: bool = False) -> None:
        """Let the process end, or end it."""
        assert self._process.stdin is not None
        if not kill:
            self.send(None)  # else it would think that we were killed
            try:
                self._process.stdin.close()
                self._process.wait(2.0)
            except (OSError, subprocess.TimeoutExpired):
                pass
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        self._errors.close()


class Workers:
    """A :class:`~pyedmcl.tuner.outcome.Backend` of several processes on one device, for the length of a ``with`` block.

    Parameters
    ----------
    command : sequence of str
        What to start; it must call :func:`serve`. The device and a folder are added as arguments.
    device : str
        Which device, as for :func:`pyedmcl.device.select.select`.
    count : int
        Processes.
    compile_seconds, run_seconds : float
        Who takes longer is hanging.

    Attributes
    ----------
    until : float
        Moment (of ``time.monotonic``) from which on requests are stopped.
    """

    def __init__(
        self, command: Sequence[str], device: str, *, count: int, compile_seconds: float, run_seconds: float
    ) -> None:
        self.compile_seconds, self.run_seconds, self.until = compile_seconds, run_seconds, float("inf")
        self._folder = tempfile.TemporaryDirectory(prefix="pyedmcl-tune-")
        self._command = [*command, device, self._folder.name]
        self._workers: list[_Worker | None] = [None] * max(count, 1)
        self._home: dict[str, int] = {}  # configuration to the process that has compiled it

    def __enter__(self) -> Workers:
        for place in range(len(self._workers)):  # the later ones get ready while the first works
            self._ready(place)
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        """End all processes; after an error at once, whatever they do."""
        for worker in self._workers:
            if worker is not None:
                worker.end(kill=kind is not None)
        self._folder.cleanup()

    def describe(self, case: TuningCase, parameters: Parameters) -> Reply:
        return self._one("describe", case, parameters)

    def prepare(self, case: TuningCase, configurations: Sequence[Parameters]) -> list[Reply]:
        return self._ask("prepare", case, configurations, range(len(self._workers)))

    def attempt(self, case: TuningCase, parameters: Parameters) -> Reply:
        return self._one("attempt", case, parameters)

    def verify(self, case: TuningCase, parameters: Parameters) -> Reply:
        return self._one("verify", case, parameters)

    def sample(self, case: TuningCase, parameters: Parameters, *, together: bool = False) -> Reply:
        return self._ask("sample", case, [parameters], [0])[0] if together else self._one("sample", case, parameters)

    def _one(self, do: str, case: TuningCase, parameters: Parameters) -> Reply:
        return self._ask(do, case, [parameters], [self._home.get(_name(case, parameters), 0)])[0]

    def _ask(
        self, do: str, case: TuningCase, configurations: Sequence[Parameters], places: Sequence[int]
    ) -> list[Reply]:
        """Replies to a request about each configuration, from whichever of the processes at ``places`` is free."""
        waiting = deque(enumerate(configurations))
        replies: dict[int, Reply] = {}
        busy: dict[int, tuple[int, float]] = {}
        while waiting or busy:
            for place in places:
                if waiting and place not in busy:
                    number, parameters = waiting.popleft()
                    if do == "prepare":
                        self._home[_name(case, parameters)] = place
                    busy[place] = number, self._send(place, do, case, parameters)
            for place, (number, limit) in list(busy.items()):
                pause = 0.0 if len(busy) > 1 else _POLL_SECONDS
                reply = self._take(place, limit, min(pause, max(limit - time.monotonic(), 0.0)))
                if reply is not None:
                    replies[number] = reply
                    del busy[place]
                    if reply.status == "ok":
                        self._ready(place).prepared.add(_name(case, configurations[number]))
            if len(busy) > 1:
                time.sleep(0.005)
        return [replies[number] for number in range(len(configurations))]

    def _ready(self, place: int) -> _Worker:
        worker = self._workers[place]
        if worker is None or worker.gone:
            if worker is not None:
                worker.end(kill=True)
            worker = self._workers[place] = _Worker(self._command)
        return worker

    def _send(self, place: int, do: str, case: TuningCase, parameters: Parameters) -> float:
        """Send a request; returns the moment at which its process is hanging."""
        worker = self._ready(place)
        seconds = self.run_seconds if do in ("attempt", "sample", "verify") else 0.0
        # Who has not compiled it yet (a replaced process, other shapes) does so first.
        if do in ("prepare", "describe", "verify") or _name(case, parameters) not in worker.prepared:
            seconds += self.compile_seconds
        if do == "verify":  # it compiles and runs several problems
            seconds *= 3.0
        seconds += 0.0 if worker.answered else START_SECONDS
        worker.send({"do": do, "case": case, "parameters": parameters, "seconds": seconds + _ORPHAN_SECONDS})
        return time.monotonic() + seconds

    def _take(self, place: int, limit: float, seconds: float) -> Reply | None:
        """A reply that is there within ``seconds``; a killed one's where it is late; else None."""
        worker = self._workers[place]
        assert worker is not None
        reply = worker.reply(seconds)
        if reply is None:
            now = time.monotonic()
            if now < min(limit, self.until):
                return None
            hung = Reply("hung", note="no answer in time: its process was ended")
            reply = hung if now >= limit else Reply("stopped", note="the time was up")
            worker.end(kill=True)
            self._workers[place] = None
        elif worker.gone:
            self._workers[place] = None
        return reply


def _name(case: TuningCase, parameters: Parameters) -> str:
    return f"{case.text()} {'default' if parameters is None else canonical(parameters)}"


def serve(make: Callable[[], Bench]) -> bool:
    """Answer requests until there are no more; what a child process does. Whether it was told that this is the end.

    Whatever else is written to standard output goes to standard error.

    Parameters
    ----------
    make : Callable
        Opens the device; called before the first request is answered.
    """
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # drivers print
    bench: Bench | None = None
    failure = ""
    while True:
        try:
            request = pickle.load(sys.stdin.buffer)
        except (EOFError, pickle.UnpicklingError):
            return False
        if request is None:
            return True
        # Should the parent be gone, nobody else would end a process that hangs.
        faulthandler.dump_traceback_later(request["seconds"], exit=True)
        if bench is None and not failure:
            try:
                bench = make()
            except PyedmclError as error:
                failure = str(error)
        if bench is None:
            reply = Reply("failed", note=failure)
        else:
            do, case, parameters = request["do"], request["case"], request["parameters"]
            reply = bench.prepare(case, [parameters])[0] if do == "prepare" else getattr(bench, do)(case, parameters)
        faulthandler.cancel_dump_traceback_later()
        replies.write(pickle.dumps(reply))
        replies.flush()
