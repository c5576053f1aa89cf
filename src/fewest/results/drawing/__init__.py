"""Plain data in, pieces of a page out: tables, bars, points, scales and cubes, every text escaped, no script anywhere.

Pages that use these pieces carry `STYLE` once. Colours are chosen there, by class, so that a page can forbid inline
styles; each picture has a table that says the same.
"""

from fewest.results.drawing._cube import Corner, corners_of, cube
from fewest.results.drawing._gauge import gauge
from fewest.results.drawing._pieces import (
    HEADINGS,
    HEADINGS_PLUS,
    STYLE,
    Bar,
    Bars,
    CaseRow,
    bar_chart,
    case_table,
    counted,
    percent,
)
from fewest.results.drawing._scale import Scale, scales
from fewest.results.drawing._scatter import Point, scatter

__all__ = [
    "HEADINGS",
    "HEADINGS_PLUS",
    "STYLE",
    "Bar",
    "Bars",
    "CaseRow",
    "Corner",
    "Point",
    "Scale",
    "bar_chart",
    "case_table",
    "corners_of",
    "counted",
    "cube",
    "gauge",
    "percent",
    "scales",
    "scatter",
]
