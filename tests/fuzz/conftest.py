"""The random tests: more time for each in the profile "long", and counts of cases, also from processes of xdist."""

from __future__ import annotations

from collections import Counter

import pytest
import tally

_LONG = 3600


def pytest_collection_modifyitems(config, items):
    if config.getoption("--hypothesis-profile") == "long":
        for item in items:
            item.add_marker(pytest.mark.timeout(_LONG))


def pytest_sessionfinish(session):
    if hasattr(session.config, "workeroutput"):  # a process of xdist, which can pass on plain values only
        session.config.workeroutput["tally"] = [[*case, n] for case, n in tally.COUNTS.items()]


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):
    tally.COUNTS.update(Counter({(what, outcome): n for what, outcome, n in node.workeroutput.get("tally", ())}))


def pytest_terminal_summary(terminalreporter):
    for line in tally.lines(tally.COUNTS):
        terminalreporter.write_line(line)
