"""What tests of jobs share: a store, series, and a Dask cluster for each file of tests of ``client=``."""

import pytest
from store_helpers import finish

from pyedmcl.simulate import coupled_maps


@pytest.fixture
def path(tmp_path):
    return tmp_path / "out.zarr"


@pytest.fixture
def finished(path):
    """A store in which all blocks are."""
    return finish(path)


@pytest.fixture(scope="session")
def values():
    return coupled_maps(n_series=23, n_steps=300).values


@pytest.fixture
def small_blocks(monkeypatch):
    """A store has a block for each series."""
    monkeypatch.setattr("pyedmcl.crossmap.xmap.default_block_rows", lambda *_: 1)


def dask_client():
    distributed = pytest.importorskip("distributed")
    import dask

    # Half as many deaths as by default, so that the test of them takes half as long.
    dask.config.set({"distributed.scheduler.allowed-failures": 1})
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None)
    return distributed.Client(cluster)


# Not for the session: a cluster that waits keeps its processes and this one busy with ticks, a tenth of a core.
@pytest.fixture(scope="module")
def dask():
    client = dask_client()
    yield client
    client.shutdown()
