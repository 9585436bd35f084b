"""Settings of Sphinx for the site that ``make docs`` builds; tools/site.py runs it."""

from __future__ import annotations

project = "Bloomery"
author = "The Bloomery authors"
html_title = "Bloomery"
html_theme = "furo"
html_copy_source = False
html_show_copyright = False

extensions = ["myst_parser"]
suppress_warnings = ["misc.highlighting_failure"]  # shortened listings end in "..."

myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4  # pages link to the headings of other pages as GitHub names them
