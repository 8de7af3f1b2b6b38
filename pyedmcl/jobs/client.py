"""Jobs on the workers of a cluster: the runner behind ``client=``."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ..device.foreign import is_handle
from ..device.select import DeviceNames
from ..device.session import open_device
from ..errors import InputError, shown
from .answers import Hello, cancelled
from .blocks import Problem, Record
from .client_job import Job, add_tuning
from .pools import likely_workers, pool_of
from .runner import kept_told, of_job, of_one_kind
from .sinks import Sink
from .spool import spooled
from .worker import identity

if TYPE_CHECKING:
    from ..device.executor import Executor
    from ..device.info import DeviceInfo


class ClientRunner:
    """Runs jobs on the workers of a cluster engine: each computes blocks, and this process writes what they give.

    Parameters
    ----------
    client : object
        With ``submit``, see :func:`pyedmcl.jobs.pools.pool_of`.
    device : str or sequence of str, optional
        What each worker opens, by the names that hold where it runs.

    Raises
    ------
    InputError
        ``client`` is something else.
    ClientError
        No worker answers, or the first that does has another pyedmcl.
    """

    def __init__(self, client: Any, device: DeviceNames = None) -> None:
        if is_handle(device) or (isinstance(device, (list, tuple)) and any(map(is_handle, device))):
            raise InputError(f"device={shown(device)}: workers of client= open devices by name, such as 'gpu'")
        self._pool, self._device = pool_of(client), device
        self._begun = time.perf_counter()
        self._infos: dict[tuple[str, str], DeviceInfo] = {}  # by worker and device
        self._tuning: dict[str, list[dict[str, Any]]] = {}
        self._places: list[dict[str, Any]] = []
        self._kernels: tuple[str, ...] = ()  # of a job that is stored
        first = Hello(self._pool, {"identity": identity(), "device": device}).answer()
        for info in first["devices"]:
            self._infos[first["worker"], info.id] = info
        self._devices = max(self._pool.workers() or likely_workers(client), 1)

    @property
    def devices(self) -> int:
        return self._devices

    @property
    def infos(self) -> list[DeviceInfo]:
        return list(self._infos.values())

    @property
    def executor(self) -> Executor:
        name = self._device
        return open_device(name[0] if isinstance(name, (list, tuple)) else name)

    @property
    def tuning(self) -> dict[str, list[dict[str, Any]]]:
        return self._tuning

    def alike(self, kernels: Iterable[str]) -> DeviceInfo:
        """What a store says of the devices: the first worker's; see :func:`.runner.of_one_kind`."""
        self._kernels = tuple(kernels)
        return of_one_kind(self.infos, self._kernels)

    def provenance(self, kernels: Iterable[str], record: Record, **more: Any) -> dict[str, Any]:
        """Where a result comes from; see :meth:`.runner.Runner.provenance`. ``workers`` says which worked on it."""
        workers = sorted({worker for worker, _ in self._infos})
        seconds = time.perf_counter() - self._begun
        return of_job(self, self._places, kernels, record, workers=workers, seconds=seconds, **more)

    def run(self, problem: Problem, sink: Sink) -> Record:
        """Compute all blocks that the sink lacks; see :meth:`.runner.Runner.run`."""
        with kept_told(sink), spooled(problem, sink.folder) as file:
            common = {"identity": identity(), "device": self._device}
            job = Job(self._pool, problem, sink, file, self.infos[0], common, self._kernels)
            with cancelled(job.futures):
                job.work()
        for key, info in job.infos.items():
            self._infos.setdefault(key, info)
        add_tuning(self._tuning, job.tuning)
        self._places = job.places
        return job.record
