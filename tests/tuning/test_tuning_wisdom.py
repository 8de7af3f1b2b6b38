"""Wisdom: JSON lines that are exchanged, ignored where they are stale or bad, and graded by how near they are."""

from __future__ import annotations

import json
import runpy
from dataclasses import replace
from pathlib import Path

import pytest
from device_helpers import INTEL, NVIDIA
from tuning_helpers import KNN, SIZES, best_of, key, run

from pyedmcl.device.info import RUNTIMES
from pyedmcl.errors import BuildError, InputError
from pyedmcl.kernels import NAMES, spec
from pyedmcl.search.rates import from_values
from pyedmcl.tuning import knowledge
from pyedmcl.tuning.database import Database
from pyedmcl.tuning.parameters import source
from pyedmcl.tuning.records import MODELS, Entry, distance, family, key_from, ranked, relation

SHIPPED = sorted((Path(__file__).resolve().parents[2] / "tuning" / "wisdom").glob("*.jsonl"))


def entry(parameters=None, seconds=0.001, **changes):
    return Entry(key(**changes), parameters or {"wg": 64}, seconds)


def test_lines_survive_the_way_there_and_back():
    entries = (entry(), entry({"wg": 32}, None, rows=1000), replace(entry(rows=4000), gain=1.25))
    reading = knowledge.parse("\n".join(map(knowledge.line, entries)) + "\n\n")
    assert reading.entries == entries and not reading.bad and not reading.stale


def test_bad_lines_are_named_and_skipped():
    good = knowledge.line(entry())
    fields = json.loads(good)
    lines = [
        "not JSON", "[1]", json.dumps({**fields, "device": {"name": "x"}}), json.dumps({**fields, "parameters": [1]}),
        json.dumps({**fields, "seconds": -1}), json.dumps({**fields, "kernel": 3}),
        json.dumps({**fields, "gain": "twice"}), good,
    ]  # fmt: skip
    reading = knowledge.parse("\n".join(lines))
    assert len(reading.entries) == 1
    assert [problem.split(":")[0] for problem in reading.bad] == [f"line {n}" for n in range(1, 8)]
    why = ("no JSON", "object is needed", "compute_units", "'parameters' is [1]", "'seconds' is -1", "'kernel' is 3",
           "'gain' is 'twice'")  # fmt: skip
    assert all(words in problem for words, problem in zip(why, reading.bad, strict=True))
    assert "wisdom.jsonl, line 1: this is no JSON" in reading.problems("wisdom.jsonl")[0]


def test_lines_that_are_no_text_or_no_numbers_cost_no_others(tmp_path):
    good = knowledge.line(entry())
    odd = good.replace('"wg":64', '"wg":1e400'), good.replace('"NVIDIA H200"', '"\\ud800"'), "[" * 100_000
    assert good not in odd
    file = tmp_path / "wisdom.jsonl"
    file.write_bytes("\n".join([*odd, good]).encode() + b"\n" + good.encode().replace(b"H200", b"H\xff\xfe") + b"\n")
    reading = knowledge.read(file)
    assert [knowledge.line(one) for one in reading.entries] == [good]
    assert [problem.split(":")[0] for problem in reading.bad] == ["line 1", "line 2", "line 3", "line 5"]
    assert all("this is no JSON" in problem for problem in reading.bad)
    "\n".join(reading.problems("wisdom.jsonl")).encode()


def test_entries_of_another_text_are_ignored_with_a_message():
    stale = replace(entry(), key=replace(key(), digest="0" * 16))
    unknown = replace(entry(), key=replace(key(), kernel="gone"))
    reading = knowledge.parse("\n".join(map(knowledge.line, (stale, stale, unknown, entry()))))
    assert len(reading.entries) == 1 and reading.stale == {"predict": 2, "gone": 1}
    said = reading.problems("w.jsonl")
    assert "w.jsonl: 2 entries of the kernel predict belong to another version of it" in said[1]
    assert "'pyedmcl tune predict'" in said[1]


