"""Make the pictures of pages anew: python docs/make_pictures.py [PAGE ...]

Runs the code of a page in an empty folder, and keeps those files that the page shows as images/<page>/<file>, smaller.
The page "home" shows what the notebooks draw, in images/home.
"""

from __future__ import annotations

import os
import re
import runpy
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from pyedmcl.simulate import coupled_maps

DOCS = Path(__file__).resolve().parent
PAGES = ("first-map", "gallery", "home")
WIDTH = 900
#: Notebooks whose pictures are on the home page, and the width of a card there, for sharp screens.
CARDS, CARD_WIDTH = ("1_plankton", "2_neurons", "3_climate", "4_eeg", "5_million_points", "6_migrating"), 640


def make(name):
    text = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    shown = re.findall(rf"\(images/{name}/([\w-]+\.png)\)", text)
    kept = DOCS / "images" / name
    kept.mkdir(exist_ok=True)
    code = "\n".join(re.findall(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        np.savetxt("data.csv", coupled_maps(n_series=3, n_steps=200).values, delimiter=",", header="a,b,c", comments="")
        exec(compile(code, name, "exec"), {"__name__": name})
        for file in shown:
            keep(file, kept / file, WIDTH)
        os.chdir(DOCS)


def make_home():
    kept = DOCS / "images" / "home"
    kept.mkdir(exist_ok=True)
    for name in CARDS:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            runpy.run_path(str(DOCS / "notebooks" / f"{name}.py"), run_name="__main__")
            file = f"{name.partition('_')[2]}.png"
            keep(file, kept / file, CARD_WIDTH)
            os.chdir(DOCS)


def keep(file, place, width):
    picture = Image.open(file).convert("RGB")
    picture.thumbnail((width, width))
    picture.save(place, optimize=True)  # in all colours: with a palette the bars of colour have bands
    print(place, place.stat().st_size)


if __name__ == "__main__":
    for page in sys.argv[1:] or PAGES:
        make_home() if page == "home" else make(page)
