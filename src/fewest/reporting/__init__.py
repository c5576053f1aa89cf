"""Reports for people: one HTML page that stands alone, reasons and a letter, trees as drawings and in words."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
