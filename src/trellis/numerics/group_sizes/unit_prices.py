r"""What the units of a tree cost, cheapest first, without writing the units down.

A tree of counts n with n_parent = sum of n_child costs sum_r w_r (n_r - y_r)^2. Raise a leaf from
j to j + 1: it pays w (1 - 2 y + 2 j). Let m_0 <= m_1 <= ... be the prices of all units of a node's
children, sorted. The node takes them in that order, and unit k also pays its own share:

    M_k = m_k + w (2 k + 1 - 2 y),        k = 0, 1, ...

M grows strictly, so the least cost of a subtree is a convex function of its count, and a node has
at most one unit at any price. For a price p this module computes

    units = #{k : M_k <= p},   last = M_{units - 1},   following = M_units,

and the slope, units per price, of the function smoothed. A *family* (a node whose children are
leaves) has them in closed form. Let its leaves be sorted, y_0 >= y_1 >= ...; leaf j joins when

    before_j = sum_{i < j} (y_i - y_j)            units have been taken, at the price
    joins_j  = w_leaf (1 - 2 y_j) + w (2 before_j + 1 - 2 y).

With m leaves in play, prices repeat with period 2 w_leaf + 2 w m: m units, 2 w apart, then a gap.

A higher node looks for the price t at which its children stop. Of the children's units up to t
the node takes all but perhaps some of those at the last price. Whether t is right shows at t
alone: the first unit at the last price is affordable and the first one after t is not. Newton's
method finds t from where the last search ended, bisection where Newton dawdles. Every miss moves
the bracket to the next price at which there are units, so plateaus cost nothing.

All in int64, exact while optimal prices lie within +-2^60 (see `integer_optimum`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from trellis.model.arrays import Ints

Nodes = Any
"""An array of `NODE`; type checkers do not know the fields of records."""

NODE = np.dtype(
    [
        ("row", np.int64),  # of the table of all nodes but the leaves
        ("column", np.int64),  # the group size
        ("weight", np.int64),
        ("base", np.int64),  # w (1 - 2 y): what the first unit pays here
        ("first", np.int64),  # children, or a family's leaves: first : end
        ("end", np.int64),
        ("is_family", np.int64),
        ("stop", np.int64),  # the price at which the children stopped last time
    ],
    align=True,
)

FRAME = np.dtype(
    [
        ("index", np.int64),  # of the node that searches
        ("price", np.int64),
        ("wanted", np.int64),
        ("low", np.int64),  # the stopping price lies in low .. high
        ("high", np.int64),
        ("misses", np.int64),
        ("stop", np.int64),  # the stopping price tried now
        ("child", np.int64),  # the next one to ask
        ("units", np.int64),  # of the children asked so far: units up to `stop`,
        ("last", np.int64),  # their highest price,
        ("ties", np.int64),  # how many units have it,
        ("following", np.int64),  # the least price above `stop`
        ("slope", np.float64),
    ],
    align=True,
)
Frames = Any
"""An array of `FRAME`, one for each level of nodes: the stack of nested searches."""

PRICE_LIMIT = 2**60
NO_PRICE = 2**61
"""Beyond all prices: that of the unit after the last one; negated, of the one before the first."""

NEWTON_STEPS = 12
"""After this many misses every other step halves the bracket."""


@njit(nogil=True, cache=True)
def units_of_family(
    joins: Ints,
    before: Ints,
    first: int,
    end: int,
    weight: int,
    leaf_weight: int,
    price: int,
) -> tuple[int, int, int, float]:
    """(units, last, following, slope) of the family with leaves `first : end`."""
    low, high = first, end
    while low < high:
        middle = (low + high) // 2
        if joins[middle] <= price:
            low = middle + 1
        else:
            high = middle
    in_play = low - first
    upcoming = joins[low] if low < end else NO_PRICE
    if in_play == 0:
        return 0, -NO_PRICE, upcoming, 0.0
    period = 2 * (leaf_weight + weight * in_play)
    over = price - joins[low - 1]
    rounds = over // period
    started = joins[low - 1] + rounds * period
    taken = min(in_play, (price - started) // (2 * weight) + 1)
    last = started + 2 * weight * (taken - 1)
    following = last + 2 * weight if taken < in_play else min(upcoming, started + period)
    units = before[low - 1] + rounds * in_play + taken
    return units, last, following, in_play / period


@njit(nogil=True, cache=True)
def units_up_to(
    nodes: Nodes,
    joins: Ints,
    before: Ints,
    leaf_weight: int,
    frames: Frames,
    index: int,
    price: int,
    wanted: int,
) -> tuple[int, int, int, float]:
    """(units, last, following, slope) of a node at `price`.

    With `wanted` > 0 the node takes that many units, whatever they cost here, `price` is not read,
    and last, following and slope are those of its children.

    Searches nest, one in each level above the families. The stack is explicit: Numba cannot load
    recursive functions from its cache.
    """
    node = nodes[index]
    if node.is_family:
        return units_of_family(joins, before, node.first, node.end, node.weight, leaf_weight, price)
    depth = 0
    _begin(frames[0], nodes, index, price, wanted)
    while True:
        frame = frames[depth]
        node = nodes[frame.index]
        if nodes[node.first].is_family:
            _add_families(frame, nodes, joins, before, leaf_weight, node.first, node.end)
        elif frame.child < node.end:
            depth += 1
            _begin(frames[depth], nodes, frame.child, frame.stop, 0)
            continue
        if not _is_right(frame, node):
            _move(frame, node)
            continue
        nodes[frame.index].stop = frame.stop
        units, last, following, slope = _result(frame, node)
        if depth == 0:
            return units, last, following, slope
        depth -= 1
        _add(frames[depth], units, last, following, slope)
        frames[depth].child += 1


@njit(nogil=True, cache=True)
def _begin(frame: Any, nodes: Nodes, index: int, price: int, wanted: int) -> None:
    frame.index, frame.price, frame.wanted = index, price, wanted
    frame.low, frame.high, frame.misses = -PRICE_LIMIT, PRICE_LIMIT, 0
    _ask_children(frame, nodes[index].first, nodes[index].stop)


@njit(nogil=True, cache=True)
def _ask_children(frame: Any, first: int, stop: int) -> None:
    frame.child, frame.stop = first, stop
    frame.units, frame.ties, frame.last, frame.following = 0, 0, -NO_PRICE, NO_PRICE
    frame.slope = 0.0


@njit(nogil=True, cache=True)
def _add(frame: Any, units: int, last: int, following: int, slope: float) -> None:
    """Count in what a child holds up to the stopping price."""
    frame.units = min(frame.units + units, NO_PRICE)
    if last > frame.last:
        frame.last, frame.ties = last, 1
    elif last == frame.last:
        frame.ties += 1
    frame.following = min(frame.following, following)
    frame.slope += slope


@njit(nogil=True, cache=True)
def _add_families(
    frame: Any,
    nodes: Nodes,
    joins: Ints,
    before: Ints,
    leaf_weight: int,
    first: int,
    end: int,
) -> None:
    """`_add` for all children of a node, if they are families; most time is spent here."""
    stop = frame.stop
    units, ties, last, following, slope = 0, 0, -NO_PRICE, NO_PRICE, 0.0
    for child in range(first, end):
        family = nodes[child]
        u, child_last, child_following, child_slope = units_of_family(
            joins, before, family.first, family.end, family.weight, leaf_weight, stop
        )
        units = min(units + u, NO_PRICE)
        if child_last > last:
            last, ties = child_last, 0
        ties += child_last == last
        following = min(following, child_following)
        slope += child_slope
    frame.units, frame.ties, frame.last, frame.following = units, ties, last, following
    frame.slope = slope


@njit(nogil=True, cache=True)
def _affordable(frame: Any, node: Any, price: int) -> int:
    """How many units the node may take if the last costs its child `price`."""
    if frame.wanted > 0:
        return frame.wanted
    return (frame.price - price - node.base) // (2 * node.weight) + 1


@njit(nogil=True, cache=True)
def _is_right(frame: Any, node: Any) -> bool:
    """Whether the children stopped at the right price; if not, narrow the bracket."""
    if frame.units < _affordable(frame, node, frame.following):
        frame.low = frame.following
        return False
    if frame.units > 0 and frame.units - frame.ties >= _affordable(frame, node, frame.last):
        frame.high = frame.last - 1
        return False
    return True


@njit(nogil=True, cache=True)
def _move(frame: Any, node: Any) -> None:
    """Let the children try another price: Newton's, or the middle of the bracket."""
    low, high, stop = frame.low, frame.high, frame.stop
    frame.misses += 1
    if frame.misses > NEWTON_STEPS and frame.misses % 2:
        stop = low + (high - low) // 2
    else:
        if frame.wanted > 0:
            ahead = (frame.wanted - frame.units) / max(frame.slope, 1e-12)
        else:
            weight = 2.0 * node.weight
            excess = float(frame.price - stop - node.base) - weight * frame.units
            ahead = excess / (1 + weight * frame.slope)
        aim = stop + np.floor(ahead)
        stop = low if aim <= low else (high if aim >= high else int(aim))
    _ask_children(frame, node.first, stop)


@njit(nogil=True, cache=True)
def _result(frame: Any, node: Any) -> tuple[int, int, int, float]:
    if frame.wanted > 0:
        return frame.wanted, frame.last, frame.following, frame.slope
    taken = min(frame.units, _affordable(frame, node, frame.last))
    if taken == 0:
        return 0, -NO_PRICE, min(frame.following + node.base, NO_PRICE), 0.0
    next_child = frame.last if taken < frame.units else frame.following
    paid = frame.last + node.base + 2 * node.weight * (taken - 1)
    next_price = min(next_child + node.base + 2 * node.weight * taken, NO_PRICE)
    return taken, paid, next_price, frame.slope / (1 + 2 * node.weight * frame.slope)
