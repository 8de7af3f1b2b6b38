"""Notebooks to take along: each page of one links to a file for Jupyter beside it, to Colab and to Binder.

Files for Jupyter are made while the site is built, with a first cell that installs the package. Colab opens that file
of the branch on which the site lies, and Binder makes its own of the Python file (.binder in the repository).
"""

from __future__ import annotations

from pathlib import Path

import jupytext
from nbformat.v4 import new_code_cell
from repository import URL

#: The branch of the repository that holds the site, as .github/workflows/release.yml pushes it.
BRANCH = "gh-pages"
INSTALL = f"%pip install -q 'pyedmcl[cpu,plot,io] @ git+{URL}'"
OWNER_AND_NAME = "/".join(URL.split("/")[-2:])


def setup(app):
    app.connect("source-read", add_links)
    app.connect("build-finished", write_notebooks)
    return {"parallel_read_safe": True}


def names(app):
    return sorted(path.stem for path in (Path(app.srcdir) / "notebooks").glob("[0-9]_*.py"))


def add_links(app, docname, source):
    """A line of links below the title of a notebook."""
    name = docname.removeprefix("notebooks/")
    if docname.startswith("notebooks/") and name in names(app):
        places = {
            "Open in Colab": f"https://colab.research.google.com/github/{OWNER_AND_NAME}/blob/{BRANCH}/notebooks/{name}.ipynb",
            "Open in Binder": f"https://mybinder.org/v2/gh/{OWNER_AND_NAME}/HEAD?urlpath=lab/tree/docs/notebooks/{name}.ipynb",
        }
        links = [f'<a class="button" href="{name}.ipynb" download>Download for Jupyter</a>']
        links += [f'<a class="button" href="{url}">{label}</a>' for label, url in places.items()]
        title, rest = source[0].split("\n#\n", 1)
        source[0] = f"{title}\n#\n# {' '.join(links)}\n#\n{rest}"


def write_notebooks(app, exception):
    if exception is None and app.builder.format == "html":
        for name in names(app):
            notebook = jupytext.read(Path(app.srcdir) / "notebooks" / f"{name}.py")
            notebook.cells.insert(1, new_code_cell(INSTALL))
            jupytext.write(notebook, Path(app.outdir) / "notebooks" / f"{name}.ipynb", fmt="ipynb")
