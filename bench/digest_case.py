"""What a case of digests.py is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Case:
    """A call of a public function.

    Attributes
    ----------
    label : str
        Names it among the cases of its function.
    given : tuple
    options : mapping
        A Path stands for a file or folder of that name in a folder that is made for this call.
    memory : int, optional
        Bytes of device memory that may be used, so that the work is cut into several blocks.
    gpu : bool
        Only GPUs take the way through the code that this case is for; a processor would need long.
    """

    label: str
    given: tuple[Any, ...]
    options: dict[str, Any]
    memory: int | None = None
    gpu: bool = False


def case(label: str, *given: Any, memory: int | None = None, gpu: bool = False, **options: Any) -> Case:
    return Case(label, given, options, memory, gpu)
