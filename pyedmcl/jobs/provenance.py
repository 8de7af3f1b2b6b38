"""Where a result comes from: devices, drivers, kernels, parameters."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..data.call import described_call, versions
from ..device.fingerprint import device_key
from ..kernels import spec

if TYPE_CHECKING:
    from ..device.info import DeviceInfo


#: Entries that a job adds and that are listed after the kernels.
_LAST = ("parameters", "grade", "neighbors", "precision", "seconds", "blocks")
#: What a record of a job is "for" that tells of its targets, and not of the search for neighbours.
PRECISION = "precision"


@functools.cache
def _digest(kernel: str) -> str:
    return spec(kernel).digest()


def entries_by_kind(searched: Iterable[Mapping[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """Records of a job by the entry of provenance that they belong to.

    Parameters
    ----------
    searched : iterable of mapping
        As a :class:`pyedmcl.jobs.blocks.Record` holds them.

    Returns
    -------
    dict
        ``neighbors``; and ``precision``, where there is any of it.
    """
    entries = [dict(entry) for entry in searched]
    choices = {"neighbors": [entry for entry in entries if entry.get("for") != PRECISION]}
    of_targets = [{name: entry[name] for name in entry if name != "for"} for entry in entries
                  if entry.get("for") == PRECISION]  # fmt: skip
    return choices | ({PRECISION: of_targets} if of_targets else {})


def origin(**more: Any) -> dict[str, Any]:
    """How a record of provenance begins, which is all of it for what no device has computed.

    Parameters
    ----------
    **more
        What the method adds; its ``arguments`` are joined with those of the call.

    Returns
    -------
    dict
        Plain data: the data (file, rows, series and digest of each argument), the seed, the command line (None in
        Python), versions, the function and its arguments; then ``more``.
    """
    from .. import __version__

    call = described_call()
    call["arguments"] = {**call["arguments"], **more.pop("arguments", {})}
    first = {name: call.pop(name) for name in ("data", "seed", "command")}
    return {**first, "version": __version__, "versions": versions(), **call, **more}


def provenance(
    infos: Sequence[DeviceInfo], kernels: Iterable[str], tuning: Mapping[str, Any], **more: Any
) -> dict[str, Any]:
    """A record that says what would be needed to get the same bits again.

    Parameters
    ----------
    infos : sequence of DeviceInfo
        The devices that worked on it. ``device``, ``device_id``, ``driver`` and ``device_key`` are of the first one,
        ``devices``, ``device_ids`` and ``drivers`` of all.
    kernels : iterable of str
        ``kernels`` holds the digest of the source of each.
    tuning : mapping
        Kernel to the parameters that it was given, see :meth:`pyedmcl.tuning.parameters.ParameterSource.record`.
    **more
        What the method adds: its parameters, what it chose.

    Returns
    -------
    dict
        Plain data: :func:`origin` with ``more``, and then devices. ``tuning`` lists, for each kernel, the tuned
        parameters that it was given and how well they are known to suit (their grade).
    """
    first = infos[0]
    last = {name: more.pop(name) for name in _LAST if name in more}
    return {
        **origin(**more),
        "device": first.name,
        "device_id": first.id,
        "driver": first.driver,
        "device_key": device_key(first).as_dict(),
        "devices": [info.name for info in infos],
        "device_ids": [info.id for info in infos],
        "drivers": [info.driver for info in infos],
        "kernels": {name: _digest(name) for name in kernels},
        "tuning": dict(tuning),
        **last,
    }
