"""Lower bounds on a network's score over sub-cubes: a linear relaxation that knows how many units may still move.

Forward, every layer is a linear function of the free units' bits plus an interval (a chord through each activation);
a neuron's range uses only the ``most`` strongest free units. Backward, the output is bounded from below by a constant
plus one effect per free unit, so the least score of a sub-cube is the constant plus its most negative effects.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fewest.engine.search import _kernels
from fewest.engine.search._vertices import Shorts, Singles, VertexCubes
from fewest.tables.arrays import Floats, Ints

_NODES = 128  # nodes bounded at a time, so that their rows stay in the cache
_ROWS = 128  # rows per matrix product: always as many, so that a node's bound does not depend on its neighbours


@dataclass
class BoundNodes:
    """Sub-cubes of one size: ``units`` (n, moved) are moved, those listed in ``free`` at offset[i]:offset[i+1] may."""

    cubes: Ints
    units: Shorts
    free: Shorts
    offset: Ints

    def __len__(self) -> int:
        return len(self.cubes)


@dataclass
class Bounds:
    """Two lower bounds per node: linear in the bits, and (first layer exact) linear in the first activations."""

    # (n,) and as ``BoundNodes.free``: a set scores at least constant + the effects of the units it moves
    constants: Singles
    effects: Singles
    # (n,) and (n, width): a set scores at least base + weights . (first activations of its vertex), never less
    # than the other bound.
    bases: Singles
    weights: Singles


def bound(view: VertexCubes, nodes: BoundNodes, most: int) -> Bounds:
    """Bounds that hold for all sets with at most ``most`` free units moved, up to rounding (see `margin`)."""
    n = len(nodes)
    found = Bounds(
        constants=np.empty(n, dtype=np.float32),
        effects=np.empty(len(nodes.free), dtype=np.float32),
        bases=np.full(n, view.net.last_bias, dtype=np.float32),
        weights=np.empty((n, int(view.net.widths[0])), dtype=np.float32),
    )
    for low in range(0, n, _NODES):
        _bound_some(view, nodes, slice(low, min(low + _NODES, n)), most, found)
    return found


def margin(view: VertexCubes) -> Floats:
    """What rounding can add to a float32 bound: its sums run over the same terms as a vertex's, four times at most."""
    return np.asarray(4.0 * view.slack)


def _bound_some(view: VertexCubes, nodes: BoundNodes, part: slice, most: int, found: Bounds) -> None:
    """Bound a few nodes; writes into ``found``."""
    net = view.net
    cubes, offset = nodes.cubes[part], nodes.offset[part.start : part.stop + 1]
    n, width = len(cubes), int(net.widths[0])
    ends = offset[1:] - offset[0] + np.arange(n)  # each node's last row, the one for the rest
    rows, radius = _room(view, "rows0", int(ends[-1]) + 1, width), _room(view, "radius0", n, width)
    stores = [view.room("store0", n, 6, width)]
    _kernels.open_layer(
        view.base32, view.steps32, cubes, nodes.units[part], nodes.free, offset, most, net.code, rows, radius,
        stores[0], view.room("lows", most + 1, width), view.room("highs", most + 1, width),
    )  # fmt: skip
    middle = rows[:0]
    for layer in range(1, len(net.inner) + 1):
        weight, size, last = net.inner[layer - 1], net.sizes[layer - 1], layer == len(net.inner)
        if last:
            rest = _room(view, "rest", n, len(weight))
            rest[:n] = rows[ends]
            middle = _product(view, "middle", rest, net.unranged)
            weight, size = net.inner_ranged, net.sizes_ranged
        width = weight.shape[1]
        rows, radius = _product(view, f"rows{layer}", rows, weight), _product(view, f"radius{layer}", radius, size)
        stores.append(view.room(f"store{layer}", n, 6, width))
        _kernels.inner_layer(
            offset, net.inner_biases[layer - 1], most, net.code, rows, radius, stores[-1],
            view.room("lows", most + 1, width), view.room("highs", most + 1, width), last,
        )  # fmt: skip
    _back(view, cubes, nodes.free, offset, stores, middle, part, found)


def _back(
    view: VertexCubes, cubes: Ints, free: Shorts, offset: Ints, stores: list[Singles], middle: Singles, part: slice,
    found: Bounds,
) -> None:  # fmt: skip
    """From the output to the first layer's activations, and to the bits."""
    net, n = view.net, len(cubes)
    weights = view.room("last", n, len(net.last))
    weights[:] = net.last
    bases = found.bases[part]
    for layer in range(len(net.inner), 0, -1):
        passed = _room(view, f"passed{layer}", n, weights.shape[1])
        _kernels.way_back(
            weights[:, : stores[layer].shape[2]], net.inner_biases[layer - 1], stores[layer], net.code, bases, passed
        )  # fmt: skip
        if layer == len(net.inner):
            _kernels.tangents(middle[:n], net.last, net.inner_biases[-1], net.ranged, bases, passed[:n])
        weights = _product(view, f"back{layer}", passed, net.back[layer - 1])[:n]
    found.weights[part] = weights
    found.constants[part] = bases
    constants = found.constants[part]
    passed = view.room("passed0", n, int(net.widths[0]))
    _kernels.way_back(weights, np.zeros(passed.shape[1], np.float32), stores[0], net.code, constants, passed)
    _kernels.effects(
        view.steps32, cubes, free, offset, passed, stores[0], constants, found.effects[offset[0] : offset[-1]]
    )  # fmt: skip


def _room(view: VertexCubes, name: str, n: int, width: int) -> Singles:
    """Rows for n, filled up to whole blocks (with what was there before)."""
    return view.room(name, -(-n // _ROWS) * _ROWS, width)


def _product(view: VertexCubes, name: str, rows: Singles, weight: Singles) -> Singles:
    """The rows times the weights, in products of one shape."""
    out = view.room(name, len(rows), weight.shape[1])
    for low in range(0, len(rows), _ROWS):
        np.dot(rows[low : low + _ROWS], weight, out=out[low : low + _ROWS])
    return out
