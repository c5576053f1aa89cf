"""Rashomon sets: all sparse trees that are nearly as good as the best, their SEV-T, and the sparsest choice (TOpt)."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
