"""The local explorer: a run folder as pages in a browser, without the model; nothing leaves the machine."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
