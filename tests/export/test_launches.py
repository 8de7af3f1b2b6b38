"""Launches of all kernels as formulas, against what the engines launch."""

from __future__ import annotations

import re

import numpy as np
import pytest
from alone import Alone, deduced

import pyedmcl
from pyedmcl.device import opencl
from pyedmcl.device.opencl import OpenCLExecutor
from pyedmcl.device.programs import CommonProgram
from pyedmcl.device.select import select
from pyedmcl.errors import BuildError
from pyedmcl.export import kernel_source
from pyedmcl.export.kernel_source import every_source, of_values
from pyedmcl.kernels import build
from pyedmcl.kernels import spec as spec_of
from pyedmcl.kernels.describe import FREE
from pyedmcl.kernels.kernel_spec import FUNCTIONS, evaluate, launch_of
from pyedmcl.launch.staging import open_size

SAID_IN_SPECS = {"knn", "lookup", "recurrence_bits"}


def chosen(launch, names, size):
    """The numbers that the caller has chosen, as far as the size of the launch tells: those that stand there alone."""
    found = {}
    for formula, total in zip(launch.work_items, size, strict=True):
        match = re.fullmatch(r"(\w+)(?: \* (\d+))?", formula)
        if match and match[1] in FREE and match[1] not in names:
            found[match[1]] = total // int(match[2] or 1)
    return found


def check(spec, values, kernel, size, local, arguments):
    """Hold one launch against the formulas; gives the entry and what was compared."""
    launch = spec.launch(kernel.name, values)
    numbers = {slot.name: arguments[slot.name] for slot in kernel.slots if not slot.is_buffer}
    names = {name: int(number) for name, number in numbers.items() if float(number).is_integer()}
    names |= chosen(launch, names, size)
    work_items = tuple(evaluate(formula, names) for formula in launch.work_items)
    if launch.local_size is None:
        assert local is None and tuple(size) in (open_size(*work_items), work_items), (spec.name, kernel.name, values)
    else:
        assert (tuple(size), tuple(local)) == (work_items, launch.local_size), (spec.name, kernel.name, names, values)
    compared = {kernel.name}
    for slot in kernel.slots:
        if slot.is_buffer:
            formula = launch.elements[slot.name]
            lacking = set(re.findall(r"[A-Za-z_]\w*", formula)) - set(FUNCTIONS) - set(names)
            if not lacking:
                there = arguments[slot.name].nbytes // slot.dtype.itemsize
                assert there >= max(evaluate(formula, names), 0), (spec.name, kernel.name, slot.name, formula, names)
                compared.add(f"{kernel.name}.{slot.name}")
    return compared


@pytest.fixture
def watched(monkeypatch):
    """All launches below are held against the formulas; what was compared, by kernel."""
    compared: dict[str, set[str]] = {}
    made: dict[int, tuple] = {}
    wrong: list[str] = []

    def watch(owner):
        plain = owner.kernel

        def kernel(self, entry, slots):
            found = plain(self, entry, slots)
            if build._noted.get():
                made[id(found)] = (found, *build._noted.get()[-1])
            return found

        monkeypatch.setattr(owner, "kernel", kernel)

    def watch_launches(owner):
        plain = owner.launch

        def launch(self, kernel, size, local, /, **arguments):
            _, spec, values = made.get(id(kernel), (None, None, None))
            if spec is not None and spec.launches:
                try:
                    compared.setdefault(spec.name, set()).update(check(spec, values, kernel, size, local, arguments))
                except AssertionError as error:
                    wrong.append(str(error))
            return plain(self, kernel, size, local, **arguments)

        monkeypatch.setattr(owner, "launch", launch)

    with build.noting():
        watch(CommonProgram)
        watch(kernel_source._DryProgram)
        watch_launches(OpenCLExecutor)
        watch_launches(kernel_source.DryExecutor)
        yield compared
    assert not wrong, "\n".join(dict.fromkeys(wrong))


@pytest.fixture
def alone(monkeypatch, pocl_device):
    """Launches below run by what is exported, in buffers no larger than is described; gives the entries that did."""
    place = Alone(opencl.handle(select(pocl_device).device))
    made: dict[int, tuple] = {}
    sources: dict[str, object] = {}
    ran: set[str] = set()
    plain_kernel, plain_launch = CommonProgram.kernel, OpenCLExecutor.launch

    def kernel(self, entry, slots):
        found = plain_kernel(self, entry, slots)
        made[id(found)] = (found, *build._noted.get()[-1])
        return found

    def launch(self, kernel, size, local, /, **arguments):
        _, spec, values = made[id(kernel)]
        # What the SPECs say more of follows from numbers of a problem, which are not known here.
        if spec.name in SAID_IN_SPECS or self.info.id != pocl_device:
            return plain_launch(self, kernel, size, local, **arguments)
        key = f"{spec.name} {sorted(values.items())}"
        source = sources[key] = sources.get(key) or of_values(spec.name, values, self.info, None)
        told = source.description["kernels"][kernel.name]
        buffers = {slot.name: arguments[slot.name] for slot in kernel.slots if slot.is_buffer}
        contents = {name: self.download(buffer, np.empty(buffer.nbytes, np.uint8)) for name, buffer in buffers.items()}
        numbers = {name: number for name, number in arguments.items() if name not in buffers}
        launch = spec.launch(kernel.name, values)
        whole = {name: int(number) for name, number in numbers.items() if float(number).is_integer()}
        known = deduced(told, numbers | whole | chosen(launch, whole, size), contents)
        found = place.launch(source, kernel.name, known, contents)
        for slot in kernel.slots:
            if slot.is_buffer and len(found[slot.name]):
                self.upload(found[slot.name].view(slot.dtype), buffers[slot.name])
        # The compiler drops what it does not use.
        assert place.local_bytes(source, kernel.name) in (told["local_memory_bytes"], 0), (spec.name, kernel.name)
        ran.add(f"{spec.name}.{kernel.name}")
        return kernel_source._DryEvent()

    monkeypatch.setattr(CommonProgram, "kernel", kernel)
    monkeypatch.setattr(OpenCLExecutor, "launch", launch)
    with build.noting():
        yield ran


