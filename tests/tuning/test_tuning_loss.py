"""What the look-up takes where knowledge is missing, on recorded times of the defaults and of known configurations."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path

import pytest
from device_helpers import NVIDIA
from tuning_helpers import KNN, key
from tuning_loss import gains, left_out

from pyedmcl.tuning.knowledge import read_shipped
from pyedmcl.tuning.records import Entry, ranked

SHAPE = {"dims": {"count": 1, "most": 4}, "dtype": "float32", "simplexes": 1, "tau": 1}


def on(rows, **more):
    return {"specialisation": SHAPE | more, "size": {"library": rows, "rows": rows}}


# On an H100 own trials of short problems cost half as much again as what was shipped for the right size of an H200.
LONG = {
    "kernel": "knn", "case": "long", **on(1 << 18), "units": 132, "default_s": 1.0,
    "configurations": [
        {"parameters": {"wg": 256}, "tuned_on": [on(1 << 18)], "seconds": 0.6},
        {"parameters": {"wg": 64}, "tuned_on": [on(1 << 14)], "seconds": 0.9},
        {"parameters": {"wg": 32}, "tuned_on": [on(1 << 12), on(1 << 10)], "seconds": 1.5},
    ],
}  # fmt: skip


def test_what_was_tuned_on_much_shorter_problems_is_worse_than_the_defaults():
    assert left_out(LONG, "nothing", {}) == left_out(LONG, "device", {}) == 0.6
    assert left_out(LONG, "size", {}) == 0.9  # a factor of 16
    longer = copy.deepcopy(LONG)
    del longer["configurations"][1]
    assert left_out(longer, "size", {}) == 1.0  # the defaults


@pytest.mark.parametrize(("gain", "taken"), [(1.5, 0.9), (1.3, 1.0)])
def test_what_gained_little_elsewhere_gives_way_to_the_defaults(gain, taken):
    shorter = copy.deepcopy(LONG) | on(1 << 14)
    shorter["configurations"] = [{"parameters": {"wg": 64}, "tuned_on": [on(1 << 14)], "seconds": 1 / gain}]
    longer = copy.deepcopy(LONG)
    longer["configurations"] = [{"parameters": {"wg": 64}, "tuned_on": [on(1 << 14)], "seconds": 0.9}]
    assert left_out(longer, "size", gains([shorter, longer])) == taken


def test_other_widths_of_vectors_are_left_out():
    line = copy.deepcopy(LONG) | on(1 << 10)
    line["configurations"] = [
        {"parameters": {"wg": 64}, "tuned_on": [on(1 << 10, tau=1 << 20)], "seconds": 4.0}
    ]
    assert left_out(line, "nothing", {}) == 1.0


@pytest.mark.parametrize("steps", [1024, 4096, 16384])
def test_the_right_size_of_a_relative_goes_before_short_problems_of_the_device(steps):
    h100 = replace(NVIDIA, name="NVIDIA H100 80GB HBM3", compute_units=132)
    given = {**KNN, "simplexes": 1}
    own = [Entry(key("knn", given, h100, rows=steps, library=steps), {"own": 1})]
    asked = key("knn", given, h100, rows=1 << 17, library=1 << 17)
    grades = [grade for grade, _ in ranked(own, asked, read_shipped("nvidia").entries)]
    assert grades[0] == "shipped"
    assert ("other size" in grades) == (steps == 16384)


def test_where_the_nearest_problem_of_a_device_gained_nothing_further_ones_do_not_count():
    asked = key("knn", SHAPE, NVIDIA, rows=1 << 16, library=1 << 16)
    near, far = (
        Entry(key("knn", SHAPE, NVIDIA, rows=rows, library=rows), {"wg": rows}, gain=gain)
        for rows, gain in ((1 << 14, 1.0), (1 << 20, 4.0))
    )
    assert [entry for _, entry in ranked([near, far], asked)] == []
    assert [entry for _, entry in ranked([far], asked)] == [far]
    assert [entry for _, entry in ranked([near], asked, [far])] == [far], "another source may know more"


def test_what_was_shipped_for_the_problem_itself_is_taken_however_little_it_gained():
    exact, further = (
        Entry(key("knn", SHAPE, NVIDIA, rows=rows, library=rows), {"wg": rows}, gain=gain)
        for rows, gain in ((1 << 16, 1.0), (1 << 18, 2.0))
    )
    assert [entry for _, entry in ranked((), exact.key, [further, exact])] == [exact, further]


RECORDED = sorted((Path(__file__).resolve().parents[2] / "bench" / "results").glob("*-tuning-loss.jsonl"))


def test_on_recorded_times_the_look_up_loses_at_most_a_tenth():
    """Of every known configuration on every problem, where what was tuned on the problem itself is left out.

    To leave out the device on which the gains were measured would prove nothing: they say which ones are faster there.
    """
    lines = [json.loads(text) for file in RECORDED for text in file.read_text().splitlines()]
    gained = gains(lines)
    lost = {f"{line['runtime']}, {line['kernel']}, {line['case']}": left_out(line, "size", gained) for line in lines}
    assert len(lost) >= 34 and {name: loss for name, loss in lost.items() if loss > 1.1} == {}
