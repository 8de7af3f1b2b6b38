"""``--client``: the workers of a Dask scheduler compute what a command asks for."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from pyedmcl.cli.app import app
from pyedmcl.simulate import coupled_maps


def run(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "data.npy"
    np.save(path, coupled_maps(n_series=5, n_steps=300).values)
    return path


def test_a_scheduler_by_its_address(table, one_device):
    distributed = pytest.importorskip("distributed")
    words = ["embed-dimension", str(table), "--E-max", "5", "--device", one_device, "--json"]
    alone = json.loads(run(*words).stdout)
    with distributed.LocalCluster(n_workers=1, processes=False, dashboard_address=None, protocol="tcp") as cluster:
        there = run(*words, "--client", cluster.scheduler_address)
        keys = {str(entry[0]) for entry in cluster.scheduler.transition_log}
    assert there.exit_code == 0 and json.loads(there.stdout) == alone
    assert any(key.startswith("pyedmcl-embeddimension-") for key in keys)


@pytest.mark.parametrize("address", ["nowhere", "head:8786", "tcp://head", ""])
def test_what_is_no_address(table, address):
    found = run("embed-dimension", str(table), "--client", address)
    assert found.exit_code == 3 and "tcp://head:8786" in found.stderr


def test_nobody_answers(table, monkeypatch):
    distributed = pytest.importorskip("distributed")

    def nobody(*_, **__):
        raise OSError("Timed out trying to connect")

    monkeypatch.setattr(distributed, "Client", nobody)
    found = run("embed-dimension", str(table), "--client", "tcp://127.0.0.1:9")
    assert found.exit_code == 6 and "no Dask scheduler answers there" in found.stderr
