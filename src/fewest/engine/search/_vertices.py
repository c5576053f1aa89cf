"""The cubes of a problem seen through a network: what each unit adds to the first layer, and scores of vertices.

Moving unit u adds one vector, ``(goal - start)[columns of u] @ W1[columns of u]``, to the first pre-activation, so a
vertex costs one addition per moved unit and its share of one matrix product per further layer.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fewest.engine.search import _kernels
from fewest.engine.search._subsets import as_rows
from fewest.engine.search.problem import Problem
from fewest.engine.structure.base import Network
from fewest.tables.arrays import Bools, Floats, Ints

Singles = npt.NDArray[np.float32]
Shorts = npt.NDArray[np.int16]

BLOCK = 1024  # vertices per matrix product: their activations stay in the cache


class Net:
    """A network's weights in the two precisions and layouts the compiled loops want; shared by all threads."""

    def __init__(self, structure: Network, sign: int) -> None:
        self.code = _kernels.CODES[structure.activation]
        self.weights = structure.weights
        self.biases = structure.biases
        self.sign, self.cut = sign, structure.reading.cut
        self.widths = np.array([weight.shape[1] for weight in structure.weights], dtype=np.int64)
        self.flat = np.concatenate([np.zeros(0), *(weight.ravel() for weight in structure.weights[1:])])
        self.flat_biases = np.concatenate([np.zeros(0), *structure.biases[1:]])
        self.inner = [np.ascontiguousarray(weight, dtype=np.float32) for weight in structure.weights[1:-1]]
        self.inner_biases = [bias.astype(np.float32) for bias in structure.biases[1:-1]]
        self.last = (sign * structure.weights[-1][:, 0]).astype(np.float32)
        self.ranged = len(self.last)
        if self.inner and self.code == _kernels.RELU:
            # Only neurons that lower the output need a range (see `_bounds`): they come first.
            order = np.argsort(self.last >= 0, kind="stable")
            self.ranged = int((self.last < 0).sum())
            self.last = self.last[order]
            self.inner[-1] = np.ascontiguousarray(self.inner[-1][:, order])
            self.inner_biases[-1] = self.inner_biases[-1][order]
        self.sizes = [np.abs(weight) for weight in self.inner]
        if self.inner:
            self.inner_ranged = np.ascontiguousarray(self.inner[-1][:, : self.ranged])
            self.sizes_ranged = np.abs(self.inner_ranged)
            self.unranged = np.ascontiguousarray(self.inner[-1][:, self.ranged :])
        self.back = [np.ascontiguousarray(weight.T) for weight in self.inner]
        self.reach = np.abs(self.last)  # how much a first activation can matter to the output, at most
        for weight in reversed(self.sizes):
            self.reach = weight @ self.reach
        self.last_bias = np.float32(sign * (float(structure.biases[-1][0]) - self.cut))


class VertexCubes:
    """The hypercubes of a problem, as steps in the first pre-activation."""

    def __init__(self, net: Net, problem: Problem) -> None:
        self.net = net
        width = int(net.widths[0])
        self.base = np.empty((problem.n_cubes, width))
        self.steps = np.zeros((problem.n_cubes, problem.n_units, width))
        goal = problem.goal[problem.goal_of]
        _kernels.first_layer(
            np.ascontiguousarray(problem.start), problem.unit_of, np.ascontiguousarray(net.weights[0]), net.biases[0],
            self.base, self.steps, np.ascontiguousarray(goal),
        )  # fmt: skip
        self.base32, self.steps32 = self.base.astype(np.float32), self.steps.astype(np.float32)
        band, lines = _kernels.worst_rounding(
            self.base, self.steps, problem.movable, net.flat, net.flat_biases, net.widths, net.code
        )  # fmt: skip
        self.band = band + 2.0**-23 * abs(net.cut)
        self.slack = self.band + lines  # what rounding may add where lines take the place of activations
        self.n_units = problem.n_units
        self.exact_first = net.code == _kernels.RELU  # other activations cost too much to look at the first layer
        self._rooms: dict[str, Singles] = {}
        self.strength = np.einsum("cuw,w->cu", np.abs(self.steps32), net.reach)  # the same sums on every processor

    def room(self, name: str, *shape: int) -> Singles:
        """Working space kept from call to call (fresh pages cost more than what is written on them)."""
        size = int(np.prod(shape))
        if name not in self._rooms or self._rooms[name].size < size:
            self._rooms[name] = np.zeros(size, dtype=np.float32)
        return self._rooms[name][:size].reshape(shape)

    def exact(self, cubes: Ints, rows: Bools) -> Floats:
        """Signed scores in float64, each row by itself."""
        net = self.net
        raw = _kernels.exact_scores(
            self.base, self.steps, cubes, rows, net.flat, net.flat_biases, net.widths, net.code
        )  # fmt: skip
        return np.asarray(net.sign * (raw - net.cut))

    def screen(self, cubes: Ints, units: Shorts) -> Singles:
        """Signed scores in float32 of sets given as unit lists (v, k); within ``band`` of the exact ones."""
        net = self.net
        out = np.empty(len(cubes), dtype=np.float32)
        widths = [int(width) for width in net.widths[:-1]]
        room = [self.room(f"screen{layer}", BLOCK, width) for layer, width in enumerate(widths)]
        zero = np.zeros(widths[0], dtype=np.float32)
        for low in range(0, len(cubes), BLOCK):
            count = min(BLOCK, len(cubes) - low)
            held = room[0][:count]
            _kernels.vertices(self.base32, self.steps32, cubes[low : low + count], units[low : low + count], held)
            if net.code == _kernels.GAUSS:
                np.exp(np.minimum(held, 0.0, out=held), out=held)  # many at once, which the compiled loop cannot
            else:
                _kernels.activate_rows(held, zero, net.code)
            for layer, (weight, bias) in enumerate(zip(net.inner, net.inner_biases, strict=True)):
                following = room[layer + 1][:count]
                np.dot(held, weight, out=following)
                _kernels.activate_rows(following, bias, net.code)
                held = following
            _kernels.dot_rows(held, net.last, net.last_bias, out[low : low + count])
        return out

    def turned(self, cubes: Ints, units: Shorts, tolerance: float) -> npt.NDArray[np.intp]:
        """Positions of the turned sets: float32 decides outside the band, float64 within it."""
        scores = self.screen(cubes, units)
        off = np.abs(scores - tolerance)
        turned = scores < tolerance
        near = np.nonzero(off <= self.band[cubes])[0]
        if len(near):
            turned[near] = self.exact(cubes[near], as_rows(units[near], self.n_units)) < tolerance
        return np.nonzero(turned)[0]
