"""Sphinx settings: the pages of this folder, built without fetching anything."""

project = "fewest"
author = "The fewest developers"
extensions = ["myst_parser", "sphinx.ext.autodoc", "numpydoc"]
exclude_patterns = ["_build"]
html_theme = "pydata_sphinx_theme"
html_theme_options = {"navigation_with_keys": False}
html_show_sourcelink = False
myst_heading_anchors = 3
numpydoc_show_class_members = False
nitpicky = False
