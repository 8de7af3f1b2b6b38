"""NVRTC: which one is taken, and what is done to its PTX; tests/package/test_portability.py compiles all kernels."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyedmcl.device import nvrtc

PTX = """//
.version 8.8
.target sm_90
.address_size 64

.shared .align 4 .b8 _ZZ5firstE1x[{size}];
.shared .align 16 .b8 _ZZ5firstE1y[64];
.shared .align 4 .u32 _ZZ6secondE1n;

.visible .entry first(
\t.param .u64 first_param_0,
\t.param .u32 first_param_1
)
.maxntid 128, 1, 1
{{
\tmov.u32 %r1, _ZZ5firstE1x;
\t.pragma "used_bytes_mask 4095";
\tld.shared.f32 %f1, [_ZZ5firstE1x+4];
\tst.shared.v4.f32 [_ZZ5firstE1y+16], {{%f1, %f1, %f1, %f1}};
}}
.visible .entry second(
)
.maxntid 64
{{
\tst.shared.u32 [_ZZ6secondE1n], %r1;
}}
"""


def test_kernels_arguments_and_local_memory_are_read_from_ptx():
    text = PTX.format(size=4096)
    assert nvrtc.entries(text) == {"first": 2, "second": 0}
    assert nvrtc.shared_bytes(text) == {"first": 4096 + 64, "second": 4}
    assert nvrtc.with_dynamic_memory(text) == text, "what may be declared is left alone"
    assert nvrtc.asked_bytes(text) == {"first": 0, "second": 0}


def test_more_local_memory_than_may_be_declared_is_asked_for_at_the_launch():
    text = nvrtc.with_dynamic_memory(PTX.format(size=60000))
    assert nvrtc.asked_bytes(text) == {"first": 60064, "second": 4}
    assert nvrtc.shared_bytes(text) == {"first": 0, "second": 0}
    assert ".extern .shared .align 128 .b8 local_memory[];" in text
    # The wider alignment comes first; an offset is added to the array's place.
    assert "mov.u32 %r1, local_memory+64;" in text and "[local_memory+68]" in text
    assert "[local_memory+16], {" in text and "[local_memory+0], %r1" in text


def test_groups_have_exactly_their_size():
    text = nvrtc.with_exact_groups(PTX.format(size=4))
    assert ".reqntid 128, 1, 1\n" in text and ".reqntid 64, 1, 1\n" in text and "maxntid" not in text


@pytest.mark.parametrize(("driver", "version", "hints"), [
    (None, "8.8", True), ((13, 0), "8.8", True), ((12, 9), "8.8", True), ((12, 8), "8.7", True), ((12, 6), "8.5", True),
    ((12, 5), "8.5", True), ((12, 4), "8.4", True), ((12, 2), "8.2", False), ((11, 8), "7.8", False),
])  # fmt: skip
def test_ptx_is_no_newer_than_the_driver(driver, version, hints):
    text = nvrtc.for_driver(PTX.format(size=4), driver)
    assert f"\n.version {version}\n" in text and ("used_bytes_mask" in text) == hints


def test_the_newest_ptx_of_a_driver():
    assert nvrtc.ptx_version((13, 1)) == (9, 1) and nvrtc.ptx_version((12, 7)) == (8, 6)


def put(folder: Path, major: int, version: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in (f"libnvrtc.so.{major}", f"libnvrtc-builtins.so.{version}", "libnvrtc.alt.so.12"):
        (folder / name).touch()
    return folder / f"libnvrtc.so.{major}"


def test_nvrtc_is_found_in_packages_and_toolkits(tmp_path):
    old = put(tmp_path / "site/nvidia/cuda_nvrtc/lib", 12, "12.6")
    new = put(tmp_path / "site/nvidia/cu13/lib", 13, "13.1")
    kit = put(tmp_path / "usr/local/cuda-12.2/lib64", 12, "12.2.140")
    found = nvrtc.libraries([str(tmp_path / "site")], tmp_path)
    assert sorted(found) == sorted([((12, 6), old), ((13, 1), new), ((12, 2), kit)])
    # The newest that the driver's PTX allows; where all are newer, the one whose PTX is lowered least.
    assert nvrtc.best(found, (13, 2)) == new
    assert nvrtc.best(found, (12, 8)) == old
    assert nvrtc.best(found, (12, 4)) == kit
    assert nvrtc.best(found, (12, 0)) == kit
    assert nvrtc.best([], (12, 0)) is None
