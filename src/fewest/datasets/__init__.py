"""The tables of the paper: German Credit inside the package, the others read from a folder of yours.

``load("german")`` needs nothing; the other names need a data folder (``path=`` or the variable FEWEST_DATA).
German Credit: UCI Statlog (German Credit Data), donated by H. Hofmann, CC BY 4.0.
"""

from fewest.datasets._dataset import Dataset
from fewest.datasets._load import load, names

__all__ = ["Dataset", "load", "names"]
