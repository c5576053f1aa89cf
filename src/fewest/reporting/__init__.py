"""Reports for people: one HTML page that stands alone, reasons and a letter, trees as drawings and in words."""

from fewest.reporting._audit import audit_html
from fewest.reporting._codes import Code, Codes
from fewest.reporting._letter import Letter, LetterError, letter
from fewest.reporting._page import html
from fewest.reporting._reasons import Reason, Reasons, reasons
from fewest.reporting._tree import explanation_tree_svg, tree_svg
from fewest.reporting._tree_text import tree_text

__all__ = [
    "Code",
    "Codes",
    "Letter",
    "LetterError",
    "Reason",
    "Reasons",
    "audit_html",
    "explanation_tree_svg",
    "html",
    "letter",
    "reasons",
    "tree_svg",
    "tree_text",
]
