"""Rendered texts that are kept on disk: another process finds them, and never those of other values or templates."""

from __future__ import annotations

import subprocess
import sys

import pytest
from device_helpers import INTEL

from pyedmcl.errors import BuildError
from pyedmcl.kernels import build, spec
from pyedmcl.kernels import texts as render

VALUES = {"dtype": "float32"}
SHOWS = """
import sys
from device_helpers import INTEL
from pyedmcl.kernels import build, spec
print(build.text_for(spec("stage"), {"dtype": "float32"}, INTEL), end="")
print("mako" in sys.modules, file=sys.stderr)
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty cache folder, and a process that has rendered nothing."""
    monkeypatch.setenv("PYEDMCL_CACHE_DIR", str(tmp_path / "cache"))
    build._text.cache_clear()
    yield tmp_path / "cache" / "texts"
    build._text.cache_clear()


def rendered(values=VALUES):
    """A text as a process sees it that has rendered nothing."""
    build._text.cache_clear()
    return build.text_for(spec("stage"), values, INTEL)


def test_another_process_has_the_same_text_and_does_not_load_mako(folder):
    text = rendered()
    program = f"import sys; sys.path[:0] = {[entry for entry in sys.path if entry]!r}\n{SHOWS}"
    again = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert again.stdout == text and again.stderr.split()[-1] == "False"
    assert len(list(folder.iterdir())) == 1


def test_other_values_and_other_templates_have_texts_of_their_own(folder, monkeypatch):
    single = rendered()
    assert rendered({"dtype": "float64"}) != single
    monkeypatch.setattr(render, "digest_of_makers", lambda: "of changed templates")
    monkeypatch.setattr(build, "source", lambda *_: "a changed text")
    assert rendered().endswith("a changed text")
    assert len(list(folder.iterdir())) == 3


def test_values_are_checked_before_anything_is_looked_for():
    rendered()
    with pytest.raises(BuildError):
        rendered({})


def test_a_damaged_file_is_as_good_as_none(folder):
    text = rendered()
    (path,) = folder.iterdir()
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert rendered() == text
    assert path.read_bytes() == whole


def test_every_file_that_texts_are_rendered_from_counts(tmp_path, monkeypatch):
    """The identity of the makers changes with any byte of a template or a header, and with a file's name."""
    for name in ("templates", "clkernels"):
        (tmp_path / name).mkdir()
    monkeypatch.setattr(render, "_folder", lambda name: tmp_path / name)
    found = []
    for name, text in (("templates/a.mako", "x"), ("templates/a.mako", "y"), ("clkernels/a.clh", "y")):
        (tmp_path / name).write_text(text)
        found.append(render.digest_of_makers.__wrapped__())
    (tmp_path / "clkernels/a.clh").rename(tmp_path / "clkernels/b.clh")
    assert len({*found, render.digest_of_makers.__wrapped__()}) == 4