SERIES = np.cumsum(np.random.default_rng(3).standard_normal((260, 3)), axis=0)
CALLS = {
    "maps": lambda device: pyedmcl.xmap(SERIES, E=[2, 3, 4], device=device),
    "windows": lambda device: pyedmcl.xmap(SERIES, E=2, windows=(250, 2), device=device),
    "compact": lambda device: pyedmcl.xmap(SERIES, E=2, precision="compact", device=device),
    "slopes": lambda device: pyedmcl.xmap(SERIES, E=2, method="smap", coefficients="mean", device=device),
    "ccm": lambda device: pyedmcl.ccm(SERIES[:, 0], SERIES[:, 1], E=3, sample=20, lib_sizes=[10, 150], seed=1,
                                      device=device),
    "pruned": lambda device: pyedmcl.knn(SERIES[:, 0], E=2, neighbors="pruned", device=device),
    "indexed": lambda device: pyedmcl.knn(SERIES[:, 0], E=2, neighbors="kdtree", device=device),
    "simplex": lambda device: pyedmcl.simplex(SERIES[:, 0], E=2, device=device),
    "smap": lambda device: pyedmcl.smap(SERIES[:, 0], E=3, theta=[0, 2], device=device),
    "rqa": lambda device: pyedmcl.rqa(SERIES[:, 0], m=2, radius=1.0, device=device),
    "windowed": lambda device: pyedmcl.windowed_rqa(SERIES[:, 0], 60, 30, m=2, radius=1.0, device=device),
    "batch": lambda device: pyedmcl.rqa_batch(SERIES.T, m=2, radius=1.0, device=device),
    "image": lambda device: pyedmcl.recurrence_plot(SERIES[:, 0], m=2, radius=1.0, pixels=50, device=device),
    "nearest": lambda device: pyedmcl.rqa(SERIES[:, 0], m=2, radius=5, threshold="neighbours", device=device),
    "network": lambda device: pyedmcl.recurrence_network(SERIES[:, 0], m=2, radius=1.0, device=device),
    "rate": lambda device: pyedmcl.rqa(SERIES[:, 0], m=2, radius=0.05, threshold="recurrence_rate", device=device),
}


def answers(result):
    """What a result consists of, as numbers."""
    for name in ("indices", "counts"):
        if isinstance(getattr(result, name, None), np.ndarray):
            return getattr(result, name)
    return result.to_frame().select_dtypes("number").to_numpy(np.float64)


def test_launches_on_devices_are_those_of_the_formulas(one_device, watched):
    for call in CALLS.values():
        call(one_device)
    assert len(watched) > 20
    assert sum(len(found) for found in watched.values()) > 150


@pytest.mark.parametrize("name", CALLS)
def test_a_call_gets_its_answer_from_texts_and_descriptions_alone(name, alone, pocl_device, one_device):
    found = CALLS[name](pocl_device)
    assert alone
    wanted = CALLS[name](one_device)
    same = all(spec_of(entry.partition(".")[0]).same_bits for entry in alone)
    np.testing.assert_allclose(answers(found), answers(wanted), rtol=0 if same else 1e-3, atol=0 if same else 1e-6)


def test_every_kernel_has_formulas_and_engines_launch_by_them(watched):
    """Engines show on an executor that computes nothing what they launch on a GPU."""
    for found in every_source(target="nvidia"):
        for entry, told in found.description.get("kernels", {}).items():
            known = set(told["problem"])
            assert told["global_size"] and all(told["problem"].values()), (found.kernel, entry)
            for argument in told["arguments"]:
                assert ("elements" in argument) == argument["type"].endswith("*"), (found.kernel, entry, argument)
            formulas = [*told["global_size"], *(a["elements"] for a in told["arguments"] if "elements" in a)]
            for formula in formulas:
                unknown = set(re.findall(r"[A-Za-z_]\w*", formula)) - set(FUNCTIONS) - known
                assert not unknown, (found.kernel, entry, formula)
        assert "kernels" in found.description or found.kernel in SAID_IN_SPECS
    assert len(watched) > 20


def test_a_text_that_says_nothing_is_refused():
    with pytest.raises(BuildError, match="'x' is no formula for a buffer of f"):
        launch_of("    f | n | any\n      x\n", {}, "f", ["x", "n"])
    with pytest.raises(BuildError, match="nothing is said of launches of g"):
        launch_of("    f | n | any\n", {}, "g", [])


def test_definitions_are_of_the_values_and_arguments_go_before_them():
    text = """
        near = round_up(E, 4)
        far = select(wide, 2 * near, n)
        f | far * n; wg | wg; 1
          x: near * E
          y, z: far
    """
    launch = launch_of(text, {"E": 5, "wide": True, "wg": 64, "n": 3}, "f", ["x", "y", "n"])
    assert launch.work_items == ("16 * n", "64") and launch.local_size == (64, 1)
    assert launch.elements == {"x": "8 * 5", "y": "16"} and launch.names == {"n"}
