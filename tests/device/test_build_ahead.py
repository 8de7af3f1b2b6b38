"""Programs that are compiled before they are needed, several at once where a device gains by it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import pyedmcl
from pyedmcl.device import common, opencl, session
from pyedmcl.device.quirks import quirks_for
from pyedmcl.engines import lookups
from pyedmcl.errors import BuildError
from pyedmcl.simulate import coupled_maps

WRITES = "kernel void write(global int* x) {{ x[0] = {}; }}"


@pytest.fixture
def compiled(monkeypatch):
    """Texts that are compiled, by executors of devices that compile several at once."""
    several = lambda info: replace(quirks_for(info), compilers=3)  # noqa: E731
    monkeypatch.setattr(common, "quirks_for", several)
    monkeypatch.setattr(lookups, "quirks_for", several)
    monkeypatch.setattr(session, "_open", {})  # executors that have compiled nothing
    texts, real = [], opencl.OpenCLExecutor._compile

    def noted(self, source, flags):
        texts.append(source)
        return real(self, source, flags)

    monkeypatch.setattr(opencl.OpenCLExecutor, "_compile", noted)
    return texts


def test_texts_are_compiled_once_and_a_refused_one_is_left_to_its_own_build(one_device, compiled):
    executor = session.open_device(one_device)
    good, bad = [WRITES.format(number) for number in range(3)], WRITES.format("this is no number")
    executor.build_ahead([good[0], bad, *good])
    assert sorted(compiled) == sorted([*good, bad])
    for text in good:
        executor.build(text)
    assert len(compiled) == 4
    with pytest.raises(BuildError):
        executor.build(bad)


@pytest.mark.parametrize("precision", ["full", "compact"])
def test_a_map_of_many_dimensions_asks_for_no_lookup_that_was_not_compiled_ahead(
    one_device, compiled, monkeypatch, precision
):
    x = coupled_maps(n_series=24, n_steps=600, seed=2).values
    E = np.arange(24) % 4 + 2
    monkeypatch.setattr(lookups.LookupShapes, "takes_any_k", lambda self, k, width: False)  # a kernel for each E
    ahead, real = [], common.CommonExecutor.build_ahead

    def noted(self, sources, options=()):
        ahead.append(list(sources))
        real(self, ahead[-1], options)

    monkeypatch.setattr(common.CommonExecutor, "build_ahead", noted)
    found = pyedmcl.xmap(x, E=E, precision=precision, device=one_device).rho
    assert [len(texts) for texts in ahead] == [4 if precision == "full" else 8]
    assert {text for text in compiled if "void lookup(" in text} == set(ahead[0])
    monkeypatch.undo()
    assert np.array_equal(found, pyedmcl.xmap(x, E=E, precision=precision, device=one_device).rho, equal_nan=True)
