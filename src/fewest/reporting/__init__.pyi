from . import plots as plots
from ._letter import Letter, LetterError, letter
from ._letters import letters
from ._reasons import Code, Codes, Reason, Reasons, reasons
from .audit_page import audit_html
from .letter_template import LetterTemplate
from .page import html
from .tree_drawing import explanation_tree_svg, tree_svg
from .tree_paths import tree_text

__all__ = [
    "Code",
    "Codes",
    "Letter",
    "LetterError",
    "LetterTemplate",
    "Reason",
    "Reasons",
    "audit_html",
    "explanation_tree_svg",
    "html",
    "letter",
    "letters",
    "plots",
    "reasons",
    "tree_svg",
    "tree_text",
]