def test_export_and_import(tmp_path):
    mine, theirs = Database(tmp_path / "a.sqlite3"), Database(tmp_path / "b.sqlite3")
    run(mine, key(), {"wg": 64}, 1.0)
    run(mine, key(), {"wg": 32}, 2.0)
    run(mine, key(info=INTEL), {"wg": 16}, 3.0)
    run(mine, replace(key(), digest="0" * 16), {"wg": 1}, 0.1)
    entries = knowledge.export(mine)
    assert sorted(e.parameters["wg"] for e in entries) == [16, 64]
    assert [e.parameters["wg"] for e in knowledge.export(mine, device="h200")] == [64]
    assert knowledge.export(mine, ["knn"]) == []
    file = tmp_path / "wisdom.jsonl"
    file.write_text("".join(knowledge.line(e) + "\n" for e in entries))
    again = knowledge.read(file).entries
    assert (knowledge.take_in(theirs, again), knowledge.take_in(theirs, again)) == (2, 0)
    assert dict(best_of(theirs, key()).parameters) == {"wg": 64}
    run(theirs, key(), {"wg": 128}, 5.0)  # slower, but measured here
    assert dict(best_of(theirs, key()).parameters) == {"wg": 128}


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(InputError, match=r"nowhere\.jsonl cannot be read"):
        knowledge.read(tmp_path / "nowhere.jsonl")


def test_shipped_lines_are_entries():
    if not SHIPPED:
        pytest.skip("tuning/wisdom holds no file yet")
    for file in SHIPPED:
        assert file.stem in RUNTIMES, "the file is named as the runtime of its devices"
        text = file.read_text(encoding="utf-8")
        reading = knowledge.parse(text)
        assert not reading.bad and "".join(knowledge.line(one) + "\n" for one in reading.entries) == text
        assert not reading.stale, "kernels were rewritten: tune them again, or see tuning/rekey.py"
        for number, line in enumerate(text.splitlines(), start=1):
            found = key_from(json.loads(line))
            assert found.kernel in (*NAMES, *MODELS), f"{file.name}, line {number}"
            assert found.device.runtime == file.stem, f"{file.name}, line {number}"
        for found in reading.entries:
            if found.key.kernel in MODELS:
                assert from_values(found.parameters) is not None
                continue
            tunables = {tunable.name: tunable.values for tunable in spec(found.key.kernel).tunables}
            assert set(found.parameters) == set(tunables)
            assert all(found.parameters[name] in values for name, values in tunables.items())


def test_a_shipped_file_is_read_by_runtime_and_kernel(monkeypatch):
    text = "\n".join([knowledge.line(entry()), knowledge.line(Entry(key("knn"), {})), "bad"])
    monkeypatch.setattr(knowledge, "read_text", lambda folder, name: text if name == "nvidia.jsonl" else missing(name))

    def missing(name):
        raise BuildError(f"{name} is not there")

    knowledge.shipped.cache_clear()
    try:
        assert knowledge.shipped("nvidia", "predict") == (entry(),) and knowledge.shipped("amd", "predict") == ()
        assert len(knowledge.shipped("nvidia", "knn")) == 1 and len(knowledge.read_shipped("nvidia").entries) == 2
        assert len(knowledge.read_shipped("nvidia").bad) == 1
    finally:
        knowledge.shipped.cache_clear()


def test_siblings_are_of_one_family():
    for one, other in (
        ("NVIDIA H200", "NVIDIA H100 80GB HBM3"), ("NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 4070 Ti"),
        ("gfx90a", "gfx942"), ("Intel(R) Xeon(R) Platinum 8480+", "Intel(R) Xeon(R) Platinum 8380 CPU @ 2.30GHz"),
    ):  # fmt: skip
        assert family(one) == family(other)
    for one, other in (("NVIDIA H200", "NVIDIA A100-SXM4-80GB"), ("gfx90a", "gfx1100"),
                       ("NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 3090")):  # fmt: skip
        assert family(one) != family(other)


def test_relations_of_devices():
    device = key().device
    assert relation(device, device) == "same"
    assert relation(replace(device, driver="2.0", version="OpenCL 3.1"), device) == "driver"
    assert relation(replace(device, name="NVIDIA H100", compute_units=114), device) == "relative"
    assert relation(replace(device, compute_units=2), device) == "relative"
    assert relation(replace(device, name="NVIDIA T4"), device) is None
    assert relation(replace(device, runtime="pocl"), device) is None


def test_what_is_too_far_away_says_nothing():
    def knn(dims=(3,), dtype="float32", rows=1000, **more):
        return key("knn", {"dims": dims, "tau": 1, "dtype": dtype, **more}, rows=rows)

    assert distance(knn(), knn()) == 0
    assert 0 < distance(knn(), knn(rows=4000)) < distance(knn(), knn(rows=64_000))
    assert distance(knn((3,)), knn((10,))) > 0
    assert distance(knn(), knn(masked=True)) > 0
    for far in (knn(dtype="float64"), knn((2, 3))):
        assert distance(knn(), far) is None
    entries = [Entry(at, {}) for at in (knn(rows=10**6), knn((100,)), knn(masked=True, rows=64_000))]
    assert ranked(entries, knn()) == [] == ranked((), knn(), entries)
    assert len(ranked(entries, knn(rows=250_000))) == 2


