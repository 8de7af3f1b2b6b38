"""Make the pictures of pages anew: python docs/make_pictures.py [PAGE ...]

Runs the code of a page in an empty folder, and keeps those files that the page shows as images/<page>/<file>, smaller.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from pyedmcl.simulate import coupled_maps

DOCS = Path(__file__).resolve().parent
PAGES = ("first-map", "gallery")
WIDTH = 900


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
            picture = Image.open(file).convert("RGB")
            picture.thumbnail((WIDTH, WIDTH))
            picture.quantize(200).save(kept / file, optimize=True)
            print(kept / file, (kept / file).stat().st_size)
        os.chdir(DOCS)


if __name__ == "__main__":
    for page in sys.argv[1:] or PAGES:
        make(page)
