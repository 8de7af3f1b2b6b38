"""Results made up for reports, without a device, and what a page says of them."""

from __future__ import annotations

import base64
import csv
import io
import json
from html.parser import HTMLParser

import numpy as np

from pyedmcl.convergence.results import CcmMatrixResult
from pyedmcl.crossmap.results import XmapResult

#: Names that would run, end an element or a script, turn the text around, or be a formula in a spreadsheet.
ODD = (
    "<script>alert(1)</script>", "</script><img src=x onerror=alert(2)>", "\"><b>it's</b>", "=cmd|calc", "&amp;",
    "ä\u202e\0\n$x$", "<!--", "x" * 300,
)  # fmt: skip


def skills(n, seed=0):
    """A map with two groups of series that are alike."""
    rng = np.random.default_rng(seed)
    group = np.arange(n) % 2
    return np.tanh(rng.normal(0.1, 0.1, (n, n)) + 0.6 * (group[:, None] == group)).astype(np.float32)


def xmap_result(n=6, names=None, **more):
    names = tuple(f"x{i}" for i in range(n)) if names is None else tuple(names)
    return XmapResult(skills(n), np.arange(n) % 4 + 2, names, **more)


def ccm_matrix_result(n=5, names=None):
    """Skill that grows with the library, but for the pair from x1 to x0."""
    names = tuple(f"x{i}" for i in range(n)) if names is None else tuple(names)
    sizes, rho = np.array([20, 50, 100, 200, 400]), skills(n).astype(np.float64)
    np.fill_diagonal(rho, np.nan)
    matrices = []
    for size in sizes:
        matrix = rho * (1 - np.exp(-size / 100))
        matrix[0, 1] = 0.9 - size / 1000
        matrices.append(matrix)
    return CcmMatrixResult(sizes, tuple(matrices), np.full(n, 3), names, 10, 1, {"version": "0.1.0", "seed": 1})


class Page(HTMLParser):
    """Elements of a page: tables as rows of text, data of figures, links, scripts, images."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.contents, self.links, self.scripts, self.tags, self.words = [], [], [], [], [], []
        self._cell = self._script = None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append((tag, attributes))
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self._cell = []
        elif tag == "a":
            self.links.append(attributes)
        elif tag == "script":
            self._script = attributes.get("type", "program")

    def handle_endtag(self, tag):
        if tag in ("td", "th"):
            self.tables[-1][-1].append("".join(self._cell))
            self._cell = None
        elif tag == "script":
            self._script = None

    def handle_data(self, data):
        if self._script == "application/json":
            self.contents.append(json.loads(data))
        elif self._script:
            self.scripts.append(data)
        elif self._cell is not None:
            self._cell.append(data)
        else:
            self.words.append(data)

    @property
    def text(self):
        return " ".join("".join(self.words).split())

    def content(self, key):
        """Data of the first figure that has something of this name."""
        return next(one for one in self.contents if key in one)

    def csv(self, number=0):
        """Rows of a table's download."""
        address = [link["href"] for link in self.links if "download" in link][number]
        head, _, data = address.partition(",")
        assert head == "data:text/csv;charset=utf-8;base64"
        return list(csv.reader(io.StringIO(base64.b64decode(data).decode(), newline="")))


def read(path):
    return Page(path.read_text(encoding="utf-8"))


def cells_of(content, layer=0):
    """Cells of a map as the page's script unpacks them."""
    one = content["layers"][layer]
    steps = np.frombuffer(base64.b64decode(one["cells"]), "<i2").reshape(content["cells"])
    return np.where(steps == -32768, np.nan, one["low"] + (steps.astype(float) + 32767) * one["step"])
