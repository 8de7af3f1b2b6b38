"""Every public function: a complete numpydoc docstring, whose example runs and shows what it says."""

from __future__ import annotations

import doctest
import inspect
import re

import pytest

import pyedmcl
from pyedmcl import io, simulate

FUNCTIONS = sorted(name for name in pyedmcl.__all__ if callable(getattr(pyedmcl, name)))
_SECTION = re.compile(r"^(\w[\w ]*)\n-{3,}$", re.MULTILINE)


def sections(name):
    """Text of each section of a function's docstring by its title; what stands before the first one under ""."""
    parts = _SECTION.split(inspect.getdoc(getattr(pyedmcl, name)))
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def test_there_are_functions_to_look_at():
    assert {"knn", "xmap", "rqa"} <= set(FUNCTIONS)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_docstring_has_all_sections(name):
    found = sections(name)
    wanted = {"Parameters", "Returns", "See Also", "Notes", "Examples"}
    assert wanted <= set(found)
    assert "Cost: " in found["Notes"]
    assert all(text.strip() for text in found.values())


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_argument_is_described(name):
    heads = re.findall(r"^(\w[^\n]*?)(?: :[^\n]*)?$", sections(name)["Parameters"], re.MULTILINE)
    described = [word for head in heads for word in re.split(r",\s*", head)]
    assert set(inspect.signature(getattr(pyedmcl, name)).parameters) <= set(described)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_pointed_at_exists(name):
    for other in re.findall(r"^(\w+) :", sections(name)["See Also"], re.MULTILINE):
        assert other in FUNCTIONS


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_example_shows_what_happens(name, one_device, monkeypatch):
    monkeypatch.setenv("PYEDMCL_DEVICE", one_device)
    example = doctest.DocTestParser().get_doctest(sections(name)["Examples"], {}, name, None, 0)
    assert example.examples
    report = []
    assert doctest.DocTestRunner().run(example, out=report.append).failed == 0, "".join(report)


BESIDE = [
    *(getattr(io, name) for name in ("read_series", "write_matrix", "write_edges", "strongest_edges")),
    *(getattr(simulate, name) for name in ("coupled_maps", "roc_auc", "link_auc")),
]


@pytest.mark.parametrize("function", BESIDE, ids=lambda function: function.__name__)
def test_examples_of_simulations_and_files_show_what_happens(function, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = inspect.getdoc(function)
    assert {"Parameters", "Raises", "Examples"} <= set(_SECTION.findall(text))
    example = doctest.DocTestParser().get_doctest(text, {}, function.__name__, None, 0)
    assert example.examples
    report = []
    assert doctest.DocTestRunner().run(example, out=report.append).failed == 0, "".join(report)
