"""Workers of a cluster for commands: ``--client``."""

from __future__ import annotations

import contextlib
import importlib
import re
from collections.abc import Iterator
from typing import Any

from ..errors import ClientError, InputError, missing_extra

_SECONDS = 30


@contextlib.contextmanager
def client_at(address: str | None) -> Iterator[Any]:
    """A client of the Dask scheduler at an address, while the block lasts; None for None.

    Raises
    ------
    InputError
        It is no address.
    MissingExtraError
        Dask is not installed.
    ClientError
        Nobody answers there.
    """
    if address is None:
        yield None
        return
    if not re.fullmatch(r"(tcp|tls|ws|wss|ucx)://[^/\s]+:\d+", address):
        raise InputError(f"--client {address}: the address of a Dask scheduler is needed, such as tcp://head:8786")
    try:
        distributed: Any = importlib.import_module("distributed")
    except ImportError as error:
        raise missing_extra("distributed", "dask", "--client") from error
    try:
        client = distributed.Client(address, timeout=_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ClientError(f"--client {address}: no Dask scheduler answers there ({error})") from error
    with client:
        yield client
