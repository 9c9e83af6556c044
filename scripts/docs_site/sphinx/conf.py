"""Settings of Sphinx for the site; `scripts/build_site.py` runs it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

BELOW = json.loads(Path(os.environ["LITHIFY_SITE_TOCTREES"]).read_text("utf-8"))
"""What a sidebar shows below a page, as Sphinx reads it, by page."""

version = release = os.environ["LITHIFY_SITE_VERSION"]
project = "Lithify"
author = "the authors of Lithify"
project_copyright = author

extensions = ["myst_parser"]
myst_heading_anchors = 6
nitpicky = True
suppress_warnings = ["misc.highlighting_failure"]  # JSON with `...` in place of the rest
templates_path = ["templates"]

html_theme = "furo"
html_title = f"Lithify {release}"
html_copy_source = False
html_use_index = False
html_show_sphinx = False
html_theme_options: dict[str, Any] = {"top_of_page_buttons": []}
html_sidebars = {
    "**": [
        "sidebar/brand.html",
        "sidebar/search.html",
        "sidebar/scroll-start.html",
        "sidebar/navigation.html",
        "versions.html",
        "sidebar/scroll-end.html",
    ]
}


def add_toctrees(app: Any, page: str, source: list[str]) -> None:
    """Adds to a page, as Sphinx reads it, which pages are below it."""
    source[0] += BELOW.get(page, "")


def setup(app: Any) -> None:
    """Called by Sphinx."""
    app.connect("source-read", add_toctrees)