def test_grades_in_their_order():
    asked = key("knn", KNN, **SIZES)
    device = asked.device
    near = key("knn", KNN, rows=4000, library=4000)
    nearer = key("knn", KNN, rows=4000, library=1000)
    other_driver, relative = replace(device, driver="0.9"), replace(device, name="NVIDIA H100")
    wanted = [
        ("exact", asked),
        ("other driver", replace(asked, device=other_driver)),
        ("other size", nearer),
        ("other size", near),
        ("other size", replace(near, device=other_driver)),
        ("same architecture", replace(asked, device=relative)),
        ("same architecture", replace(near, device=relative)),
    ]
    entries = [Entry(at, {"place": place}) for place, (_, at) in enumerate(wanted)]
    strangers = [
        Entry(replace(asked, kernel="lookup"), {}), Entry(replace(asked, digest="0"), {}),
        Entry(replace(asked, device=replace(device, name="NVIDIA T4")), {}),
    ]  # fmt: skip
    found = ranked([*reversed(entries), *strangers], asked)
    assert [(grade, e.parameters["place"]) for grade, e in found] == [(g, n) for n, (g, _) in enumerate(wanted)]
    assert [grade for grade, _ in ranked((), asked, entries)] == ["shipped"] * len(wanted)
    assert ranked(entries, key("knn", KNN, NVIDIA, rows=10**7, library=10**7)) == []


def test_the_further_away_the_more_must_have_been_gained():
    asked, near = key("knn", KNN, **SIZES), key("knn", KNN, rows=4000, library=4000)
    far = key("knn", KNN, rows=16_000, library=16_000)
    of = {"own": asked, "near": near, "far": far}
    assert [distance(at, asked) for at in of.values()] == [0, 1, 2]

    def taken(gain, **more):
        entries = [Entry(at, {"place": place}, gain=gain) for place, at in of.items()]
        return [entry.parameters["place"] for _, entry in ranked(entries, asked, **more)]

    assert taken(None) == taken(1.5) == ["own", "near", "far"]
    assert taken(1.3) == ["own", "near"]
    assert taken(1.1) == taken(1.0) == ["own"], "what was measured here, on the problem itself, is no guess"
    assert [len(ranked((), asked, [Entry(asked, {}, gain=gain)])) for gain in (0.98, 1.0, 1.1)] == [0, 1, 1]


@pytest.mark.usefixtures("data_dir")
def test_gains_are_exported_and_taken_in(tmp_path):
    at, database = key(rows=1000), Database(tmp_path / "first.sqlite3")
    run(database, at, {"wg": 64}, final=True)
    run(database, key(rows=64), {"wg": 32}, final=True)
    database.note_gains([(at, '{"wg":64}', 1.4)])
    database.note_gains([(at, '{"wg":64}', 1.25), (at, '{"wg":32}', 9.0)])  # the newest counts; the other is not used
    exported = knowledge.export(database)
    assert {entry.parameters["wg"]: entry.gain for entry in exported} == {64: 1.25, 32: None}
    assert knowledge.take_in(Database(), exported) == 2
    assert knowledge.export(Database()) == exported
    assert [entry.gain for _, entry in source.knowledge.suitable(at)] == [1.25, None]
    assert [entry.gain for _, entry in source.knowledge.suitable(key(rows=16_000))] == []


def test_gains_of_measured_lines_are_written_into_wisdom():
    at, other = key(rows=1000), key(rows=64)
    problem = {"kernel": "predict", "specialisation": json.loads(at.specialisation), "size": json.loads(at.size)}
    measured = {**problem, "runtime": NVIDIA.runtime, "device": NVIDIA.name, "default_s": 0.5,
                "configurations": [{"parameters": {"wg": 64}, "seconds": 0.4}]}  # fmt: skip
    text = "".join(knowledge.line(Entry(k, {"wg": 64})) + "\n" for k in (at, other))
    script = runpy.run_path(str(SHIPPED[0].parents[1] / "gains.py"))
    written = knowledge.parse(script["with_gains"](text, script["measured"](json.dumps(measured)))).entries
    assert [entry.gain for entry in written] == [1.25, None]
