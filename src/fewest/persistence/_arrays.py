"""Arrays that cannot be trusted: the header is read first, and must fit the bytes that follow."""

from __future__ import annotations

import io
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from fewest.persistence._limits import refused, refusing

DIMENSIONS = 8


def read_array(data: bytes, name: str) -> npt.NDArray[Any]:
    """The array of a .npy member; none of objects, and none that claims more than its bytes.

    Examples
    --------
    >>> read_array(array_bytes(np.arange(3)), "x.npy")
    array([0, 1, 2])
    >>> read_array(array_bytes(np.arange(3))[:-1], "x.npy")
    Traceback (most recent call last):
    fewest.errors.ModelError: x.npy is refused: an array's header does not fit its bytes
      Try: ...
    """
    file = io.BytesIO(data)
    with refusing(name, "an array in it cannot be read"):
        version = np.lib.format.read_magic(file)
        read_header = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        if version not in read_header:
            raise refused(name, f"an array in it is of version {version}")
        shape, _, dtype = read_header[version](file)
    if dtype.hasobject:
        raise refused(name, "an array in it holds objects, which are pickles")
    if len(shape) > DIMENSIONS or math.prod(shape) * dtype.itemsize != len(data) - file.tell():
        raise refused(name, "an array's header does not fit its bytes")
    with refusing(name, "an array in it cannot be read"):
        return np.asarray(np.load(io.BytesIO(data), allow_pickle=False))


def array_bytes(array: npt.NDArray[Any]) -> bytes:
    """An array as the bytes of a .npy file."""
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()
