"""What is wrong with tuned parameters, and how to mend it."""

from __future__ import annotations

import os
from pathlib import Path

from .. import config
from ..device.doctor import Finding
from ..device.info import RUNTIMES
from . import wisdom
from .bars import stored as stored_bars
from .database import Database, default_path


def diagnose() -> list[Finding]:
    """Findings on the database, its folder and the shipped wisdom; a database that cannot be used is set aside."""
    asked = default_path()
    exists = asked.exists()
    database = Database()
    trials = database.trials()
    findings = [Finding("ok", f"{database.path}, trials: {len(trials):,}" if exists else f"{asked}: not there yet", "")]
    findings += [Finding("error", problem, "") for problem in database.problems]
    state = database.check() if database.path.exists() else "ok"
    if state != "ok":
        findings.append(Finding("error", f"{database.path} is damaged: {state}", "rename or remove it"))
    for path in sorted(asked.parent.glob("*.unusable-*")):
        findings.append(Finding("warning", f"{path} was set aside and is not read", "remove it if nobody needs it"))
    findings += _folder(asked.parent)
    idle = len(database.idle(trials))
    if idle:
        findings.append(Finding("warning", f"trials of kernels that have changed, or of rates measured anew: {idle:,}",
                                "pyedmcl db prune"))  # fmt: skip
    lost = sum(trial.status == "started" and trial.barring for trial in trials)
    if lost:
        findings.append(Finding("warning", f"trials that ended with their process, to be skipped: {lost:,}", ""))
    for bar in stored_bars(database):
        findings.append(Finding("warning", f"kept away by hand: {bar} ({bar.why or 'no reason was given'})",
                                f"pyedmcl db unbar {bar.id}"))  # fmt: skip
    for device, kernel, most, note in database.limits():
        findings.append(
            Finding("warning", f"{kernel} gets at most {most} work-items on the device {device}, which refused more "
                    f"({note.partition('. ')[0]})", "a newer driver may do better")
        )  # fmt: skip
    for runtime in RUNTIMES:
        findings += _shipped(runtime)
    findings.append(Finding("ok", f"mode {config.current().tune!r}", ""))
    return findings


def _folder(folder: Path) -> list[Finding]:
    while not folder.exists() and folder.parent != folder:
        folder = folder.parent
    if folder.is_dir() and os.access(folder, os.W_OK):
        return []
    return [Finding("error", f"{folder} cannot be written", "set PYEDMCL_DATA_DIR to a folder that can")]


def _shipped(runtime: str) -> list[Finding]:
    reading = wisdom.read_shipped(runtime)
    name = f"tuning/wisdom/{runtime}.jsonl"
    findings = [Finding("warning", problem, "") for problem in reading.problems(name)]
    if reading.entries:
        findings.append(Finding("ok", f"{name}: {len(reading.entries):,} entries", ""))
    return findings
