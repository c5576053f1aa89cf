"""The tables of the paper: German Credit inside the package, the others read from files of yours.

``load("german")`` needs nothing; the other names need their original file or a data folder (``path=`` or the variable
FEWEST_DATA); `catalogue` says which are here and where to get the others.
German Credit: UCI Statlog (German Credit Data), donated by H. Hofmann, CC BY 4.0.
"""

from fewest.datasets._books import Book, Dataset, book
from fewest.datasets._load import ListedDataset, catalogue, load, names

__all__ = ["Book", "Dataset", "ListedDataset", "book", "catalogue", "load", "names"]
