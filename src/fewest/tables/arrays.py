"""Names of the arrays that annotations speak of: one for each type of element."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
Ints32 = npt.NDArray[np.int32]
