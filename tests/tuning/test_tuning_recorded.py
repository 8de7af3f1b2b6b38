"""A job that is continued keeps the parameters that it began with, whatever has been tuned since."""

from __future__ import annotations

import json

import numpy as np
import pytest
from device_helpers import INTEL
from tuning_helpers import run

import pyedmcl
from pyedmcl.device.select import open_device
from pyedmcl.errors import Interrupted, StoreError
from pyedmcl.jobs import open_store
from pyedmcl.jobs.records import write_tuning
from pyedmcl.kernels import spec
from pyedmcl.tuning import defaults
from pyedmcl.tuning.database import Database
from pyedmcl.tuning.parameters import keeping, source

pytestmark = pytest.mark.usefixtures("data_dir")

GIVEN = {"dtype": "float32", "k": 4, "columns": 40}
SIZES = {"rows": 300, "targets": 40}


def tune(info, **other):
    """Other parameters of the lookup become known."""
    defaults = source.parameters(spec("lookup"), GIVEN, info, SIZES).parameters
    with source.watching() as asked:
        source.parameters(spec("lookup"), GIVEN, info, SIZES)
    (question,) = asked.values()
    run(Database(), question.key(), {**defaults, **other}, final=True)
    source.forget()
    return {**defaults, **other}


def test_answers_are_kept_and_given_again(one_device):
    info = open_device(one_device).info
    answers = {}
    with source.mode("cached"), keeping(answers):
        first = source.parameters(spec("lookup"), GIVEN, info, SIZES)
    assert first.grade == "default"
    answers = json.loads(json.dumps(answers))
    tuned = tune(info, row_lanes=4)
    with source.mode("cached"):
        assert source.parameters(spec("lookup"), GIVEN, info, SIZES).parameters == tuned
        with keeping(answers):
            again = source.parameters(spec("lookup"), GIVEN, info, SIZES)
            other = source.parameters(spec("lookup"), {**GIVEN, "k": 5}, info, SIZES)
        assert (again.grade, dict(again.parameters)) == ("recorded", dict(first.parameters))
        assert other.grade == "exact", "what was not asked before is looked up"
        assert len(answers) == 2
        with keeping(answers), source.using(lookup={"row_lanes": 4}):
            assert source.parameters(spec("lookup"), GIVEN, info, SIZES).grade == "forced"
        assert answers[next(iter(answers))] == dict(first.parameters)


def test_recorded_parameters_that_failed_are_looked_up_anew(one_device):
    info = open_device(one_device).info
    answers = {}
    with keeping(answers):
        first = source.parameters(spec("lookup"), GIVEN, info, SIZES)
        with source.watching() as asked:
            source.parameters(spec("lookup"), GIVEN, info, SIZES)
        key = next(iter(asked.values())).key()
        source.knowledge.distrust(key, first.parameters)
        source.ask_anew()
        assert source.parameters(spec("lookup"), GIVEN, info, SIZES).grade == "default"


def test_a_continued_map_has_the_bits_of_an_uninterrupted_one(one_device, tmp_path):
    rng = np.random.default_rng(2)
    x = rng.standard_normal((300, 40)).astype(np.float32).cumsum(axis=0)
    whole = pyedmcl.xmap(x, E=3, out=tmp_path / "whole", device=one_device)

    def stop(done, total, unit):
        if 0 < done < total:
            raise KeyboardInterrupt

    with pytest.raises(Interrupted):
        pyedmcl.xmap(x, E=3, out=tmp_path / "cut", device=one_device, progress=stop)
    stored = json.loads((tmp_path / "cut" / "rho" / "tuning.json").read_text())
    assert {json.loads(question)["kernel"] for question in stored["content"]} >= {"knn", "lookup"}
    tuned = tune(open_device(one_device).info, row_lanes=4, lanes=1, vectors=1)
    other = pyedmcl.xmap(x, E=3, device=one_device)
    assert other.provenance["tuning"]["lookup"][0]["parameters"] == tuned
    continued = pyedmcl.xmap(x, E=3, out=tmp_path / "cut", device=one_device)
    (used,) = continued.provenance["tuning"]["lookup"]
    assert used["grade"] == "recorded"
    assert used["parameters"] == whole.provenance["tuning"]["lookup"][0]["parameters"] != tuned
    np.testing.assert_array_equal(np.asarray(continued.rho[:]), np.asarray(whole.rho[:]))
    anew = pyedmcl.xmap(x, E=3, out=tmp_path / "cut", device=one_device, resume=False)
    assert anew.provenance["tuning"]["lookup"][0]["parameters"] == tuned


