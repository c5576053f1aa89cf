"""Compiled inner loops of the network search: rows of neurons in, rows of neurons out.

Every loop runs over the neurons of one layer innermost, so that it vectorises, and treats its rows one by one, so that
a row's result never depends on the rows beside it. `relaxed` is the only place that knows the activations' shapes.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

RELU, TANH, LOGISTIC, IDENTITY, GAUSS, SQUARE, CUBE = range(7)
CODES = {
    "relu": RELU, "tanh": TANH, "logistic": LOGISTIC, "identity": IDENTITY, "gauss": GAUSS, "square": SQUARE,
    "cube": CUBE,
}  # fmt: skip


@njit(cache=True, nogil=True, inline="always")
def activated(z, code):  # type: ignore[no-untyped-def]
    """One activation."""
    if code == RELU:
        return z if z > 0 else z * 0
    if code == TANH:
        return math.tanh(z)
    if code == LOGISTIC:
        return 1 / (1 + math.exp(-z))
    if code == GAUSS:
        return math.exp(min(z, z * 0))
    if code == SQUARE:
        return z * z
    if code == CUBE:
        return z * z * z
    return z


@njit(cache=True, nogil=True)
def activate_rows(rows, bias, code):  # type: ignore[no-untyped-def]
    """In place: rows <- activation(rows + bias)."""
    zero = rows.dtype.type(0)
    for i in range(rows.shape[0]):
        if code == RELU:
            for j in range(rows.shape[1]):
                rows[i, j] = max(rows[i, j] + bias[j], zero)
        else:
            for j in range(rows.shape[1]):
                rows[i, j] = activated(rows[i, j] + bias[j], code)


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def dot_rows(rows, weight, bias, out):  # type: ignore[no-untyped-def]
    """Out[i] <- rows[i] . weight + bias."""
    for i in range(out.shape[0]):
        total = rows.dtype.type(0)
        for j in range(rows.shape[1]):
            total += rows[i, j] * weight[j]
        out[i] = total + bias


@njit(cache=True, nogil=True)
def first_layer(rows, columns_unit, weight, bias, base, steps, goal):  # type: ignore[no-untyped-def]
    """Base <- rows @ weight + bias; steps[:, u] <- (goal - rows)[columns of u] @ weight[columns of u]."""
    for i in range(rows.shape[0]):
        base[i] = bias
        for c in range(rows.shape[1]):
            value = rows[i, c]
            if value != 0.0:
                for j in range(weight.shape[1]):
                    base[i, j] += value * weight[c, j]
            unit = columns_unit[c]
            change = goal[i, c] - value
            if unit >= 0 and change != 0.0:
                for j in range(weight.shape[1]):
                    steps[i, unit, j] += change * weight[c, j]


@njit(cache=True, nogil=True)
def vertices(base, steps, cubes, units, out):  # type: ignore[no-untyped-def]
    """Out[v] <- first pre-activation of cube cubes[v] with units[v] moved."""
    for v in range(cubes.shape[0]):
        cube = cubes[v]
        for j in range(base.shape[1]):
            out[v, j] = base[cube, j]
        for t in range(units.shape[1]):
            unit = units[v, t]
            for j in range(base.shape[1]):
                out[v, j] += steps[cube, unit, j]


@njit(cache=True, nogil=True)
def exact_scores(base, steps, cubes, rows, flat, biases, widths, code):  # type: ignore[no-untyped-def]
    """Raw score in float64 of each set (bool rows), one at a time and always summed in the same order."""
    out = np.empty(cubes.shape[0])
    here, there = np.empty(widths.max()), np.empty(widths.max())
    for v in range(cubes.shape[0]):
        cube = cubes[v]
        here[: widths[0]] = base[cube]
        for unit in range(rows.shape[1]):
            if rows[v, unit]:
                for j in range(widths[0]):
                    here[j] += steps[cube, unit, j]
        weight_at, bias_at = 0, 0
        for layer in range(1, widths.shape[0]):
            count, width = widths[layer - 1], widths[layer]
            weights = flat[weight_at : weight_at + count * width].reshape((count, width))
            there[:width] = biases[bias_at : bias_at + width]
            for i in range(count):
                value = activated(here[i], code)
                if value != 0.0:
                    for j in range(width):
                        there[j] += value * weights[i, j]
            weight_at += count * width
            bias_at += width
            here[:width] = there[:width]
        out[v] = here[0]
    return out


@njit(cache=True, nogil=True)
def worst_rounding(base, steps, movable, flat, biases, widths, code):  # type: ignore[no-untyped-def]
    """How far a float32 score can be from the exact one, per cube: (terms) * 2^-24 * (sum of sizes), layer by layer.

    Sizes and errors go through a layer as |values| @ |weights|. Activations have slopes up to one, but for powers. The
    second number is for kernels: rounding where lines take their place, as slopes times pre-activations may be large
    where the sum is not.
    """
    unit = 2.0**-24
    out, lines, top = np.empty(base.shape[0]), np.zeros(base.shape[0]), np.zeros(widths[0])
    size, error = np.empty(widths.max()), np.empty(widths.max())
    sizes, errors = np.empty(widths.max()), np.empty(widths.max())
    for cube in range(base.shape[0]):
        size[: widths[0]] = np.abs(base[cube])
        top[:] = base[cube]
        for u in range(movable.shape[1]):
            if movable[cube, u]:
                for j in range(widths[0]):
                    size[j] += abs(steps[cube, u, j])
                    top[j] += max(steps[cube, u, j], 0.0)
        error[:] = (movable.shape[1] + 2) * unit * size
        weight_at, bias_at = 0, 0
        for layer in range(1, widths.shape[0]):
            count, width = widths[layer - 1], widths[layer]
            weights = flat[weight_at : weight_at + count * width].reshape((count, width))
            sizes[:width] = np.abs(biases[bias_at : bias_at + width])
            errors[:width] = 0.0
            for i in range(count):
                if code in (TANH, LOGISTIC):
                    size[i] = min(size[i], 1.0) if code == TANH else 1.0
                    error[i] += 8 * unit * size[i]
                elif code == GAUSS:  # only first layers have it, and powers
                    most = math.exp(min(top[i], 0.0))
                    lines[cube] += (count + 8) * unit * size[i] * most * abs(weights[i, 0])
                    error[i] = most * (math.expm1(error[i]) + 8 * unit)
                    size[i] = most
                elif code in (SQUARE, CUBE):
                    power = 2 if code == SQUARE else 3
                    lines[cube] += (count + 8) * unit * power * size[i] ** power * abs(weights[i, 0])
                    error[i] = power * (size[i] + error[i]) ** (power - 1) * error[i] + 8 * unit * size[i] ** power
                    size[i] = size[i] ** power
                value, wrong = size[i], error[i]
                for j in range(width):
                    sizes[j] += abs(weights[i, j]) * value
                    errors[j] += abs(weights[i, j]) * wrong
            for j in range(width):
                size[j] = sizes[j]
                error[j] = errors[j] + (count + 3) * unit * sizes[j]
            weight_at += count * width
            bias_at += width
        out[cube] = error[0]
    return out, lines


@njit(cache=True, nogil=True)
def strongest(rows, first, count, most, low, high, lows, highs):  # type: ignore[no-untyped-def]
    """Per neuron the sum of the ``most`` lowest negative and highest positive entries of rows first..first+count.

    ``lows`` and ``highs`` (most + 1, width) are working space: sorted lists per neuron, and the value on its way down.
    """
    width = rows.shape[1]
    low[:] = 0
    high[:] = 0
    if most >= count:
        for t in range(first, first + count):
            for j in range(width):
                low[j] += min(rows[t, j], np.float32(0))
                high[j] += max(rows[t, j], np.float32(0))
        return
    lows[:most] = 0
    highs[:most] = 0
    for t in range(first, first + count):
        lows[most] = rows[t]
        highs[most] = rows[t]
        for place in range(min(most, t - first + 1)):
            for j in range(width):
                value, held = lows[most, j], lows[place, j]
                lows[place, j] = value if value < held else held
                lows[most, j] = held if value < held else value
            for j in range(width):
                value, held = highs[most, j], highs[place, j]
                highs[place, j] = value if value > held else held
                highs[most, j] = held if value > held else value
    for place in range(most):
        for j in range(width):
            low[j] += lows[place, j]
            high[j] += highs[place, j]


@njit(cache=True, nogil=True)
def relaxed(low, high, code, slope, under, over):  # type: ignore[no-untyped-def]
    """Slope of the chord over [low, high], and the least and greatest of activation(z) - slope * z there."""
    if code == RELU:
        for j in range(low.shape[0]):
            h, l = max(high[j], np.float32(0)), min(low[j], np.float32(0))  # noqa: E741
            slope[j] = h / (h - l + np.float32(1e-30))
            under[j] = 0
            over[j] = -slope[j] * l
    elif code == IDENTITY:
        slope[:] = 1
        under[:] = 0
        over[:] = 0
    else:
        for j in range(low.shape[0]):
            if code in (TANH, LOGISTIC):
                slope[j], under[j], over[j] = bent(low[j], high[j], code)
            else:
                slope[j], under[j], over[j] = arched(low[j], high[j], code)


@njit(cache=True, nogil=True)
def bent(l, h, code):  # type: ignore[no-untyped-def]  # noqa: E741
    """`relaxed` for one neuron with an s-shaped activation."""
    at_low, at_high = activated(l, code), activated(h, code)
    s = (at_high - at_low) / (h - l) if h - l > 1e-4 else np.float32(0)
    s = s if s > 1e-6 else np.float32(0)  # flat: the activation is monotone, so its ends are its range
    under = min(at_low - s * l, at_high - s * h)
    over = max(at_low - s * l, at_high - s * h)
    # Inside, the difference is extreme where the derivative equals s: tanh' = 1 - t^2, logistic' = p (1 - p).
    root = math.sqrt(max(1.0 - s, 0.0) if code == TANH else max(1.0 - 4.0 * s, 0.0))
    if s > 0 and root < 1:
        point = math.atanh(root) if code == TANH else 2 * math.atanh(root)
        for z in (-point, point):
            if l < z < h:
                gap = activated(z, code) - s * z
                under, over = min(under, gap), max(over, gap)
    return s, under - 1e-6, over + 1e-6


@njit(cache=True, nogil=True)
def arched(l, h, code):  # type: ignore[no-untyped-def]  # noqa: E741
    """`relaxed` for one neuron whose activation is an exponential function of what is at most zero, or a power."""
    if code == GAUSS:  # beyond zero there is rounding alone
        l, h = min(l, np.float32(0)), min(h, np.float32(0))  # noqa: E741
    at_low, at_high = activated(l, code), activated(h, code)
    s = (at_high - at_low) / (h - l) if h - l > 1e-6 * (abs(l) + abs(h)) else np.float32(0)
    under, over = min(at_low - s * l, at_high - s * h), max(at_low - s * l, at_high - s * h)
    # Inside, the difference is extreme where the derivative equals s.
    if code == GAUSS:
        point = math.log(s) if s > 0 else l
    elif code == SQUARE:
        point = s / 2
    else:
        point = math.sqrt(max(s, np.float32(0)) / 3)
    for z in (-point, point) if code == CUBE else (point, point):
        if l < z < h:
            gap = activated(z, code) - s * z
            under, over = min(under, gap), max(over, gap)
    room = 1e-6 * (max(abs(at_low), abs(at_high)) + abs(s) * max(abs(l), abs(h)))
    return s, under - room, over + room


@njit(cache=True, nogil=True)
def open_layer(base, steps, cubes, units, free, offset, most, code, rows, radius, store, lows, highs):  # type: ignore[no-untyped-def]
    """First layer of a bound: one row per free unit and one for the rest, ready for the next layer's product.

    ``free`` lists the free units of node i at offset[i] : offset[i + 1]; its rows begin at offset[i] - offset[0] + i.
    ``store`` (nodes, 6, width) keeps base, low, high, slope, under, over for the way back.
    """
    width = base.shape[1]
    for i in range(cubes.shape[0]):
        cube = cubes[i]
        at, count = offset[i] - offset[0] + i, offset[i + 1] - offset[i]
        kept = store[i]
        kept[0] = base[cube]
        for t in range(units.shape[1]):
            for j in range(width):
                kept[0, j] += steps[cube, units[i, t], j]
        for t in range(count):
            unit = free[offset[i] + t]
            for j in range(width):
                rows[at + t, j] = steps[cube, unit, j]
        strongest(rows, at, count, most, kept[1], kept[2], lows, highs)
        for j in range(width):
            kept[1, j] += kept[0, j]
            kept[2, j] += kept[0, j]
        relaxed(kept[1], kept[2], code, kept[3], kept[4], kept[5])
        pass_on(rows, at, count, kept, radius[i])


@njit(cache=True, nogil=True)
def inner_layer(offset, bias, most, code, rows, radius, store, lows, highs, last):  # type: ignore[no-untyped-def]
    """A later layer of a bound, from the products of the one before: in place, like `open_layer`."""
    width = rows.shape[1]
    for i in range(store.shape[0]):
        at, count = offset[i] - offset[0] + i, offset[i + 1] - offset[i]
        kept = store[i]
        for j in range(width):
            kept[0, j] = rows[at + count, j] + bias[j]
        strongest(rows, at, count, most, kept[1], kept[2], lows, highs)
        for j in range(width):
            kept[1, j] += kept[0, j] - radius[i, j]
            kept[2, j] += kept[0, j] + radius[i, j]
        relaxed(kept[1], kept[2], code, kept[3], kept[4], kept[5])
        if last:
            continue
        lows[0] = radius[i]
        pass_on(rows, at, count, kept, radius[i])
        for j in range(width):
            radius[i, j] += lows[0, j] * kept[3, j]


@njit(cache=True, nogil=True)
def pass_on(rows, at, count, kept, radius):  # type: ignore[no-untyped-def]
    """Scale a node's rows by the slopes; its last row is base times slope plus the middle of the offsets."""
    for t in range(count):
        for j in range(rows.shape[1]):
            rows[at + t, j] *= kept[3, j]
    for j in range(rows.shape[1]):
        rows[at + count, j] = kept[0, j] * kept[3, j] + (kept[4, j] + kept[5, j]) / 2
        radius[j] = (kept[5, j] - kept[4, j]) / 2


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def way_back(weight, bias, store, code, constant, out):  # type: ignore[no-untyped-def]
    """One layer of the way back: weights on activations (nodes, width) -> weights on pre-activations, and constants.

    A weight that is positive takes the line below the activation, a negative one the line above. For relu the line
    below may have any slope in [0, 1]; taken is the end that leaves the smaller gap.
    """
    for i in range(store.shape[0]):
        kept = store[i]
        total = np.float32(0)
        for j in range(weight.shape[1]):
            w = weight[i, j]
            s = kept[3, j]
            if code == RELU:
                end = np.float32(1) if kept[2, j] > -kept[1, j] else np.float32(0)
                s = end if w > 0 else s
            offset = kept[4, j] if w > 0 else kept[5, j]
            out[i, j] = w * s
            total += w * offset + w * s * bias[j]
        constant[i] += total


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def tangents(middle, weight, bias, first, constant, out):  # type: ignore[no-untyped-def]
    """The way back through relu neurons of positive weight (those from ``first`` on): no range is needed.

    Any slope in [0, 1] gives a line below relu; taken is relu's own at the middle of the sub-cube.
    """
    for i in range(out.shape[0]):
        total = np.float32(0)
        for j in range(middle.shape[1]):
            w = weight[first + j] if middle[i, j] + bias[first + j] > 0 else np.float32(0)
            out[i, first + j] = w
            total += w * bias[first + j]
        constant[i] += total


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def effects(steps, cubes, free, offset, weight, store, constant, out):  # type: ignore[no-untyped-def]
    """What each free unit can add at least, by the linear bound; constants get the first pre-activation's share."""
    for i in range(cubes.shape[0]):
        total = np.float32(0)
        for j in range(weight.shape[1]):
            total += weight[i, j] * store[i, 0, j]
        constant[i] += total
        for t in range(offset[i], offset[i + 1]):
            step = steps[cubes[i], free[t]]
            total = np.float32(0)
            for j in range(weight.shape[1]):
                total += weight[i, j] * step[j]
            out[t - offset[0]] = total
