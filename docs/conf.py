"""The site: `pip install '.[docs]' && sphinx-build -W docs site`, then open site/index.html.

Nothing is fetched from a network, neither while the site is built nor while it is read. PYEDMCL_SITE_EXECUTE=0 shows
the notebooks without their results.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pyedmcl

sys.path.insert(0, str(Path(__file__).resolve().parent / "hooks"))

project = "pyedmcl"
version = release = pyedmcl.__version__
html_title = f"pyedmcl {version}"

extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    # In docs/hooks.
    "benchmarks",
    "names",
    "notebooks",
    "repository",
]
source_suffix = {".md": "myst-nb", ".py": "myst-nb"}
exclude_patterns = ["conf.py", "hooks", "make_pictures.py", "**/__pycache__"]
suppress_warnings = ["myst.header"]  # design notes may begin a part with a heading of the third level

myst_enable_extensions = ["attrs_block", "colon_fence"]
myst_heading_anchors = 4

nb_custom_formats = {".py": ["jupytext.reads", {"fmt": "py:percent"}]}
nb_execution_mode = "force" if os.environ.get("PYEDMCL_SITE_EXECUTE", "1") == "1" else "off"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 600
nb_merge_streams = True
nb_code_prompt_show = "Show the code"
nb_code_prompt_hide = "Hide the code"

autodoc_typehints = "none"
autodoc_member_order = "bysource"
autosummary_generate = False
numpydoc_show_class_members = False
python_maximum_signature_line_length = 80

html_theme = "pydata_sphinx_theme"
html_static_path = ["assets"]
html_css_files = ["site.css"]
html_domain_indices = False
html_show_search_summary = False  # a page read from a folder may not fetch others
html_show_sourcelink = False
html_copy_source = False
html_show_copyright = False
html_context = {"default_mode": "auto"}
html_theme_options = {
    "show_prev_next": False,
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "navigation_with_keys": False,
    "show_version_warning_banner": False,
    "footer_start": [],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "icon_links": [
        {"name": "Source", "url": "https://github.com/pyedmcl/pyedmcl", "icon": "fa-brands fa-github"},
    ],
}
html_sidebars = {"index": [], "install": [], "gallery": []}
