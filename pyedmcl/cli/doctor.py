"""``pyedmcl doctor``: why a device is not seen, and whether one that is seen computes rightly."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import InputError
from . import options
from .exits import COMPUTE
from .talk import Talk

_MOST_SECONDS = 3600


def doctor(
    self_test: Annotated[
        bool, typer.Option("--self-test", help="Compare all kernels with their oracles, and time whole calls.")
    ] = False,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE.md", help="Report of --self-test, to attach to an issue.")
    ] = Path("pyedmcl-self-test.md"),
    seconds: Annotated[float, typer.Option("--seconds", help="How long --self-test goes on beginning steps.")] = 120.0,
    device: options.Device = None,
    quiet: options.Quiet = False,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:  # fmt: skip
    """Say what keeps a device from being seen; with --self-test, whether a device computes rightly."""
    talk = Talk(quiet=quiet, as_json=json)
    if not 0 < seconds <= _MOST_SECONDS:
        raise InputError(f"--seconds {seconds:g}: a positive number up to {_MOST_SECONDS:,} is needed")
    from ..device.doctor import diagnose

    findings = diagnose()
    if not self_test:
        for finding in findings:
            mend = f"\n         to mend it: {finding.how_to_mend}" if finding.how_to_mend else ""
            talk.summary(f"{finding.level:<7}  {finding.what}{mend}")
        talk.document({"doctor": [vars(finding) for finding in findings]})
        return
    from ..device.session import open_device
    from ..files import output_path, writing
    from ..tuner.self_test import Outcome, report, summary
    from ..tuner.self_test import self_test as steps

    path = output_path(output, (".md", ".txt"), "the report")
    executor = open_device(device)
    talk.summary(f"{executor.info.id} {executor.info.name}; report: {path}")
    outcomes: list[Outcome] = []
    for outcome in steps(executor, seconds):
        outcomes.append(outcome)
        # Written anew after each step: a driver that takes the process with it leaves what was found.
        with writing(path, "the report") as stream:
            stream.write(report(executor, outcomes, findings).encode())
        talk.summary(f"{outcome.ended:<8} {outcome.name} {outcome.case}".rstrip())
    failed = [outcome for outcome in outcomes if outcome.ended == "failed"]
    talk.document({
        "device": executor.info.as_dict(), "report": str(path),
        "steps": [{"step": o.step, "name": o.name, "case": o.case, "ended": o.ended, "said": o.said,
                   "seconds": None if o.seconds != o.seconds else o.seconds} for o in outcomes],
    })  # fmt: skip
    talk.summary(f"{summary(outcomes)}. Please attach {path} to an issue")
    if failed:
        raise typer.Exit(COMPUTE)
