"""German Credit from the original bytes inside the package, decoded by the codebook.

Source: UCI Machine Learning Repository, Statlog (German Credit Data), donated by H. Hofmann, CC BY 4.0.
"""

from __future__ import annotations

import gzip
import hashlib
from importlib import resources

from fewest.datasets._books import book
from fewest.datasets._dataset import Dataset, dataset
from fewest.datasets._originals import decode
from fewest.errors import DataError

FILE = "german.data.gz"
SHA256 = "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871"  # of german.data as UCI gives it out


def load_german() -> Dataset:
    """The embedded table: 1,000 rows, 20 features, 1 = bad credit."""
    german = book("german")
    raw = gzip.decompress((resources.files("fewest.datasets") / FILE).read_bytes())
    if hashlib.sha256(raw).hexdigest() != SHA256:
        raise DataError("the embedded German Credit file is damaged", do="install the package again")
    return dataset(german, *decode(german, raw, FILE))
