"""Sphinx settings: the pages of this folder, the gallery and the reference, built without fetching anything."""

import sys
from pathlib import Path

import matplotlib

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
matplotlib.use("agg")
matplotlib.rcParams["savefig.bbox"] = "tight"

project = "fewest"
author = "The fewest developers"
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "made_pages",
]
exclude_patterns = ["_build", "_ext", "_templates", "made", "**/GALLERY_HEADER.rst", "**/*.ipynb", "**/*.py"]
templates_path = ["_templates"]
html_title = "fewest"
html_theme = "pydata_sphinx_theme"
html_theme_options = {
    "navigation_with_keys": False,
    "header_links_before_dropdown": 7,
    "navbar_align": "left",
    "show_prev_next": False,
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": []}
html_static_path = ["_static"]
html_css_files = ["pages.css"]
html_show_sourcelink = False
copyright = "the fewest developers, BSD-3-Clause"
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
nitpicky = False
default_role = "py:obj"  # names between single backquotes in docstrings are links where they can be
smartquotes = False  # sentences, options and code in running text stay as they are
toc_object_entries_show_parents = "hide"

numpydoc_show_class_members = False
autosummary_generate = True
autosummary_imported_members = True
# Of classes of others nothing is repeated here.
autodoc_default_options = {
    "members": True,
    "inherited-members": "str,int,tuple,Exception,Sequence,BaseEstimator,ClassifierMixin,_MetadataRequester",
    "exclude-members": "set_fit_request,set_predict_request,set_score_request",
}

sphinx_gallery_conf = {
    "examples_dirs": ["../examples/gallery", "../examples/notebooks"],
    "gallery_dirs": ["gallery", "notebooks"],
    "filename_pattern": r"\.py$",
    "within_subsection_order": "made_pages.SimpleQuestionsFirst",
    "abort_on_example_error": True,
    "reset_modules": (),  # else the setting of matplotlib above is lost
    "download_all_examples": False,
    "show_signature": False,
    "min_reported_time": 1e9,
    "write_computation_times": False,
    "remove_config_comments": True,
    "capture_repr": ("_repr_html_", "__str__"),
    "ignore_repr_types": r"matplotlib|fewest\.reporting\.plots",
    "nested_sections": False,
}
