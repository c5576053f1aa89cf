"""Reports for people: one HTML page that stands alone."""

from fewest.reporting._page import html

__all__ = ["html"]
