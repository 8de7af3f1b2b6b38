"""What a release consists of beside code: it agrees with the project's metadata, and services can read it."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest

import pyedmcl

ROOT = Path(__file__).resolve().parents[2]
if not (ROOT / "pyproject.toml").is_file():
    pytest.skip(f"{ROOT} is no checkout: there is nothing to release", allow_module_level=True)
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REPOSITORY = PROJECT["urls"]["Source"]
BUILT = ("docs", "pyproject.toml", "README.md", ".zenodo.json", "CITATION.cff", "recipe", "paper", ".github", "docker")


def text_of(path):
    return (ROOT / path).read_text(encoding="utf-8")


@pytest.fixture
def yaml():
    return pytest.importorskip("yaml", reason="PyYAML is not installed; pip install 'pyedmcl[test]' brings it")


def test_one_version_everywhere(yaml):
    assert yaml.safe_load(text_of("CITATION.cff"))["version"] == pyedmcl.__version__
    assert yaml.safe_load(text_of("recipe/recipe.yaml"))["context"]["version"] == pyedmcl.__version__
    assert f"## {pyedmcl.__version__} " in text_of("CHANGELOG.md")


def test_one_address_everywhere():
    files = [path for name in BUILT for path in ([ROOT / name, *(ROOT / name).rglob("*")])]
    named = set()
    for path in files:
        if path.suffix in (".md", ".toml", ".json", ".cff", ".yaml", ".yml"):
            named |= set(re.findall(r"https://github\.com/pyedmcl/[\w.-]+", path.read_text(encoding="utf-8")))
    assert named == {REPOSITORY}
    assert all(url.startswith(REPOSITORY) for url in PROJECT["urls"].values())


def test_one_licence_and_the_same_authors_everywhere(yaml):
    citation, recipe = yaml.safe_load(text_of("CITATION.cff")), yaml.safe_load(text_of("recipe/recipe.yaml"))
    zenodo = json.loads(text_of(".zenodo.json"))
    assert {PROJECT["license"], citation["license"], zenodo["license"], recipe["about"]["license"]} == {"Apache-2.0"}
    authors = [author["name"] for author in PROJECT["authors"]]
    assert [each["name"] for each in citation["authors"]] == authors == [each["name"] for each in zenodo["creators"]]


def test_the_recipe_of_conda_asks_for_what_the_wheel_asks_for(yaml):
    recipe = yaml.safe_load(text_of("recipe/recipe.yaml"))
    wanted = {re.sub(r"\s", "", line) for line in PROJECT["dependencies"]}
    run = {re.sub(r"\s", "", line) for line in recipe["requirements"]["run"]}
    assert run - wanted == {"python>=${{python_min}}", "pocl"} and wanted <= run
    name, _, place = PROJECT["scripts"]["pyedmcl"].partition(":")
    assert recipe["build"]["python"]["entry_points"] == [f"pyedmcl = {name}:{place}"]


def test_every_reference_of_the_paper_is_cited_and_every_citation_is_there():
    paper, references = text_of("paper/paper.md"), text_of("paper/paper.bib")
    there = re.findall(r"^@\w+\{(\w+),", references, re.MULTILINE)
    cited = set(re.findall(r"@(\w+)", paper.partition("\n---\n")[2]))
    assert len(there) == len(set(there)) and set(there) == cited
    for entry in re.split(r"^@", references, flags=re.MULTILINE)[1:]:
        wanted = ("author", "title", "howpublished") if entry.startswith("misc") else ("author", "title", "year", "doi")
        assert all(re.search(rf"^  {field} = \{{.+\}},?$", entry, re.MULTILINE) for field in wanted), entry
    for word in ("# Summary", "# Statement of need", "# References"):
        assert word in paper


def test_figures_of_the_paper_are_those_of_the_readme():
    speed = " ".join(text_of("paper/paper.md").partition("# Speed")[2].partition("\n# ")[0].split())
    (seconds, ratio), = re.findall(r"takes ([\d.]+) s, (\d+) times less", speed)
    assert f"{seconds} s, **{ratio}x**" in text_of("README.md")


def test_workflows_run_what_is_there_on_all_supported_versions(yaml):
    tests = yaml.safe_load(text_of(".github/workflows/tests.yml"))["jobs"]
    for job in ("linux", "others"):
        versions = tests[job]["strategy"]["matrix"]["python"]
        assert versions[0] == PROJECT["requires-python"].removeprefix(">=")
        assert versions == [line.rpartition(" ")[2] for line in PROJECT["classifiers"] if "Python :: 3." in line]
    systems = {line.split(" :: ")[-1].lower() for line in PROJECT["classifiers"] if line.startswith("Operating System")}
    others = {name.removesuffix("-latest") for name in tests["others"]["strategy"]["matrix"]["system"]}
    assert systems == {"linux", *others}
    release = yaml.safe_load(text_of(".github/workflows/release.yml"))["jobs"]
    lines = [step.get("run", "") for jobs in (tests, release) for job in jobs.values() for step in job["steps"]]
    started = {word for line in lines for word in re.findall(r"^\.ci/\w+$", line)}
    assert started == {f".ci/{path.name}" for path in (ROOT / ".ci").iterdir()}
    extras = set(PROJECT["optional-dependencies"])
    asked = [found.split(",") for line in lines for found in re.findall(r"\.\[(.*?)\]", line)]
    assert asked and all(set(each) <= extras for each in asked)


def test_forms_of_issues_ask_for_what_there_is(yaml):
    forms = {path.stem: yaml.safe_load(path.read_text()) for path in (ROOT / ".github/ISSUE_TEMPLATE").iterdir()}
    assert set(forms) == {"bug", "device", "feature", "config"}
    del forms["config"]
    for form in forms.values():
        assert form["name"] and form["description"]
        asked = [item for item in form["body"] if item["type"] != "markdown"]
        assert len({item["id"] for item in asked}) == len(asked)
        assert any(item["validations"]["required"] for item in asked)
    assert "pyedmcl doctor --self-test" in text_of(".github/ISSUE_TEMPLATE/device.yml")


def test_images_install_extras_that_there_are():
    for name in ("Dockerfile", "Dockerfile.nvidia"):
        (extras,) = re.findall(r'"/source\[(.*?)\]"', text_of(f"docker/{name}"))
        assert set(extras.split(",")) <= set(PROJECT["optional-dependencies"])


def test_selected_tests_are_there():
    named = re.findall(r"tests/[\w/]+\.py", text_of(".ci/package"))
    assert len(named) > 3 and all((ROOT / path).is_file() for path in named)
