"""No kernel reads or writes beyond its memory, races, or lets an answer depend on what nobody has written."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import portability_execute as execute
import pytest
import tally
from hypothesis import settings
from watched_calls import CALLS

from pyedmcl import kernels

#: Kernels that small calls do not launch: these sums are shared among many rows only, of one library or of one fit.
LARGE_ONLY = {"shared_sums", "smap_shared"}
#: Where Oclgrind reports values that fill a vector or the edge of a tile. No answer depends on them, as the test of
#: poisoned memory shows. "smap_knn" takes a minute.
NOT_FOLLOWED = {
    "ccm", "ccm_matrix", "rqa_cross", "rqa_rate", "rqa_neighbours", "joint_rqa", "windowed_rqa", "smap_knn",
}  # fmt: skip


def called(device, parameters, names=(), **environ):
    """Call -> (kernels, error, digest, kernels whose open launches are no groups of 64)."""
    environment = {**execute.environment("intel"), **environ}
    environment["PYTHONPATH"] += f":{execute.BENCH}"
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("watched_calls.py")), device, parameters, *names],
        env=environment, capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    lines = map(json.loads, done.stdout.splitlines())
    return {name: (built, error, digest, ragged) for name, built, _, error, digest, ragged in lines}


def test_no_answer_depends_on_memory_that_nobody_wrote(device):
    found = defaultdict(set)
    for byte in (255, 90):  # of not-a-numbers and -1, and of finite numbers
        for name, (built, error, digest, ragged) in called(device, str(byte)).items():
            assert error is None, (name, error)
            assert not ragged, "PoCL would compile them for each size"
            found[name].add(digest)
            found["kernels"] |= set(built)
    assert set(kernels.NAMES) - found.pop("kernels") == LARGE_ONLY
    assert {name for name, digests in found.items() if len(digests) > 1} == set()


@pytest.mark.parametrize(("parameters", "watch"), [
    ("default", "races"), ("gpu-unroll4-tile256", "races"), ("gpu-unroll16-tile512", "races"),
    ("gpu-unroll4-tile256", "uninitialised"),
])  # fmt: skip
def test_oclgrind_has_nothing_to_report_about_any_kernel(parameters, watch, tmp_path):
    """Accesses out of bounds are watched in every case."""
    if settings().derandomize:
        pytest.skip("of the profile long: a minute each")
    why = execute.absent("oclgrind")
    if why is not None:
        pytest.skip(why)
    names = [name for name in CALLS if watch == "races" or name not in NOT_FOLLOWED]
    log = tmp_path / "log"
    found = called("oclgrind", parameters, names, **execute.environment("oclgrind", watch, log))
    assert {name: error for name, (_, error, *_) in found.items() if error} == {}
    reports = execute.reports(log.read_text()) if log.exists() else []
    tally.count(f"calls watched for {watch}", "silent" if not reports else "reported")
    assert not reports, f"{len(reports)} reports, the first: {reports[0]}"
