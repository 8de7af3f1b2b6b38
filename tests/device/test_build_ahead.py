"""Programs that are compiled before they are needed, several at once where a device gains by it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import pyedmcl
from pyedmcl.device import common, opencl, select
from pyedmcl.device.programs import Background
from pyedmcl.device.quirks import quirks_for
from pyedmcl.engines import crossmap, lookup
from pyedmcl.errors import BuildError
from pyedmcl.kernels import build
from pyedmcl.simulate import coupled_maps

WRITES = "kernel void write(global int* x) {{ x[0] = {}; }}"


@pytest.fixture
def compiled(monkeypatch):
    """Texts that are compiled, by executors of devices that compile several at once."""
    several = lambda info: replace(quirks_for(info), compilers=3)  # noqa: E731
    monkeypatch.setattr(common, "quirks_for", several)
    monkeypatch.setattr(build, "quirks_for", several)
    monkeypatch.setattr(select, "_open", {})  # executors that have compiled nothing
    texts, real = [], opencl.OpenCLExecutor._compile

    def noted(self, source, flags):
        texts.append(source)
        return real(self, source, flags)

    monkeypatch.setattr(opencl.OpenCLExecutor, "_compile", noted)
    return texts


def test_texts_are_compiled_once_and_a_refused_one_is_left_to_its_own_build(one_device, compiled):
    executor = select.open_device(one_device)
    good, bad = [WRITES.format(number) for number in range(3)], WRITES.format("this is no number")
    executor.build_ahead([good[0], bad, *good])
    assert sorted(compiled) == sorted([*good, bad])
    for text in good:
        executor.build(text)
    assert len(compiled) == 4
    with pytest.raises(BuildError):
        executor.build(bad)


def test_a_text_is_compiled_in_the_background_once_and_a_refused_one_is_left_to_its_own_build(one_device, compiled):
    executor = select.open_device(one_device)
    good, bad = [WRITES.format(number) for number in range(3)], WRITES.format("this is no number")
    wanted = [good[0], bad, *good, bad]
    assert not any([executor.build_meanwhile(text) for text in wanted[:2]])
    for text in wanted:
        executor.build_meanwhile(text)
    executor.settle()
    assert all(executor.build_meanwhile(text) for text in wanted)
    for text in good:
        executor.build(text)
    assert sorted(compiled) == sorted([*good, bad])
    with pytest.raises(BuildError):
        executor.build(bad)


def test_without_a_compiler_that_gains_by_it_nothing_is_compiled_in_the_background(one_device, compiled, monkeypatch):
    monkeypatch.setattr(common, "quirks_for", lambda info: replace(quirks_for(info), compilers=1))
    executor = select.open_device(one_device)
    assert executor.build_meanwhile(WRITES.format(1))
    assert executor.programs.background._thread is None
    assert not compiled


def _lookups(texts):
    return [text for text in texts if "void lookup(" in text]


def _map_of_many_dimensions():
    return coupled_maps(n_series=24, n_steps=600, seed=2).values, np.arange(24) % 4 + 2


@pytest.fixture
def own_kernels(monkeypatch):
    """No class of targets has too little work for a kernel of its own."""
    monkeypatch.setattr(lookup.LookupShapes, "takes_any_k", lambda self, k, width: False)


@pytest.mark.parametrize(("precision", "texts"), [("full", 3), ("compact", 7)])
def test_a_map_of_many_dimensions_compiles_side_by_side_what_it_asks_for_and_nothing_else(
    one_device, compiled, own_kernels, monkeypatch, precision, texts
):
    x, E = _map_of_many_dimensions()
    monkeypatch.setattr(crossmap, "COMPACT_LEAST", 1)
    ahead, real = [], common.CommonExecutor.build_ahead

    def noted(self, sources, options=()):
        ahead.append(set(sources))
        real(self, sources, options)

    monkeypatch.setattr(common.CommonExecutor, "build_ahead", noted)
    with monkeypatch.context() as patched:
        patched.setattr(common.CommonExecutor, "build_meanwhile", lambda self, source, options=(): False)
        found = pyedmcl.xmap(x, E=E, precision=precision, device=one_device).rho
    assert len(ahead[0]) == texts  # layouts, a search, a lookup for each dimension, and of compact one more
    assert all(later <= ahead[0] for later in ahead[1:])
    assert set(compiled) - ahead[0] == {text for text in compiled if "void compact_parts(" in text}
    monkeypatch.undo()
    monkeypatch.setattr(crossmap, "COMPACT_LEAST", 1)
    assert np.array_equal(found, pyedmcl.xmap(x, E=E, precision=precision, device=one_device).rho, equal_nan=True)


def test_dimensions_share_a_lookup_until_theirs_are_compiled_with_the_same_bits(
    one_device, compiled, own_kernels, monkeypatch
):
    """Whatever parameters suit each number of neighbours."""
    x, E = _map_of_many_dimensions()
    real = lookup.LookupShapes._for_any_k
    monkeypatch.setattr(
        lookup.LookupShapes, "_for_any_k", lambda self, k, width: {**real(self, k, width), "vectors": 1 + k % 2}
    )
    executor = select.open_device(one_device)
    with monkeypatch.context() as patched:
        idle = Background(lambda piece: None, lambda: 0.0)  # compiles nothing
        patched.setattr(executor.programs, "background", idle)
        first = pyedmcl.xmap(x, E=E, device=one_device)
    idle.wait()
    assert len(_lookups(compiled)) == 1
    pyedmcl.xmap(x, E=E, device=one_device)
    executor.settle()
    assert len(_lookups(compiled)) == 5
    asked, built = [], executor.build
    monkeypatch.setattr(executor, "build", lambda source, options=(): asked.append(source) or built(source, options))
    again = pyedmcl.xmap(x, E=E, device=one_device)
    assert len(set(_lookups(asked))) == 4
    assert len(_lookups(compiled)) == 5
    assert np.array_equal(first.rho, again.rho, equal_nan=True)
    assert first.provenance["parameters"] == again.provenance["parameters"]


def test_a_map_of_one_dimension_waits_for_its_own_lookup(one_device, compiled, own_kernels):
    x, _ = _map_of_many_dimensions()
    pyedmcl.xmap(x, E=3, device=one_device)
    assert select.open_device(one_device).programs.background._thread is None
    assert len(_lookups(compiled)) == 1
