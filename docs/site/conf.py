"""How Sphinx builds the site. It reads the staged pages (staging.py), not docs/ itself.

Sphinx, with MyST for Markdown and the theme Furo, since it is strict by itself (anchors, pages in
no menu), its search works on files without a server, and it is kept. MkDocs needs extensions for
the first and a server for the second, and had its last release in 2024.
"""

from __future__ import annotations

from deepum import __version__

project = "deepum"
release = __version__
html_title = f"deepum {__version__}"

extensions = ["myst_parser"]
myst_enable_extensions = ["deflist"]
myst_heading_anchors = 4
exclude_patterns: list[str] = []
nitpicky = True
# Options begin with two hyphens, which smart quotes would make a dash.
smartquotes = False
highlight_language = "text"

html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
# Summaries of what a search finds are fetched, which browsers refuse on files.
html_show_search_summary = False
# The theme's own fonts are those of the system: nothing is fetched from elsewhere.
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f5f8b", "color-brand-content": "#1f5f8b"},
    "dark_css_variables": {"color-brand-primary": "#7cc0ec", "color-brand-content": "#7cc0ec"},
}
