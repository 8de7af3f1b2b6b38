"""Tuning, and verifying what was tuned elsewhere, within the process that is about to run a job."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Any

from ..codegen.spec import KernelSpec
from ..device.info import DeviceInfo
from ..device.session import executor_for
from ..tuning.database import Database
from ..tuning.key import tuning_key
from .measure import Bench
from .outcome import Settings
from .problems import names, problem, tuned_spec
from .search import Tuning, TuningSession

log = logging.getLogger(__name__)

_SETTINGS = Settings("greedy", rounds=2, duel=5, batch=4)


def verify(
    spec: KernelSpec, specialisation: Mapping[str, Any], info: DeviceInfo, sizes: Mapping[str, int],
    parameters: Mapping[str, Any],
) -> tuple[str, str]:  # fmt: skip
    """Compare what a configuration computes with the oracle, on ragged problems like the one at hand.

    Parameters
    ----------
    spec : KernelSpec
    specialisation, sizes : mapping
        What the engine gives :func:`pyedmcl.tuning.parameters.parameters`.
    info : DeviceInfo
    parameters : mapping

    Returns
    -------
    status : str
        "ok", "wrong", "failed", or "stopped" where nothing can be said.
    why : str
    """
    case = problem(spec.name).like(specialisation, sizes, info) if spec.name in names() else None
    if case is None:
        return "stopped", "there is no tuning problem like it"
    reply = Bench(executor_for(info)).verify(case, parameters)
    return reply.status, reply.note


def tune(
    spec: KernelSpec, specialisation: Mapping[str, Any], info: DeviceInfo, sizes: Mapping[str, int], budget: float
) -> None:
    """Tune one kernel for what an engine is about to ask for, and record it in the database.

    Parameters
    ----------
    spec : KernelSpec
    specialisation, sizes : mapping
        What the engine gives :func:`pyedmcl.tuning.parameters.parameters`.
    info : DeviceInfo
    budget : float
        Seconds.
    """
    if spec.name not in names():
        log.info("the kernel %s has no tuning problem, so it cannot be tuned", spec.name)
        return
    case = problem(spec.name).like(specialisation, sizes, info)
    if case is None:
        log.info("the kernel %s has no tuning problem like %s of %s", spec.name, dict(specialisation), dict(sizes))
        return
    database = Database()
    session = TuningSession(info, database, _SETTINGS)
    backend = Bench(executor_for(info))
    until = time.monotonic() + budget
    outcome = Tuning(backend, tuned_spec(spec.name), case, session, until).run()
    own_key = tuning_key(spec, specialisation, info, sizes)
    if outcome.key is None:
        log.warning("%s could not be tuned: %s", spec.name, outcome.note)
    elif outcome.key != own_key:
        # The case is a little different, or its engine asks for several things: what was asked for is answered too.
        trial = database.start(own_key, outcome.parameters, session=session.name, case=case.text(), final=True)
        database.finish(trial, status="ok", seconds=[outcome.seconds], note="from a case like it")
