"""How the kernels of an exported text are called: what the SPEC says, or the formulas of all launches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..codegen.launches import Launch
from ..codegen.spec import KernelSpec
from ..codegen.usage import Usage
from ..device.slots import Slot
from ..kernels.argument_meanings import FREE, argument_meaning

Entries = Mapping[str, Sequence[Slot]]


def usages_of(spec: KernelSpec, values: Mapping[str, Any], entries: Entries) -> dict[str, Usage]:
    """Entry point to its usage.

    Parameters
    ----------
    spec : KernelSpec
    values : mapping
        What the text is made for.
    entries : mapping
        Entry points of the text to their arguments.
    """
    if spec.usage is not None:
        return {spec.name: spec.usage(values)}
    return {entry: _of_launch(spec.name, entry, spec.launch(entry, values), slots) for entry, slots in entries.items()}


def _of_launch(kernel: str, entry: str, launch: Launch, slots: Sequence[Slot]) -> Usage:
    meanings = {slot.name: argument_meaning(kernel, entry, slot.name) for slot in slots}
    work_items = launch.work_items
    if launch.local_size is None:
        work_items = (f"round_up({work_items[0]}, 64)", *work_items[1:])
    return Usage(
        problem={name: meanings[name] if name in meanings else FREE[name] for name in sorted(launch.names)},
        derived={}, meanings=meanings, elements=launch.elements, work_items=work_items, local_size=launch.local_size,
    )  # fmt: skip
