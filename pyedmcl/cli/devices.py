"""``pyedmcl devices``: what is there, which one would be chosen and why, and what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import DeviceNotFoundError
from . import options
from .exits import DEVICE
from .talk import Talk

if TYPE_CHECKING:
    from ..device.doctor import Finding
    from ..device.info import DeviceInfo
    from ..device.select import DeviceChoice

_HEADER = ("", "id", "name", "runtime", "kind", "units", "memory", "fp64", "driver")


def devices(
    doctor: Annotated[bool, typer.Option("--doctor", help="Explain what is missing and how to mend it.")] = False,
    device: options.Device = None,
    json: options.Json = False,
    debug: options.Debug = False,
) -> None:
    """List the devices, the one that would be chosen (with --device: for that request), and why."""
    talk = Talk(as_json=json)
    from ..device import discover

    trouble: DeviceNotFoundError | None = None
    infos: Sequence[DeviceInfo] = []
    choice: DeviceChoice | None = None
    findings: list[Finding] = []
    try:
        infos = discover.discover_every()
        choice = _choose(device, infos)
    except DeviceNotFoundError as error:
        trouble = error
    if doctor:
        from ..device.doctor import diagnose

        findings = diagnose()
    if infos:
        _table(talk, infos, choice)
    if doctor:
        _doctor(talk, findings)
    talk.document(
        {
            "devices": [_record(info, choice) for info in infos],
            "chosen": None if choice is None else choice.device.id,
            "reason": None if choice is None else choice.reason,
            "problem": None if trouble is None else str(trouble),
            **({"doctor": [vars(finding) for finding in findings]} if doctor else {}),
        }
    )
    if trouble is None:
        return
    if doctor:  # its findings have said the same, with what to do
        raise typer.Exit(DEVICE)
    raise trouble


def _choose(request: str | None, found: Sequence[DeviceInfo]) -> DeviceChoice:
    from ..device.select import select

    return select(request, devices=found)


def _record(info: DeviceInfo, choice: DeviceChoice | None) -> dict[str, Any]:
    from ..device.quirks import quirks_for

    quirks = quirks_for(info)
    return {
        **info.as_dict(),
        "chosen": choice is not None and choice.device == info,
        "unusable": quirks.unusable,
        "instead": quirks.instead or None,
    }


def _table(talk: Talk, found: Sequence[DeviceInfo], choice: DeviceChoice | None) -> None:
    from ..device.quirks import quirks_for

    rows = []
    for info in found:
        mark = "*" if choice is not None and choice.device == info else "x" if quirks_for(info).unusable else ""
        memory = f"{info.global_bytes / (1 << 30):.1f} GiB"
        driver = info.driver if info.driver in info.version else f"{info.driver} ({_short(info.version)})"
        rows.append((mark, info.id, info.name, info.runtime, info.kind, info.compute_units, memory,
                     "yes" if info.fp64 else "no", driver))  # fmt: skip
    talk.table(_HEADER, rows, right=("units", "memory"))
    if choice is not None:
        talk.summary(f"* would be chosen: {choice.device.id} ({choice.reason})")
    for info in found:
        quirks = quirks_for(info)
        if quirks.unusable:
            talk.summary(f"x {info.id} cannot be used: {quirks.unusable}. Instead: {quirks.instead}")


def _short(version: str) -> str:
    return " ".join(version.split()[:2])


def _doctor(talk: Talk, findings: Sequence[Finding]) -> None:
    talk.summary("")
    for finding in findings:
        mend = f"\n         to mend it: {finding.how_to_mend}" if finding.how_to_mend else ""
        talk.summary(f"{finding.level:<7}  {finding.what}{mend}")
