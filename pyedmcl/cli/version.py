"""What ``pyedmcl --version`` says: what a report of an error has to tell of the machine."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from importlib import metadata

from ..errors import DeviceNotFoundError

_PACKAGES = ("numpy", "pyopencl", "mako")


def versions() -> Iterator[str]:
    """Lines: ours first, then Python with packages, then devices, of which that which would be chosen is marked."""
    from .. import __version__

    yield f"pyedmcl {__version__}"
    packages = ", ".join(f"{name} {_version(name)}" for name in _PACKAGES)
    yield f"Python {platform.python_version()} on {platform.platform()}, {packages}"
    yield from _devices()


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "of unknown version"


def _devices() -> Iterator[str]:
    from ..device.discover import discover_every
    from ..device.select import select

    try:
        infos = discover_every()
        chosen = select(None, devices=infos).device
    except DeviceNotFoundError as error:
        yield f"no device: {error}"
        return
    for info in infos:
        mark = "* " if info == chosen else "  "
        yield f"{mark}{info.id} {info.name} ({info.runtime}, driver {info.driver})"
