"""From one case to a billion: tables on disk in, a run folder out, and a verifier apart from the search."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
