"""Everything that can be fitted: trees, sets of near-optimal trees, classifiers whose decisions need few reasons."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
