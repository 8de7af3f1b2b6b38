"""Programs that somebody waits for are told to who watches, and to nobody else."""

from __future__ import annotations

import io
import time

import numpy as np
import pytest

import pyedmcl
from pyedmcl.device.programs import Programs, watcher
from pyedmcl.errors import BuildError
from pyedmcl.launch import progress

KEYS = [(text, ()) for text in "abc"]


def compiled(text, *options):
    if text == "wrong":
        raise BuildError("no")
    return text


def told_of(work):
    seen = []
    token = watcher.set(lambda done, total: seen.append((done, total)))
    try:
        work()
    finally:
        watcher.reset(token)
    return seen


def test_each_program_is_told_of_once():
    programs = Programs(compiled, 2, time.monotonic)
    assert told_of(lambda: programs.get_ahead(KEYS)) == [(0, 3), (1, 3), (2, 3), (3, 3)]
    assert told_of(lambda: programs.get_ahead(KEYS)) == [] and told_of(lambda: programs.get(KEYS[0])) == []
    assert told_of(lambda: programs.get(("d", ()))) == [(0, 1), (1, 1)]
    assert told_of(lambda: programs.get_ahead([("wrong", ()), ("e", ())]))[-1] == (2, 2)
    with pytest.raises(BuildError):
        programs.get(("wrong", ()))
    programs.close()


def test_a_bar_shows_them_only_while_they_are_prepared(monkeypatch):
    shown = io.StringIO()
    monkeypatch.setattr("sys.stderr", shown)
    programs = Programs(compiled, 2, time.monotonic)
    with progress.bar("work") as report:
        programs.get_ahead(KEYS)
        report(1, 2, "rows")
    assert watcher.get() is None and "preparing kernels" not in shown.getvalue() and "rows" in shown.getvalue()
    programs.close()


def test_a_callback_of_the_user_hears_of_its_own_units(one_device):
    units = set()
    data = np.random.default_rng(1).random((80, 3))
    pyedmcl.xmap(data, progress=lambda done, total, unit: units.add(unit), device=one_device)
    assert units and "programs" not in units
