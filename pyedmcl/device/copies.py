"""Copies between host and devices, counted for who wants to know where the bytes of a call go."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass
class Copies:
    """How often this process has copied, and how much.

    Attributes
    ----------
    uploads, uploaded : int
        Copies to a device, and their bytes.
    downloads, downloaded : int
        Copies from a device, and their bytes.
    """

    uploads: int = 0
    uploaded: int = 0
    downloads: int = 0
    downloaded: int = 0

    def __str__(self) -> str:
        return f"{self.uploads:,} uploads of {self.uploaded:,} bytes, {self.downloads:,} downloads of " \
               f"{self.downloaded:,} bytes"  # fmt: skip


_lock = threading.Lock()
_asked: list[Copies] = []


@contextlib.contextmanager
def counting() -> Iterator[Copies]:
    """Count the copies that this process makes from here to the end of the block, by all threads and on all devices.

    Yields
    ------
    Copies
        It grows as copies are made. Those that the device makes of its own memory are none.
    """
    copies = Copies()
    with _lock:
        _asked.append(copies)
    try:
        yield copies
    finally:
        with _lock:
            _asked[:] = [each for each in _asked if each is not copies]


def uploaded(nbytes: int) -> None:
    """Take note of a copy to a device."""
    if _asked:
        with _lock:
            for each in _asked:
                each.uploads += 1
                each.uploaded += nbytes


def downloaded(nbytes: int) -> None:
    """Take note of a copy from a device."""
    if _asked:
        with _lock:
            for each in _asked:
                each.downloads += 1
                each.downloaded += nbytes
