"""The tables of parameters in the templates are those of the specs, and name every parameter."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyedmcl.kernels import describe, spec
from pyedmcl.kernels.kernel_spec import Tunable
from pyedmcl.kernels.texts import read_text

SPECS = list(describe.specs())


@pytest.mark.parametrize("kernel", SPECS, ids=lambda kernel: kernel.name)
def test_the_table_is_current(kernel):
    text = read_text("templates", kernel.text)
    assert describe.described(text, kernel) == text, "run: python -m pyedmcl.kernels.describe --write"
    assert describe.BEGIN in text


def test_a_changed_spec_changes_the_table_only():
    predict, text = spec("predict"), read_text("templates", "predict.cl.mako")
    more = Tunable("depth", (1, False), {"cpu": 1, "gpu": False}, "how deep it goes")
    changed = describe.described(text, replace(predict, tunables=(*predict.tunables, more)))
    assert "##   depth       how deep it goes (1 no; 1, no)\n" in changed
    assert describe.described(changed, predict) == text


def test_a_template_without_a_table_gets_it_behind_its_first_comment():
    predict, text = spec("predict"), read_text("templates", "predict.cl.mako")
    table = describe.table(predict)
    assert describe.described(text.replace(table, ""), predict) == text
    assert all(line.startswith("## ") and len(line) <= 120 for line in table.splitlines())


def test_every_meaning_is_used():
    used = {name for kernel in (*SPECS, spec("skill")) for name in kernel.specialisation}
    assert used == set(describe.MEANINGS)
