"""What a public call says of itself: provenance of one shape, progress where it is asked for, tracebacks and warnings
that begin at the caller's line."""

from __future__ import annotations

import inspect
import subprocess
import sys
import traceback
import warnings

import numpy as np
import pandas
import pytest

import pyedmcl
from pyedmcl.errors import InputError
from pyedmcl.files import read_series
from pyedmcl.functions import FUNCTIONS
from pyedmcl.simulate import coupled_maps

VALUES = coupled_maps(n_series=4, n_steps=400).values.astype(np.float32)
FIRST = ["data", "seed", "command", "version", "versions", "function", "arguments"]


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "maps.csv"
    pandas.DataFrame(VALUES, columns=list("abcd")).to_csv(path, index=False)
    return path


def test_provenance_begins_with_what_was_asked_and_ends_with_kernels(table, one_device):
    series = read_series(table)
    found = pyedmcl.xmap(series, E=3, device=one_device).provenance
    names = list(found)
    assert names[: len(FIRST)] == FIRST
    assert names.index("device") < names.index("kernels") < names.index("tuning") < names.index("parameters")
    reading = found["reading"]["data"]
    assert reading["source"] == str(table) and reading["series"] == list(series.names)
    assert found["data"] == {
        "data": {"file": str(table), "rows": 400, "series": 4, "digest": read_series(table).digest()}
    }
    assert found["function"] == "xmap" and found["arguments"]["E"] == 3 and found["command"] is None
    assert found["versions"] == {"python": sys.version.split()[0], "numpy": np.__version__}


def test_chosen_columns_keep_their_file(table, one_device):
    found = pyedmcl.xmap(read_series(table), E=3, columns=["a", "b"], device=one_device).provenance["data"]["data"]
    assert found["file"] == str(table) and found["series"] == 2


def test_a_seed_that_was_drawn_is_named(one_device):
    result = pyedmcl.ccm(VALUES[:, 0], VALUES[:, 1], E=3, lib_sizes=[30, 60], sample=5, device=one_device)
    assert result.provenance["seed"] == result.seed
    assert set(result.provenance["data"]) == {"x", "y"}
    assert result.provenance["arguments"] == {"E": 3, "lib_sizes": [30, 60], "sample": 5}


def test_recurrence_has_the_same_shape(one_device):
    found = pyedmcl.rqa(VALUES[:, 0], radius=0.1, device=one_device).provenance
    assert list(found)[: len(FIRST)] == FIRST
    batch = pyedmcl.rqa_batch([VALUES[:100, 0]], radius=0.1, device=one_device).provenance
    assert batch["data"]["series"]["rows"] == 100 and batch["function"] == "rqa_batch"


def test_a_result_that_is_opened_again_has_the_same_shape(tmp_path, one_device):
    made = pyedmcl.xmap(VALUES, E=3, out=tmp_path / "map.zarr", device=one_device).provenance
    again = pyedmcl.open_xmap(tmp_path / "map.zarr").provenance
    assert list(again)[: len(FIRST)] == FIRST
    assert again["data"]["data"]["digest"] == made["data"]["data"]["digest"]
    assert again["arguments"].items() >= {"E": 3, "tau": 1}.items()
    assert again["kernels"] == made["kernels"]


def test_a_command_line_is_named(table, tmp_path):
    out = tmp_path / "forecast.edm"
    script = (
        "import sys; sys.argv = ['pyedmcl', 'devices', '--json']\n"
        "from pyedmcl.cli import app\n"
        "app.run = lambda work, *_: work and 0\n"
        "try: app.main()\nexcept SystemExit: pass\n"
        "from pyedmcl.call import described_call\nprint(described_call()['command'])"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert said == "pyedmcl devices --json\n" and not out.exists()


def test_progress_true_shows_lines_where_there_is_no_terminal(one_device, capsys):
    pyedmcl.xmap(VALUES, E=3, progress=True, device=one_device)
    assert "xmap: 4 of 4 series" in capsys.readouterr().err
    pyedmcl.xmap(VALUES, E=3, progress=False, device=one_device)
    assert capsys.readouterr().err == ""


def test_every_job_takes_progress():
    without = {
        name for name in FUNCTIONS
        if "device" in inspect.signature(getattr(pyedmcl, name)).parameters
        and "progress" not in inspect.signature(getattr(pyedmcl, name)).parameters
    }  # fmt: skip
    assert without == {"kernel_source"}, "it computes nothing"


def test_a_traceback_goes_from_the_caller_to_the_function():
    with pytest.raises(InputError) as caught:
        pyedmcl.xmap(VALUES, E=0)
    places = [(frame.filename, frame.name) for frame in traceback.extract_tb(caught.tb)]
    assert places[0][0] == __file__
    assert places[2][1] == "xmap", "one frame at most is not the function"
    assert not any("parameters.py" in file for file, _ in places)


def test_an_argument_that_there_is_not_is_told_at_the_line_of_the_caller():
    with pytest.raises(TypeError, match="unexpected keyword argument 'EE'") as caught:
        pyedmcl.xmap(VALUES, EE=3)
    places = [frame.filename for frame in traceback.extract_tb(caught.tb)]
    assert places[0] == __file__ and len(places) == 2


def test_the_cause_of_an_error_is_kept():
    from pyedmcl.jobs.runner import public_function

    @public_function
    def fails(x):
        try:
            raise KeyError("a")
        except KeyError as error:
            raise InputError("x: no") from error

    with pytest.raises(InputError) as caught:
        fails(1)
    assert isinstance(caught.value.__cause__, KeyError)
    assert caught.value.__context__ is caught.value.__cause__


def test_warnings_name_the_line_of_the_caller(one_device):
    constant = VALUES.copy()
    constant[:, 1] = 1
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pyedmcl.xmap(constant, E=3, device=one_device)
        pyedmcl.check({"a": constant[:, 0]})
    assert {warning.filename for warning in caught} == {__file__}
