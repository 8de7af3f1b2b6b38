"""The site: built as strictly as mkdocs can, all links followed, and read in a browser where there is one."""

from __future__ import annotations

import html
import inspect
import os
import re
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
    named = re.findall(r"^::: pyedmcl\.(\w+)$", "\n".join(API.values()), re.MULTILINE)
    assert sorted(set(named) - {"errors"}) == FUNCTIONS  # that one is a module, shown as a whole
    assert len(named) == len(set(named))
    assert "`pyedmcl.__version__`" in API["index.md"]


def test_api_pages_name_every_class_of_a_result():
    named = re.findall(r"^::: pyedmcl\.[\w.]+\.([A-Z]\w+)$", "\n".join(API.values()), re.MULTILINE)
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
    pytest.importorskip("mkdocs", reason="mkdocs builds the site; pip install 'pyedmcl[docs]' brings it")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "PYEDMCL_SITE_EXECUTE": "false", "PYTHONPATH": str(ROOT), "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def pages_of(site):
    """All but the one that is shown for any wrong address: its links begin at the root of a server."""
    return sorted(set(site.rglob("*.html")) - {site / "404.html"})


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


def test_no_markdown_is_left(site):
    paragraph = re.compile(r"<p>(?:(?!</p>).)*</p>", re.DOTALL)
    for path in pages_of(site):
        text = re.sub(r"<(pre|script|style|code)\b.*?</\1>", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
        for found in paragraph.findall(text):
            assert not re.search(r"\n *(?:[*|-]|\d+\.) |\]\(|\]\[|```", found), (path.name, found)


def test_defaults_are_those_of_the_functions(site):
    pages = "".join((site / "api" / name).with_suffix(".html").read_text(encoding="utf-8") for name in API)
    parts = dict(re.findall(r'id="pyedmcl\.(\w+)" class="doc(.*?)(?=id="pyedmcl\.|\Z)', pages, re.DOTALL))
    assert set(FUNCTIONS) <= set(parts)
    for name in FUNCTIONS:
        shown = re.findall(r"<b><code>(\w+)</code></b>(.*?)<div", parts[name], re.DOTALL)
        function = inspect.unwrap(getattr(pyedmcl, name))
        parameters = inspect.signature(function).parameters
        assert set(parameters) <= {parameter for parameter, _ in shown}, name
        for parameter, text in shown:
            default = re.search(r"default:\s*<code>(.*?)</code>", text, re.DOTALL)
            if parameter in parameters and parameters[parameter].kind is not inspect.Parameter.VAR_KEYWORD and default:
                said = html.unescape(re.sub(r"<[^>]*>", "", default[1]))
                assert eval(said, function.__globals__) == parameters[parameter].default, (name, parameter)


def test_pages_in_a_browser(site, tmp_path):
    """No page complains or asks a network for anything, none is wider than a phone, and the search finds."""
    with browser_page(tmp_path) as page:
        page.size(390, 844, mobile=True)
        for path in pages_of(site):
            page.open(path.as_uri())
            assert page.value("document.documentElement.scrollWidth") <= 390, path.name
            assert not page.errors, (path.name, page.errors)
        page.size(1280, 900)
        page.open((site / "index.html").as_uri())
        assert "recurrence" in search(page, "theiler")
        assert not page.errors
        assert not [url for url in page.requests if urlsplit(url).scheme not in ("file", "data", "blob")]


def search(page, words):
    """Addresses of what the search finds, one below the other."""
    page.value(f"""(() => {{
        const input = document.querySelector("input[name=query]")
        input.focus()
        input.value = "{words}"
        input.dispatchEvent(new KeyboardEvent("keyup", {{ bubbles: true }}))
    }})()""")
    found = "[...document.querySelectorAll('.md-search-result__link')]"
    return page.until(f"{found}.map(link => link.getAttribute('href')).join('\\n')")
