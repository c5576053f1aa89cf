"""Reports for people: one HTML page that stands alone, and trees as drawings and in words."""

from fewest.reporting._audit import audit_html
from fewest.reporting._page import html
from fewest.reporting._tree import explanation_tree_svg, tree_svg
from fewest.reporting._tree_text import tree_text

__all__ = ["audit_html", "explanation_tree_svg", "html", "tree_svg", "tree_text"]
