"""Tests mirror the packages: each has a folder here, and each folder is that of a package or says why."""

from __future__ import annotations

from pathlib import Path

import pyedmcl

PACKAGE = Path(pyedmcl.__file__).parent
TESTS = Path(__file__).resolve().parents[1]

#: Packages within a package whose tests are those of the package around them, with the reason.
WITHIN = {
    "compat/kedm": "a folder of this name could be imported in the place of kEDM",
    "compat/pyedm": "tests/compat has a file for each adapter",
    "compat/pyrqa": "tests/compat has a file for each adapter",
    "kernels/specs": "tests/kernels has those of texts and of their specs",
    "tuner/problems": "one file goes through the problems of all kernels",
}
#: Folders of tests that are no package, with what is tested there.
ELSEWHERE = {
    "bench": "the scripts of bench/",
    "edm": "functions of empirical dynamic modelling, through several packages",
    "fuzz": "calls, command lines and damage at random, through all packages",
    "package": "the package as a whole, the modules at its top, pages and releases",
    "peers": "results beside those of other packages",
}


def packages(package):
    """Folders with modules below a package, as paths from it."""
    return {path.parent.relative_to(package).as_posix() for path in package.rglob("*/__init__.py")}


def folders(tests):
    """Folders with files of tests, as paths from that of all tests."""
    return {path.parent.relative_to(tests).as_posix() for path in tests.rglob("test_*.py")}


def unlike(package, tests):
    """Packages that have no folder of tests, and folders of tests that have no package."""
    return packages(package) - folders(tests), folders(tests) - packages(package)


def test_each_package_has_its_folder_and_each_folder_its_package():
    without_tests, without_package = unlike(PACKAGE, TESTS)
    assert without_tests == set(WITHIN), "a package has its tests in the folder of its name"
    assert without_package == set(ELSEWHERE), "tests lie in the folder of the package that they test"


def test_a_package_without_tests_and_tests_without_a_package_are_seen(tmp_path):
    for path in ("here/a/__init__.py", "here/a/b/__init__.py", "here/c/__init__.py", "here/c/page.js",
                 "tests/a/test_x.py", "tests/a/old/test_y.py", "tests/c/helpers.py", "tests/conftest.py"):  # fmt: skip
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    assert unlike(tmp_path / "here", tmp_path / "tests") == ({"a/b", "c"}, {"a/old"})
