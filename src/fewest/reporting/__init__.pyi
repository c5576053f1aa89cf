from . import plots as plots
from ._audit import audit_html
from ._codes import Code, Codes
from ._letter import Letter, LetterError, letter
from ._page import html
from ._reasons import Reason, Reasons, reasons
from ._tree import explanation_tree_svg, tree_svg
from ._tree_text import tree_text

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
    "plots",
    "reasons",
    "tree_svg",
    "tree_text",
]
