"""How Sphinx builds the site. It reads the staged pages (staging.py), not docs/ itself."""

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
# The theme's own fonts are those of the system: nothing is fetched from elsewhere.
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f5f8b", "color-brand-content": "#1f5f8b"},
    "dark_css_variables": {"color-brand-primary": "#7cc0ec", "color-brand-content": "#7cc0ec"},
}
