"""The tree over two hierarchies, and the true flows on it."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from flow_worlds import MODES, TOWNS, ZONES, dense, tree_of
from strategies import hierarchies
from trellis.confidential.flows import TrueFlows, _packed, true_levels
from trellis.errors import StructureError
from trellis.model.trees.flows import ROOT, FlowShape, Nodes, Side, runs_of_families
from trellis.numerics.flows.children import add_to_children


def test_destination_and_origin_trees_take_turns():
    names = tree_of().shape.names
    assert names == ("nation-to-nation", "nation-to-state", "state-to-state", "state-to-town",
                     "town-to-town")  # fmt: skip
    assert tree_of(tree="origin").shape.names[1] == "state-to-nation"


def test_the_deeper_side_goes_on_alone():
    shape = tree_of(TOWNS, ZONES).shape
    assert shape.steps == (Side.DESTINATION, Side.ORIGIN, Side.ORIGIN)
    assert shape.names[-1] == "town-to-zone"
    assert tree_of(TOWNS, ZONES, "origin").shape.steps == ("origin", "destination", "origin")


def test_attributes_are_a_level_below_the_pairs():
    tree = tree_of(TOWNS, ZONES, schema=MODES)
    assert tree.shape.names[-1] == "town-to-zone-by-mode"
    assert tree.shape.leaf_pairs == 3
    assert tree.sizes == (1, 3, 9, 12, 24)


def test_bad_shapes_are_refused():
    with pytest.raises(StructureError, match="nothing flows"):
        FlowShape(Side.ORIGIN, ("a",), ("b",))
    with pytest.raises(StructureError, match="begins"):
        FlowShape(Side.CELLS, ("a", "b"), ("b",))


@st.composite
def worlds(draw):
    origins, destinations = draw(hierarchies()), draw(hierarchies())
    assume(origins.n_levels + destinations.n_levels > 2)
    schema = draw(st.sampled_from([MODES, None]))
    tree = draw(st.sampled_from(["origin", "destination"]))
    flow_tree = tree_of(origins, destinations, tree, **({"schema": schema} if schema else {}))
    n = draw(st.integers(0, 12))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    keys = {
        (rng.integers(origins.sizes[-1]), rng.integers(destinations.sizes[-1]),
         rng.integers(flow_tree.n_cells))
        for _ in range(n)
    }  # fmt: skip
    rows = np.array(sorted(keys), dtype=np.int32).reshape(-1, 3)
    cell = rows[:, 2] if schema else None
    count = rng.integers(1, 50, len(rows))
    return flow_tree, TrueFlows(rows[:, 0], rows[:, 1], count, cell)


@settings(deadline=None)  # the first example compiles
@given(worlds())
def test_true_levels_are_the_tables_written_out(world):
    """Descending along all nodes finds every count of the dense table, and nothing else."""
    tree, flows = world
    ordered = flows.in_tree_order(tree)
    nodes, positions = ROOT, np.array([0 if flows.count.size else -1])
    for level, truth in enumerate(true_levels(ordered, tree)):
        start, children = tree.expand(level, nodes)
        counts = np.zeros(len(children), dtype=np.int64)
        where = np.full(len(children), -1)
        add_to_children(
            truth.start, truth.within, truth.count, positions, start, counts, where
        )  # fmt: skip
        table = dense(flows, tree, level + 1)
        cell = np.zeros(len(children), dtype=int) if children.cell is None else children.cell
        assert len(children) == table.size
        assert (table[children.origin, children.destination, cell] == counts).all()
        nodes, positions = children, where


def test_packing_splits_digits_that_do_not_fit_one_word():
    digits = [np.array([0, 2**31 - 2], dtype=np.int32)] * 5
    words = _packed(digits)
    assert len(words) == 3
    assert all((word >= 0).all() for word in words)


@given(st.lists(st.integers(1, 9), max_size=20), st.integers(1, 12))
def test_runs_cover_all_families_once(numbers, most):
    runs = list(runs_of_families(np.array(numbers, dtype=np.int64), most))
    assert [i for first, last in runs for i in range(first, last)] == list(range(len(numbers)))
    for first, last in runs:
        assert sum(numbers[first:last]) <= most or last == first + 1


def test_nodes_join_and_slice():
    nodes = Nodes(np.arange(3, dtype=np.int32), np.arange(3, dtype=np.int32))
    assert len(Nodes.joined([nodes[:1], nodes[1:]])) == 3
    assert len(Nodes.joined([])) == 0


def test_true_flows_guard_themselves():
    one = np.zeros(1, np.int32)
    with pytest.raises(StructureError, match="negative"):
        TrueFlows(one, one, np.array([-1]))
    with pytest.raises(StructureError, match="whole numbers"):
        TrueFlows(one, one, np.array([1.5]))
    assert "9" not in repr(TrueFlows(one, one, np.array([99])))
