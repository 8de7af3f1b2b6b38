"""``bench/host_parts.py``: what it says of small calls and maps."""

from __future__ import annotations

import json
import sys

import host_parts
import pytest


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (["--case", "simplex,smap", "--points", "120", "--E", "3"], ("call", "host", "skill", "passes", "layers")),
        (["--case", "map", "--shape", "6x150"], ("call", "kernels", "waiting", "copies", "rest")),
    ],
)
def test_all_parts_are_told(one_device, tmp_path, monkeypatch, capsys, options, parts):
    out = tmp_path / "parts.jsonl"
    common = ["--device", one_device, "--repeat", "3", "--out", str(out)]
    monkeypatch.setattr(sys, "argv", ["host_parts.py", *options, *common])
    host_parts.main()
    for line in map(json.loads, out.read_text().splitlines()):
        assert line["case"] in options[1].split(",") and all(line["us"][part] > 0 for part in parts)
    assert "microseconds" in capsys.readouterr().out


def test_a_part_within_another_counts_for_itself_only():
    stopwatch = host_parts.Stopwatch()
    clock = iter([0.0, 1.0, 4.0, 10.0])
    inner = stopwatch.around("inner", lambda: None)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(host_parts.time, "perf_counter", lambda: next(clock))
        stopwatch.around("outer", inner)()
    assert stopwatch.seconds == {"outer": 7.0, "inner": 3.0}
