"""Log-densities of Gaussian mixtures, compiled: apart, so that numba is imported only where they are asked for."""

from __future__ import annotations

import math

import numpy as np

from fewest.engine.numba_cache import entry


@entry
def log_densities(points, constant, mean, root):  # type: ignore[no-untyped-def]
    """Log-density of a mixture at points (n, e), each by itself: the same bits alone and in any batch."""
    n, e = points.shape
    out = np.empty(n)
    image, terms = np.empty(e), np.empty(len(constant))
    for i in range(n):
        for c in range(len(constant)):
            image[:] = 0.0
            for row in range(e):
                step = points[i, row] - mean[c, row]
                line = root[c, row]
                for column in range(row, e):
                    image[column] += step * line[column]
            far = 0.0
            for column in range(e):
                far += image[column] * image[column]
            terms[c] = constant[c] - 0.5 * far
        top = terms.max()
        total = 0.0
        for c in range(len(constant)):
            total += math.exp(terms[c] - top)
        out[i] = top + math.log(total)
    return out
