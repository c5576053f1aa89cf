"""Explainers and models as files that are safe to open: audited first, no pickle, no rows of people.

`save` and `load` write and read an explainer; `load_model` reads a model alone.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
