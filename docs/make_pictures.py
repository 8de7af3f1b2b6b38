"""Make the pictures of pages anew: python docs/make_pictures.py [PAGE ...]

Runs the code of a page in an empty folder, and keeps those files that the page shows as images/<page>/<file>, smaller.
The page "home" shows what the notebooks draw, in images/home; "report" is a view of a page that pyedmcl.report writes,
for which Chromium is needed. Each file holds a digest of the code that drew it, by which a test sees that it is old.
"""

from __future__ import annotations

import hashlib
import os
import re
import runpy
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image, PngImagePlugin

from pyedmcl.simulate import coupled_maps

DOCS = Path(__file__).resolve().parent
PACKAGE = DOCS.parent / "pyedmcl"
PAGES = ("first-map", "gallery", "home", "report")
WIDTH, WIDE = {"first-map": 900, "gallery": 720}, 1230
#: Notebooks whose pictures are on the home page, and the width of a card there, for sharp screens.
CARDS, CARD_WIDTH = ("1_plankton", "2_neurons", "3_climate", "4_eeg", "5_million_points", "6_migrating"), 640
#: What the page about reports shows, and how large its window is.
REPORT, WINDOW = (
    """
import pyedmcl
from pyedmcl.simulate import coupled_maps

names = ["daphnia", "algae", "perch", "pike", "bacteria", "roach"]
lake = coupled_maps(n_series=6, n_steps=500, seed=3).values
found = pyedmcl.causal_network(dict(zip(names, lake.T)), seed=1)
found.report("report.html", title="A lake", pairs=[("roach", "algae")])
""",
    (1400, 1350),
)


def drawn_by(picture):
    """The code that draws a picture of docs/images, as text: of its page or notebook, and of the package's drawing."""
    folder, name = picture.parent.name, picture.stem
    if folder == "home":
        (notebook,) = (DOCS / "notebooks").glob(f"?_{name}.py")
        own = notebook.read_text(encoding="utf-8")
    else:
        own = REPORT if name == "report" else code_of(folder)
    drawing = sorted((PACKAGE / ("reporting" if name == "report" else "plot")).rglob("*.*"))
    return own + "".join(path.read_text(encoding="utf-8") for path in drawing if path.suffix in (".py", ".js", ".css"))


def digest(picture):
    """Of :func:`drawn_by`."""
    return hashlib.sha256(drawn_by(picture).encode()).hexdigest()[:16]


def pictures():
    """All files that this program makes."""
    folders = (DOCS / "images" / page for page in PAGES if page != "report")
    return [*(path for folder in folders for path in sorted(folder.glob("*.png"))), DOCS / "images" / "report.png"]


def code_of(page):
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    return "\n".join(re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))


def make(name):
    shown = re.findall(rf"\(images/{name}/([\w-]+\.png)\)", (DOCS / f"{name}.md").read_text(encoding="utf-8"))
    np.savetxt("data.csv", coupled_maps(n_series=3, n_steps=200).values, delimiter=",", header="a,b,c", comments="")
    exec(compile(code_of(name), name, "exec"), {"__name__": name})
    for file in shown:
        keep(file, DOCS / "images" / name / file, WIDTH[name])


def make_home():
    for name in CARDS:
        runpy.run_path(str(DOCS / "notebooks" / f"{name}.py"), run_name="__main__")
        file = f"{name.partition('_')[2]}.png"
        keep(file, DOCS / "images" / "home" / file, CARD_WIDTH)


def make_report():
    exec(compile(REPORT, "report", "exec"), {})
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))))
    size = ",".join(map(str, WINDOW))
    options = ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={size}")
    command = [browser, *options, "--screenshot=report.png", Path("report.html").resolve().as_uri()]
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    keep("report.png", DOCS / "images" / "report.png", WIDE)


def keep(file, place, width):
    place.parent.mkdir(exist_ok=True)
    picture = Image.open(file).convert("RGB")
    picture.thumbnail((width, width))
    note = PngImagePlugin.PngInfo()
    note.add_text("code", digest(place))
    picture.save(place, optimize=True, pnginfo=note)  # in all colours: with a palette the bars of colour have bands
    print(place, place.stat().st_size)


if __name__ == "__main__":
    for page in sys.argv[1:] or PAGES:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            {"home": make_home, "report": make_report}.get(page, lambda page=page: make(page))()
            os.chdir(DOCS)
