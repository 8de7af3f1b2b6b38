"""What pyedmcl asks of a cluster engine: ``submit``, and futures. What one of them offers beyond that is used here."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from ..errors import ClientError, InputError, shown
from .worker import Message, compute


class Pool(Protocol):
    """Workers to which tasks can be given."""

    def submit(self, task: Message, name: str, handed: Any = None) -> Any:
        """Have a worker do a task; gives a future. ``name`` is shown where people look on."""

    def result(self, future: Any, seconds: float) -> Any:
        """What a task gave whose future is finished; TimeoutError where it is not here within this time."""

    def workers(self) -> int | None:
        """How many tasks can be done at the same time now; None where nothing tells."""

    def hand_out(self, file: Path) -> Any:
        """What has to go with each task so that its worker gets the content of a file.

        Raises
        ------
        ClientError
            There is no way but the file.
        """


def pool_of(client: Any) -> Pool:
    """The workers of a ``client``.

    Raises
    ------
    InputError
        It has no ``submit``.
    """
    if not callable(getattr(client, "submit", None)) or isinstance(client, type):
        raise InputError(
            f"client={shown(client)}: a dask.distributed.Client, an Executor of concurrent.futures, or another object "
            "whose submit(function, *arguments) gives a future is needed"
        )
    if type(client).__module__.partition(".")[0] == "distributed" and hasattr(client, "nthreads"):
        return DaskPool(client)
    return SubmitPool(client)


def likely_workers(client: Any) -> int:
    """How many workers a client may have, where it does not tell: this only decides how finely a job is cut."""
    for name in ("num_workers", "_max_workers"):  # mpi4py; concurrent.futures and loky
        with contextlib.suppress(Exception):
            count = getattr(client, name)
            if isinstance(count, int) and count > 0:
                return count
    return os.cpu_count() or 1


class SubmitPool:
    """Whatever has ``submit``."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def submit(self, task: Message, name: str, handed: Any = None) -> Any:
        return self._client.submit(compute, task, *([] if handed is None else [handed]))

    def result(self, future: Any, seconds: float) -> Any:
        return future.result()  # it lies here

    def workers(self) -> int | None:
        return None

    def hand_out(self, file: Path) -> Any:
        raise ClientError(
            f"the workers of client= do not see {file}: name a folder that they see, by PYEDMCL_SPOOL_DIR or as out="
        )


class DaskPool:
    """A client of dask.distributed: tasks get names for its dashboard and ask for a GPU where workers offer some."""

    def __init__(self, client: Any) -> None:
        if getattr(client, "asynchronous", False):
            raise InputError("client=: this Client is asynchronous; one whose results are waited for is needed")
        self._client = client
        self._gpus = 0

    def submit(self, task: Message, name: str, handed: Any = None) -> Any:
        more: dict[str, Any] = {"resources": {"GPU": 1}} if self._gpus else {}
        passed = [task] if handed is None else [task, handed]
        return self._client.submit(compute, *passed, key=f"pyedmcl-{name}", pure=False, **more)

    def result(self, future: Any, seconds: float) -> Any:
        return future.result(timeout=seconds)  # it may lie with a worker, and die with it

    def workers(self) -> int:
        """GPUs that workers offer as the resource of this name, else threads."""
        ask: Callable[..., Any] = self._client.scheduler_info
        try:
            workers = ask(n_workers=-1)["workers"]  # since 2025 it tells of a few otherwise
        except TypeError:
            workers = ask()["workers"]
        self._gpus = int(sum(worker.get("resources", {}).get("GPU", 0) for worker in workers.values()))
        return self._gpus or sum(worker["nthreads"] for worker in workers.values())

    def hand_out(self, file: Path) -> Any:
        """Dask takes the content to each worker once, from one to the other, and keeps it there for the job."""
        (handed,) = self._client.scatter([file.read_bytes()])
        return handed
