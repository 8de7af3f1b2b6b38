"""Names that nobody can trust, through all that results offer: tables, pictures and files."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest
import tally
from hypothesis import given, settings
from hypothesis import strategies as st

import pyedmcl
from pyedmcl.plot.figure import as_label

X, Y, Z = np.random.default_rng(0).random((3, 40))
_ODD = (
    "$\\frac{$", "a$b$c", "\\$", "=1+1", "\x1b[31m", "\0", "_x", "%s{0}", "ä\u202e", "x" * 500, " ", "C0", "nan", "^{",
    "a\nb",
)  # fmt: skip
names_of_three = st.lists(
    st.one_of(st.sampled_from(_ODD), st.text(max_size=6)), unique=True, min_size=3, max_size=3
)  # fmt: skip
CALLS = {
    "embed": lambda t, d: pyedmcl.embed(t, E=1),
    "embed_dimension": lambda t, d: pyedmcl.embed_dimension(t, E_max=2, device=d),
    "suggest": lambda t, d: pyedmcl.suggest(t, E_max=2, device=d),
    "embedding_scan": lambda t, d: pyedmcl.embedding_scan(t, E=[1, 2], tau=1, Tp=1, device=d),
    "false_neighbors": lambda t, d: pyedmcl.false_neighbors(t, E_max=2, device=d),
    "mutual_information": lambda t, d: pyedmcl.mutual_information(t, lags=[1, 2], device=d),
    "recurrence_network": lambda t, d: pyedmcl.recurrence_network(t, radius=1.0, links=True, device=d),
    "multiview": lambda t, d: pyedmcl.multiview(t, 0, D=2, device=d),
    "smap": lambda t, d: pyedmcl.smap(t, target=X, E=1, device=d),
    "xmap": lambda t, d: pyedmcl.xmap(t, E=2, device=d),
    "xmap_grid": lambda t, d: pyedmcl.xmap_grid(t, E=[1, 2], device=d),
    "xmap_significance": lambda t, d: pyedmcl.xmap_significance(t, E=2, n=2, seed=1, device=d),
    "causal_network": lambda t, d: pyedmcl.causal_network(t, E=2, lags=(-1, 0), n=2, sample=2, seed=1, device=d),
    "ccm_matrix": lambda t, d: pyedmcl.ccm_matrix(t, E=2, lib_sizes=[10, 20, 30], sample=2, seed=1, device=d),
    "ccm": lambda t, d: pyedmcl.ccm(*_pair(t), E=2, lib_sizes=[10, 30], sample=2, seed=1, device=d),
    "ccm_lagged": lambda t, d: pyedmcl.ccm_lagged(*_pair(t), E=2, Tp=[0, 1], device=d),
    "ccm_significance": lambda t, d: pyedmcl.ccm_significance(*_pair(t), E=2, n=2, seed=1, device=d),
}  # fmt: skip


def _pair(table):
    return [{name: table[name]} for name in list(table)[:2]]


@pytest.mark.parametrize("name", CALLS)
def test_tables_and_pictures_of_results_take_any_name(name, one_device, tmp_path):
    @settings(max_examples=max(settings().max_examples // 10, 2))
    @given(names_of_three)
    def look(names):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = CALLS[name](dict(zip(names, (X, Y, Z), strict=True)), one_device)
            for method in dir(result):
                if method.startswith("plot"):
                    figure = getattr(result, method)()
                    figure.canvas.draw()
                    figure.clear()
                elif method.endswith("frame") or method == "pairs":
                    getattr(result, method)()
                else:
                    continue
                tally.count("tables and pictures of odd names", "made")

    look()


@given(st.text(max_size=20))
def test_a_label_is_no_formula_and_shows_the_name(text):
    from matplotlib.cbook import is_math_text

    label = as_label(text)
    assert not is_math_text(label) and label.isprintable()
    if text.isprintable():
        assert label.replace(r"\$", "$") == text


def test_every_result_with_names_is_looked_at():
    """A function whose result holds names of series and draws them has a call here."""
    from pyedmcl.functions import FUNCTIONS

    named = set()
    for function in FUNCTIONS:
        kind = inspect.signature(getattr(pyedmcl, function)).return_annotation
        module = __import__(getattr(pyedmcl, function).__module__, fromlist=["x"])
        fields = getattr(getattr(module, str(kind), None), "__annotations__", {})
        if {"names", "links", "views"} & set(fields) and not function.startswith("open_"):
            named.add(function)
    assert named and named <= set(CALLS), f"add a call for {named - set(CALLS)}"
