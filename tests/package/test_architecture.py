"""docs/architecture.md and docs/design/rules.md name files: these must exist, and hold the names given with them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = "".join((ROOT / "docs" / page).read_text(encoding="utf-8") for page in ("architecture.md", "design/rules.md"))
PLACE = re.compile(r"`((?:[\w.-]+/)+[\w.-]*|[\w-]+\.(?:py|clh|mako|toml))`")
NAMES = re.compile(r"`((?:[\w-]+/)*[\w.-]+\.(?:py|clh|mako))` \(((?:`\w+`(?:, | and )?)+)\)")
MODULE = re.compile(r"`((?:[\w-]+/)*\w+)\.(\w+(?:\.\w+)*)`")

#: Names in a module, as `module.name`; what remains are files with their endings.
ENDINGS = {"py", "mako", "clh", "md", "toml", "yml", "json", "cl"}

#: Where a path on the page may begin: at the top, in the package, or in the folder that its row is about.
BEGINNINGS = (
    "", "pyedmcl", "clkernels", "templates", "tests", "tests/fuzz", "tuning", "pyedmcl/tuner", "pyedmcl/reporting",
    "pyedmcl/recurrence",
)  # fmt: skip

#: Folders of a built package, which a checkout has not.
BUILT = {"pyedmcl/_data/"}


def place(name):
    """The file or folder that a path on the page stands for, or None."""
    candidates = (ROOT / beginning / name for beginning in BEGINNINGS)
    paths = (path for candidate in candidates for path in (candidate, candidate.with_name(candidate.name + ".py")))
    return next((path for path in paths if path.exists()), None)


def _is_file(pair):
    path = place(pair[0])
    return pair[1] not in ENDINGS and path is not None and path.is_file()


NAMED = sorted(set(filter(_is_file, MODULE.findall(PAGE))))


def test_the_page_names_paths_and_names_in_them():
    assert len(PLACE.findall(PAGE)) > 150
    assert len(NAMES.findall(PAGE)) > 3
    assert len(NAMED) > 5


@pytest.mark.parametrize("name", sorted(set(PLACE.findall(PAGE)) - BUILT - {".".join(pair) for pair in NAMED}))
def test_a_path_of_the_page_exists(name):
    assert place(name), f"the pages name {name}, which is nowhere"


@pytest.mark.parametrize(("file", "names"), NAMES.findall(PAGE))
def test_a_file_holds_the_names_beside_it(file, names):
    path = place(file)
    assert path, f"the pages name {file}, which is nowhere"
    text = path.read_text(encoding="utf-8")
    missing = [name for name in re.findall(r"\w+", names.replace(" and ", " ")) if not re.search(rf"\b{name}\b", text)]
    assert not missing, f"the pages say that {file} holds {missing}"


@pytest.mark.parametrize(("module", "name"), NAMED)
def test_a_module_holds_what_is_named_in_it(module, name):
    path = place(module)
    text = path.read_text(encoding="utf-8")
    for part in name.split("."):
        assert re.search(rf"\b{part}\b", text), f"the pages say that {module} holds {part}"
