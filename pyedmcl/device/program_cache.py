"""Compiled programs kept on disk, for runtimes that compile anew in every process.

A file holds the SHA-256 of its payload and the payload, which is the binary that the driver gave for one device. The
file name is a digest of everything the binary depends on: the text, the compiler options, the device, its driver and,
for a processor, its instruction sets. A file that is damaged or that the driver refuses is as good as none: the program
is compiled again. The folder belongs to the user (``PYEDMCL_CACHE_DIR``) and may be deleted at any time; one in which
others may write is not used.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from .. import config
from ..files import read_plain
from . import caches
from .info import DeviceInfo

_FORMAT = b"pyedmcl program 1\n"
_DIGEST_BYTES = hashlib.sha256().digest_size
_FILES_KEPT = 2000  # some 100 MB; a whole test run makes fewer


class ProgramCache:
    """Binaries of one device in the user's cache folder.

    Parameters
    ----------
    info : DeviceInfo
        The device that the binaries are for.
    """

    def __init__(self, info: DeviceInfo) -> None:
        self._device = "\0".join(
            [info.platform, info.version, info.vendor, info.name, info.driver, info.opencl_c, _instruction_sets()]
        )
        self._folder = config.current().cache_dir / "programs"

    def load(self, source: str, options: Sequence[str]) -> bytes | None:
        """The binary that was kept for this text and these options, or None."""
        if not self._folder.exists() or not caches.private(self._folder):
            return None
        with contextlib.suppress(OSError):
            data = read_plain(self._path(source, options))
            head = len(_FORMAT)
            digest, payload = data[head : head + _DIGEST_BYTES], data[head + _DIGEST_BYTES :]
            if data.startswith(_FORMAT) and hashlib.sha256(payload).digest() == digest:
                return payload
        return None

    def keep(self, source: str, options: Sequence[str], binary: bytes) -> None:
        """Keep a binary; a folder that cannot be written only means that the next process compiles again."""
        path = self._path(source, options)
        if not caches.private(self._folder):
            return
        with contextlib.suppress(OSError):
            handle, scratch = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=".tmp")
            try:
                with os.fdopen(handle, "wb") as stream:
                    stream.write(_FORMAT + hashlib.sha256(binary).digest() + binary)
                Path(scratch).replace(path)
            except BaseException:
                Path(scratch).unlink(missing_ok=True)
                raise
            self._drop_oldest()

    def _path(self, source: str, options: Sequence[str]) -> Path:
        parts = "\0".join([self._device, *options, source])
        return self._folder / f"{hashlib.sha256(parts.encode()).hexdigest()}.bin"

    def _drop_oldest(self) -> None:
        """Delete the older half where there are too many files, so that old versions do not fill the disk."""
        files = list(self._folder.glob("*.bin"))
        if len(files) <= _FILES_KEPT:
            return
        for path in sorted(files, key=lambda file: file.stat().st_mtime)[: len(files) // 2]:
            path.unlink(missing_ok=True)


@functools.cache
def _instruction_sets() -> str:
    """The processor's instruction sets: machines that share a home folder may call different processors the same."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
        return next((line for line in lines if line.startswith(("flags", "Features"))), "")
    return ""
