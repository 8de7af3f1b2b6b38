"""The site: built without a warning, all links followed, and read in a browser where there is one."""

from __future__ import annotations

import inspect
import os
import re
import runpy
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from browser_helpers import browser_page

import pyedmcl
from pyedmcl.functions import RESULTS

ROOT = Path(__file__).resolve().parents[2]
API = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs" / "api").glob("*.md")}
FUNCTIONS = sorted(set(pyedmcl.__all__) - {"__version__"})


def test_api_pages_name_every_public_name_once():
    named = re.findall(r"^\.\. auto\w+:: pyedmcl\.(\w+)$", "\n".join(API.values()), re.MULTILINE)
    assert sorted(set(named) - {"errors"}) == FUNCTIONS  # that one is a module, shown as a whole
    assert len(named) == len(set(named))
    assert "`pyedmcl.__version__`" in API["index.md"]


def test_api_pages_name_every_class_of_a_result():
    named = re.findall(r"^\.\. autoclass:: pyedmcl\.[\w.]+\.([A-Z]\w+)$", "\n".join(API.values()), re.MULTILINE)
    assert len(named) == len(set(named))
    assert set(RESULTS) <= set(named)


class Links(HTMLParser):
    """Where the links of a page lead, its anchors, and what it loads."""

    def __init__(self):
        super().__init__()
        self.links, self.anchors, self.loaded = [], set(), []

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.anchors.update(filter(None, (found.get("id"), found.get("name"))))
        if tag == "a" and found.get("href"):
            self.links.append(found["href"])
        elif tag in ("script", "img", "link", "source", "iframe"):
            self.loaded += filter(None, (found.get("src"), found.get("href")))


