"""The paper's tables and figures, the methods it is compared with, and the benchmarks."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
