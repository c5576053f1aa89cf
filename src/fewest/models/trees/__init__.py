"""Trees: one neutral tree over original features, read from any library's, or grown by an estimator."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
