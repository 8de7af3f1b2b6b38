"""Reports in a browser: they draw, sort, slide, zoom by mouse and keys, fit a phone, and stay silent."""

from __future__ import annotations

import base64

import numpy as np
import pytest
from browser_helpers import browser_page
from reporting_parts import ODD, ccm_matrix_result, skills, xmap_result
from result_makers import made

pytest.importorskip("matplotlib", reason="matplotlib is not installed; pip install 'pyedmcl[report]' brings it")

import pyedmcl
from pyedmcl.significance.xmap_significance import XmapSignificance
from pyedmcl.simulate import coupled_maps

FIRST_ROW = "[...document.querySelector('tbody').rows[0].cells].map((cell) => cell.textContent)"
COLUMN = "[...document.querySelector('tbody').rows].map((row) => row.cells[{}].textContent)"
LINKS = "document.querySelectorAll('.link').length"
READING = "document.querySelector('.map .reading').textContent"
#: Text whose contrast with the ground behind it is below AA of WCAG 2.1 (4.5, or 3 for large letters).
FAINT = """(() => {
  const parts = (colour) => (colour.match(/[\\d.]+/g) || []).map(Number);
  const light = (rgb) => rgb.slice(0, 3).map((one) => one / 255).map(
    (one) => (one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4)
  ).reduce((sum, one, i) => sum + [0.2126, 0.7152, 0.0722][i] * one, 0);
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parts(getComputedStyle(at).backgroundColor);
      if (colour.length && colour[3] !== 0) return colour;
    }
    return [255, 255, 255];
  };
  const faint = [];
  for (const element of document.querySelectorAll("body *:not(script):not(noscript):not(option)")) {
    const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
    if (!own || !element.getClientRects().length) continue;
    const style = getComputedStyle(element), drawn = element instanceof SVGElement;
    const [a, b] = [light(parts(drawn ? style.fill : style.color)), light(ground(element))].sort((x, y) => y - x);
    const large = parseFloat(style.fontSize) >= 24;
    if ((a + 0.05) / (b + 0.05) < (large ? 3 : 4.5)) faint.push(element.outerHTML.slice(0, 80));
  }
  return faint;
})()"""
#: How many different colours the map has.
COLOURS = """(() => {
  const canvas = document.querySelector('canvas'), pen = canvas.getContext('2d');
  const pixels = new Uint32Array(pen.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
  return new Set(pixels).size;
})()"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    with browser_page(tmp_path_factory.mktemp("browser")) as page:
        yield page


def show(page, path, width=1100, height=900, **more):
    page.errors.clear()
    page.requests.clear()
    page.size(width, height, **more)
    page.open(path.as_uri())


def silent(page):
    page.value("1")  # what was on its way is there now
    assert page.errors == []
    assert [url[:60] for url in page.requests if not url.startswith(("file:", "data:"))] == []


def test_a_table_sorts_and_a_slider_slides(page, tmp_path):
    show(page, ccm_matrix_result(8).report(tmp_path / "r.html"))
    rho = list(map(float, page.value(COLUMN.format(2))))
    assert rho == sorted(rho, reverse=True)
    page.click("th:nth-child(5) button")
    trend = list(map(float, page.value(COLUMN.format(4))))
    assert trend == sorted(trend, reverse=True) and trend[0] > trend[-1], "the steadiest first"
    for order in (True, False):
        page.click("th:nth-child(3) button")
        assert list(map(float, page.value(COLUMN.format(2)))) == sorted(rho, reverse=order)
    page.click("th:nth-child(1) button")
    causes = page.value(COLUMN.format(0))
    assert causes == sorted(causes)
    assert page.value("document.querySelector('th').getAttribute('aria-sort')") == "ascending"
    before = page.value(LINKS)
    page.value("document.querySelector('.threshold').focus()")
    for _ in range(3):
        page.press("ArrowLeft")
    slid = page.value("document.querySelector('.threshold').value")
    page.value("(() => { const it = document.querySelector('.threshold'); it.value = 900;"
            " it.dispatchEvent(new Event('input')); })()")  # fmt: skip
    fewer = page.value(LINKS)
    assert 0 < fewer < before and float(slid) < 900
    assert f"{fewer} of 56 links" in page.value("document.querySelector('.told').textContent")
    silent(page)


def test_p_values_sort_upwards_and_links_that_were_tested_can_be_chosen(page, tmp_path):
    tested = pyedmcl.xmap_significance(coupled_maps(n_series=5, n_steps=120, seed=2).values, E=2, n=99, seed=1)
    show(page, tested.report(tmp_path / "r.html"))
    heads = page.value("[...document.querySelectorAll('th')].map((head) => head.textContent.trim())")
    place = next(at for at, head in enumerate(heads) if head.startswith("p"))
    page.click(f"th:nth-child({place + 1}) button")
    p = list(map(float, page.value(COLUMN.format(place))))
    assert p == sorted(p) and p[0] < p[-1], "of p-values the smallest first"
    few = page.value(LINKS)
    page.click(".tested")
    assert page.value(LINKS) > few, "without the test there are more"
    silent(page)


def test_a_table_is_searched_and_downloaded(page, tmp_path):
    show(page, ccm_matrix_result(8).report(tmp_path / "r.html"))
    page.command("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    page.click("a[download]")
    file = tmp_path / "s1-2.csv"
    for _ in range(200):
        if file.exists():
            break
        page.value("new Promise((done) => setTimeout(done, 50))")
    rows = file.read_text().splitlines()
    assert rows[0].startswith("cause,effect,library,target,rho,gain") and len(rows) == 57
    page.value("(() => { const it = document.querySelector('.search'); it.value = 'X7';"
               " it.dispatchEvent(new Event('input')); })()")  # fmt: skip
    assert page.value("document.querySelectorAll('tbody tr:not([hidden])').length") == 14, "x7 as cause or effect"
    silent(page)


def test_a_map_is_read_and_zoomed_by_keys_and_mouse(page, tmp_path):
    result = xmap_result(8)
    show(page, result.report(tmp_path / "r.html"))
    assert page.value(COLOURS) > 20
    page.value("document.querySelector('canvas').focus()")
    page.press("ArrowRight")
    page.press("ArrowRight")
    assert page.value(READING) == f"x1 → x0: skill (rho) {float(f'{result.rho[0, 1]:.3g}')!r}"
    page.press("ArrowDown")
    assert page.value(READING) == "x1 itself"
    whole = page.value("document.querySelector('canvas').toDataURL().length")
    page.press("+")
    page.press("+")
    assert page.value("document.querySelector('canvas').toDataURL().length") != whole
    page.press("0")
    page.click(".closer")
    page.click(".whole")
    page.click("canvas")
    assert "→" in page.value(READING) or "itself" in page.value(READING)
    silent(page)


def test_what_is_read_has_no_more_digits_than_the_page_knows(page, tmp_path):
    p = np.array([[np.nan, 1e-9, 0.5], [0.01, np.nan, 1.0], [0.25, 0.125, np.nan]])
    result = XmapSignificance(skills(3), p, p, np.full(3, 4), ("a", "b", "c"), 99, "phase", 1, np.full((3, 3), 99))
    show(page, result.report(tmp_path / "r.html"))
    page.value("document.querySelector('canvas').focus()")
    page.press("ArrowRight")
    page.press("ArrowRight")
    assert page.value(READING).endswith("p-value within 0.0001 of 0")
    silent(page)


def test_curves_are_added_and_removed(page, tmp_path):
    show(page, ccm_matrix_result(6).report(tmp_path / "r.html", pairs=[("x1", "x0")]))
    charts = "document.querySelectorAll('.chart').length"
    assert page.value(charts) == 1
    assert page.value("[...document.querySelectorAll('.legend li')].map((item) => item.textContent)") == [
        "x1 → x0", "x0 → x1"
    ]  # fmt: skip
    page.value("(() => { const it = document.querySelector('select.pair'); it.selectedIndex = 4;"
            " it.dispatchEvent(new Event('change')); })()")  # fmt: skip
    assert page.value(charts) == 2
    page.click(".chart .close")
    assert page.value(charts) == 1
    assert page.value("document.querySelectorAll('.chart svg path').length") > 5
    silent(page)


def test_odd_names_run_nothing(page, tmp_path):
    show(page, ccm_matrix_result(8, ODD).report(tmp_path / "r.html", title=ODD[1]))
    assert page.value("document.querySelectorAll(\"script:not([type='application/json'])\").length") == 1
    assert page.value("document.querySelectorAll('img:not([src^=data])').length") == 0
    assert page.value("document.title") == ODD[1] == page.value("document.querySelector('h1').textContent")
    assert ODD[0] in page.value(FIRST_ROW.replace("rows[0]", f"rows[{_row_of(page, ODD[0])}]"))
    page.value("document.querySelector('.node').focus()")
    assert page.value("document.querySelector('.network .reading').textContent").strip()
    silent(page)


def _row_of(page, name):
    return page.value(COLUMN.format(0)).index(name)


def test_five_hundred_series_fit_a_screen_a_phone_and_paper(page, tmp_path):
    n, rng = 500, np.random.default_rng(1)
    p = rng.random((n, n))
    names = tuple(f"neuron {i:03d}" for i in range(n))
    result = XmapSignificance(skills(n), p, p, np.full(n, 4), names, 99, "phase", 1, np.full((n, n), 99))
    path = result.report(tmp_path / "r.html")
    show(page, path)
    assert page.value(COLOURS) > 100
    silent(page)
    show(page, path, 360, 740, mobile=True)
    assert page.value("document.documentElement.scrollWidth <= innerWidth"), "nothing is wider than a phone"
    assert page.value("document.querySelector('canvas').clientWidth") > 300
    printed = page.command("Page.printToPDF", printBackground=False)
    assert base64.b64decode(printed["data"]).startswith(b"%PDF")
    assert page.value("document.querySelectorAll('tbody tr').length") == 500
    silent(page)


def themed(page, name):
    page.command("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])


@pytest.fixture(scope="module")
def found(one_device):
    values = coupled_maps(n_series=8, n_steps=400).values
    return pyedmcl.causal_network(values, E=3, n=99, seed=1, device=one_device)


@pytest.mark.parametrize("width", [1400, 400])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_network_is_whole_and_legible(page, tmp_path, found, width, theme):
    """Nothing wider than the screen, no faint word, every link drawn, and the evidence beside its reasons."""
    themed(page, theme)
    path = pyedmcl.report([found, xmap_result(), made("SimplexResult", None)], tmp_path / "r.html")
    show(page, path, width, 900, mobile=width < 800)
    assert page.value("document.documentElement.scrollWidth") <= width
    assert page.value(FAINT) == []
    drawn = page.value("document.querySelector('.network').querySelectorAll('.link').length")
    assert drawn == len(found.rows(["direct", "link"])) > 0
    assert f"all {drawn} links" in page.value("document.querySelector('.network .told').textContent")
    room = page.value("(() => { const it = document.querySelector('.wide .scroll');"
                      " return [it.scrollWidth, it.clientWidth]; })()")  # fmt: skip
    assert room[0] <= room[1] or width < 800, "the evidence has all its columns on the screen"
    ground = page.value("getComputedStyle(document.body).backgroundColor")
    assert (ground == "rgb(255, 255, 255)") == (theme == "light")
    silent(page)
    themed(page, "light")


def test_paper_is_white_when_the_page_is_dark(page, tmp_path, found):
    themed(page, "dark")
    show(page, found.report(tmp_path / "r.html"))
    stroke = "document.querySelector('.link path').getAttribute('stroke')"
    dark = page.value(stroke)
    page.value("dispatchEvent(new Event('beforeprint'))")
    paper = page.value(stroke)
    page.value("dispatchEvent(new Event('afterprint'))")
    assert dark == page.value(stroke) != paper
    page.command("Emulation.setEmulatedMedia", media="print",
                 features=[{"name": "prefers-color-scheme", "value": "dark"}])  # fmt: skip
    assert page.value("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    page.command("Emulation.setEmulatedMedia", media="")
    themed(page, "light")