def read_links(path):
    links = Links()
    links.feed(path.read_text(encoding="utf-8"))
    return links


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Folder of the site. Its notebooks are not executed: their own tests do that."""
    for package in ("sphinx", "myst_nb"):
        pytest.importorskip(package, reason=f"{package} builds the site; pip install 'pyedmcl[docs]' brings it")
    folder, checkout = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("checkout")
    for path in ROOT.iterdir():  # pages are copied into docs/ meanwhile, and other processes build at the same time
        if path.name == "docs":
            shutil.copytree(path, checkout / "docs")
        else:
            (checkout / path.name).symlink_to(path)
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "docs", str(folder)],
        cwd=checkout,
        env={**os.environ, "PYEDMCL_SITE_EXECUTE": "0", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def pages_of(site):
    """All but files of the theme."""
    return sorted(path for path in site.rglob("*.html") if "_static" not in path.parts)


def test_every_link_leads_somewhere_and_nothing_is_loaded_from_a_network(site):
    pages = {path: read_links(path) for path in pages_of(site)}
    assert len(pages) > 40
    pointed_at = set()
    for path, page in pages.items():
        assert not [url for url in page.loaded if urlsplit(url).netloc], path
        for url in page.links + page.loaded:
            parts = urlsplit(url)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            assert target.is_file(), f"{path.name}: {url}"
            if parts.fragment and target in pages:
                assert unquote(parts.fragment) in pages[target].anchors, f"{path.name}: {url}"
                if target != path:
                    pointed_at.add(unquote(parts.fragment))
    assert {f"pyedmcl.{name}" for name in FUNCTIONS} <= pointed_at
    assert "api/maps.html#pyedmcl.xmap" in pages[site / "python.html"].links


def test_each_notebook_can_be_taken_along(site):
    """As a file for Jupyter that holds all of its cells, and by links to Colab and Binder that name this repository."""
    jupytext = pytest.importorskip("jupytext", reason="jupytext is not installed; the extra docs brings it")
    notebooks = sorted((ROOT / "docs" / "notebooks").glob("[0-9]_*.py"))
    assert len(notebooks) > 6
    for path in notebooks:
        links = read_links(site / "notebooks" / f"{path.stem}.html").links
        assert f"{path.stem}.ipynb" in links
        for host in ("colab.research.google.com", "mybinder.org"):
            (url,) = (link for link in links if urlsplit(link).netloc == host)
            assert "/pyedmcl/pyedmcl/" in url and url.endswith(f"notebooks/{path.stem}.ipynb")
        written, own = jupytext.read(site / "notebooks" / f"{path.stem}.ipynb"), jupytext.read(path)
        held, expected = ([cell.source for cell in one.cells] for one in (written, own))
        assert held.pop(1).startswith("%pip install") and held == expected


def test_no_markdown_is_left(site):
    paragraph = re.compile(r"<p>(?:(?!</p>).)*</p>", re.DOTALL)
    for path in pages_of(site):
        text = re.sub(r"<(pre|script|style|code)\b.*?</\1>", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        for found in paragraph.findall(text):
            assert not re.search(r"\n *(?:[*|-]|\d+\.) |\]\(|\]\[|```|:::", found), (path.name, found)


def test_every_argument_is_described(site):
    pages = "".join((site / "api" / name).with_suffix(".html").read_text(encoding="utf-8") for name in API)
    entry = re.compile(r'<dt class="sig[^>]*id="pyedmcl\.(\w+)">(.*?)(?=<dt class="sig[^>]*id="|\Z)', re.DOTALL)
    parts = dict(entry.findall(pages))
    for name in FUNCTIONS:
        heads = re.findall(r"<dt><strong>(.*?)</strong>", parts[name])
        described = {word for head in heads for word in re.split(r",\s*", re.sub(r"<[^>]*>", "", head))}
        assert set(inspect.signature(getattr(pyedmcl, name)).parameters) <= described, name


#: Widths of a phone and of a desk, each in daylight and in the dark.
SCREENS = [(400, 844), (1400, 900)]

#: Blocks of code whose text is wider than what is shown of it: their lines would be cut.
CUT = "[...document.querySelectorAll('.bd-content div.highlight pre')].filter(\
it => !it.closest('.highlight-text') && it.scrollWidth > it.clientWidth + 1).map(it => it.innerText)"

#: Words whose contrast with what lies behind them is below 4.5, and below 3 where they are large (WCAG 2, level AA).
FAINT = """(() => {
    const numbers = colour => colour.match(/[\\d.]+/g).map(Number)
    const linear = v => v / 255 <= .03928 ? v / 255 / 12.92 : ((v / 255 + .055) / 1.055) ** 2.4
    const light = ([r, g, b]) => .2126 * linear(r) + .7152 * linear(g) + .0722 * linear(b)
    const behind = it => { for (; it; it = it.parentElement) {
        const colour = numbers(getComputedStyle(it).backgroundColor)
        if ((colour[3] ?? 1) > .9) return colour } return [255, 255, 255] }
    const walker = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT)
    const faint = new Set()
    while (walker.nextNode()) {
        const it = walker.currentNode.parentElement, style = getComputedStyle(it)
        const seen = it.checkVisibility({ opacityProperty: true, visibilityProperty: true })
        if (!walker.currentNode.data.trim() || !seen) continue
        const [a, b] = [light(numbers(style.color)), light(behind(it))].sort((x, y) => y - x)
        if ((a + .05) / (b + .05) < (parseFloat(style.fontSize) >= 24 ? 3 : 4.5))
            faint.add(walker.currentNode.data.trim().slice(0, 40) + ' ' + style.color)
    }
    return [...faint]
})()"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width, height", SCREENS)
def test_pages_in_a_browser(site, tmp_path, width, height, scheme):
    """No page complains, scrolls sideways, cuts code, is hard to read, or asks a network for anything."""
    with browser_page(tmp_path) as page:
        page.size(width, height, mobile=width < 800)
        page.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        for path in pages_of(site):
            page.open(path.as_uri())
            assert page.value("document.documentElement.scrollWidth") <= width, path.name
            assert not page.errors, (path.name, page.errors)
            assert not page.value(CUT), (path.name, page.value(CUT))
            assert not page.value(FAINT), (path.name, page.value(FAINT))
        assert not [url for url in page.requests if urlsplit(url).scheme not in ("file", "data", "blob")]


def test_the_search_finds(site, tmp_path):
    with browser_page(tmp_path) as page:
        page.open((site / "search.html").as_uri() + "?q=theiler")
        found = "[...document.querySelectorAll('#search-results li a')].map(link => link.getAttribute('href'))"
        page.until(f"{found}.includes('recurrence.html')")
        assert not page.errors


def test_pictures_are_no_older_than_the_code_that_draws_them():
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed; matplotlib brings it")
    program = runpy.run_path(str(ROOT / "docs" / "make_pictures.py"))
    pictures = program["pictures"]()
    assert len(pictures) > 20
    old = [path.name for path in pictures if image.open(path).info.get("code") != program["digest"](path)]
    assert not old, f"run python docs/make_pictures.py, and look at {old}"


def test_no_page_is_heavy(site):
    """A page and the pictures on it; the theme's own files are the same for all pages."""
    for path in pages_of(site):
        shown = {path, *((path.parent / unquote(url)) for url in read_links(path).loaded if "_images" in url)}
        assert sum(each.stat().st_size for each in shown) < 1e6, path.name