def answered(spec_name, **changes):
    """A record of parameters for the question of the tests, changed."""
    with source.watching() as asked:
        chosen = source.parameters(spec(spec_name), GIVEN, INTEL, SIZES).parameters
    (question,) = asked.values()
    return {question.text(): {**chosen, **changes}}


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"lanes": 5}, "lanes = 5 is none of"),
        ({"lanes": -1}, "lanes = -1 is none of"),
        ({"lanes": 4.0}, "lanes = 4.0 is none of"),
        ({"lanes": True}, "lanes = True is none of"),
        ({"lanes": [4]}, r"lanes = \[4\] is none of"),
        ({"lanes": "4"}, "lanes = '4' is none of"),
        ({"row_lanes": 1000}, "row_lanes = 1000 is none of"),
        ({"more": 1}, "they name"),
    ],
)
def test_recorded_parameters_that_do_not_fit_are_refused(changes, why):
    with keeping(answered("lookup", **changes)), pytest.raises(StoreError, match=why):
        source.parameters(spec("lookup"), GIVEN, INTEL, SIZES)


def test_recorded_defaults_may_be_bent():
    """To the device's groups, to narrow problems, by a limit that is not known any more: these are in no list."""
    before = answered("lookup")
    bent = defaults.defaults(spec("lookup"), GIVEN, INTEL, 2, SIZES)
    assert defaults.unfit_recorded(spec("lookup"), bent, GIVEN, INTEL, 4096, SIZES) is None
    with keeping(before):
        assert source.parameters(spec("lookup"), GIVEN, INTEL, SIZES).grade == "recorded"


@pytest.mark.parametrize("content", [b"{", b"[1]", b'{"a": 1}'])
def test_a_damaged_record_is_refused(one_device, tmp_path, content):
    x = np.random.default_rng(2).standard_normal((120, 40)).astype(np.float32)
    whole = pyedmcl.xmap(x, E=2, out=tmp_path / "map", device=one_device)
    file = tmp_path / "map" / "rho" / "tuning.json"
    written = file.read_bytes()
    file.write_bytes(content)
    (tmp_path / "map" / "rho" / "c.0.0").unlink()
    with pytest.raises(StoreError, match=r"tuning.json.*start again with resume=False"):
        pyedmcl.xmap(x, E=2, out=tmp_path / "map", device=one_device)
    file.write_bytes(written)
    again = pyedmcl.xmap(x, E=2, out=tmp_path / "map", device=one_device)
    np.testing.assert_array_equal(np.asarray(again.rho[:]), np.asarray(whole.rho[:]))


def test_an_edited_store_gives_no_other_rho(one_device, tmp_path):
    """An edit that lies within the lists passes only with its checksum; one beyond them never does."""
    x = np.random.default_rng(2).standard_normal((200, 40)).astype(np.float32)
    pyedmcl.xmap(x, E=2, out=tmp_path / "map", device=one_device)
    rho = tmp_path / "map" / "rho"
    (rho / "blocks.jsonl").write_bytes((rho / "blocks.jsonl").read_bytes().splitlines(keepends=True)[0])
    written = json.loads((rho / "tuning.json").read_text())["content"]
    for name, value in (("unroll", 5), ("wg", 1000), ("bound_share", -1)):
        edited = {question: dict(answer) for question, answer in written.items()}
        for question, answer in edited.items():
            if json.loads(question)["kernel"] == "knn":
                answer[name] = value
        (rho / "tuning.json").write_text(json.dumps(edited))
        with pytest.raises(StoreError, match="has changed since it was written"):
            pyedmcl.xmap(x, E=2, out=tmp_path / "map", device=one_device)
        write_tuning(tmp_path / "map", edited, open_store(tmp_path / "map").manifest.identity)
        with pytest.raises(StoreError, match=f"parameters of knn .* cannot be used .*{name} = {value} is none of"):
            pyedmcl.xmap(x, E=2, out=tmp_path / "map", device=one_device)
