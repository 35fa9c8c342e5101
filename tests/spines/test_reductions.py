"""Every reduction alone: worked examples, contract, and what it refuses."""

from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles.spines import slow_groups
from strategies import hierarchies
from trellis.errors import StructureError
from trellis.model import Hierarchy
from trellis.planning.spine import branch, bypass, distances, group_level, regroup_leaves
from trellis.planning.spine.reduction import Reduction, nothing

COUNTY = Hierarchy.from_paths(
    [("c", "1", "1a", f"1{i}") for i in range(5)]
    + [("c", "2", "2a", "20")]
    + [("c", "3", "3a", f"3{i}") for i in range(4)],
    ["county", "tract", "group", "block"],
)
PLACES = ["A"] * 3 + [None] * 3 + ["B"] * 4


def groups_of(reduction):
    """Codes of the leaves of each node above them."""
    tree = reduction.hierarchy
    return [part.tolist() for part in np.split(tree.codes(-1), tree.child_start[-1][1:-1])]


# -- contract -------------------------------------------------------------------------------------


def labels_for(tree, draw):
    size = tree.sizes[-1]
    return draw(st.lists(st.sampled_from([None, "k", "l"]), min_size=size, max_size=size))


def equal_shares(tree):
    return [F(1, tree.n_levels)] * tree.n_levels


REDUCTIONS = {
    "branch": lambda tree, labels: branch(tree, 1, [label == "k" for label in labels]),
    "regroup, fill": lambda tree, labels: regroup_leaves(tree, labels, 0),
    "regroup, even": lambda tree, labels: regroup_leaves(tree, labels, 1, "even"),
    "group": lambda tree, labels: group_level(tree, 1, labels, 1),
    "bypass, pure": lambda tree, _: bypass(tree, equal_shares(tree), "discrete_laplace"),
    "bypass, zCDP": lambda tree, _: bypass(tree, equal_shares(tree), "discrete_gaussian"),
}


@pytest.mark.parametrize("name", REDUCTIONS)
@given(data=st.data())
@settings(max_examples=40)
def test_root_and_leaves_are_kept_and_estimates_come_back(name, data):
    tree = data.draw(hierarchies())
    labels = labels_for(tree, data.draw)
    if tree.n_levels < 3 or "k" not in labels:
        return
    made = REDUCTIONS[name](tree, labels)
    new = made.hierarchy
    assert new.codes(0).tolist() == tree.codes(0).tolist()
    assert sorted(new.codes(-1).tolist()) == sorted(tree.codes(-1).tolist())
    assert new.codes(-1).tolist() == tree.codes(-1)[made.leaf_order].tolist()

    truth = tree.sum_up(np.arange(1, tree.sizes[-1] + 1)[:, np.newaxis] * [1, 7])
    on_new = new.sum_up(truth[-1][made.leaf_order])
    assert on_new[0].tolist() == truth[0].tolist()
    for given_, back in zip(truth, made.undo(on_new), strict=True):
        assert back.tolist() == given_.tolist()
    assert [a.tolist() for a in made.undo(on_new[-1])] == [a.tolist() for a in truth]
    if made.shares is not None:
        shares = [np.array(level, dtype=object) for level in made.shares]
        paths = shares[0]
        for level in range(1, new.n_levels):
            paths = paths[new.parents(level)] + shares[level]
        assert set(paths) == {F(1)}


def test_undo_of_another_tree_is_refused():
    with pytest.raises(StructureError, match="10 leaves"):
        nothing(COUNTY).undo(np.zeros(3))


@pytest.mark.parametrize(
    ("order", "words"),
    [([0, 0, *range(2, 10)], "exactly once"), ([1, 0, *range(2, 10)], "rename"), ([0], "all")],
)
def test_a_reduction_that_loses_leaves_does_not_exist(order, words):
    with pytest.raises(StructureError, match=words):
        Reduction(COUNTY, COUNTY, np.array(order))


def test_a_reduction_that_changes_the_root_does_not_exist():
    other = Hierarchy.from_paths([("x", leaf) for leaf in COUNTY.codes(-1).tolist()])
    with pytest.raises(StructureError, match="keep the root"):
        Reduction(COUNTY, other, np.arange(10))


def test_reductions_compose():
    first = regroup_leaves(COUNTY, PLACES)
    second = branch(first.hierarchy, "tract", [leaf.startswith("1") for leaf in
                                               first.hierarchy.codes(-1).tolist()])  # fmt: skip
    both = first.then(second)
    values = np.arange(10)
    assert both.undo(values[both.leaf_order])[-1].tolist() == values.tolist()
    with pytest.raises(StructureError, match="another tree"):
        second.then(first)


# -- branch ---------------------------------------------------------------------------------------


def test_branch_splits_every_node_below():
    made = branch(COUNTY, "tract", [label == "A" for label in PLACES])
    assert made.hierarchy.codes("tract").tolist() == ["1:in", "1:out", "2", "3"]
    assert made.hierarchy.codes("group").tolist() == ["1a:in", "1a:out", "2a", "3a"]
    assert distances(made.hierarchy, [PLACES[i] for i in made.leaf_order]) == {"A": 1, "B": 1}


@pytest.mark.parametrize(
    "inside", [{"10", "11", "12"}, {0, 1, 2}, np.arange(3)], ids=["codes", "positions", "array"]
)
def test_branch_takes_codes_and_positions_too(inside):
    made = branch(COUNTY, "tract", inside)
    marked = branch(COUNTY, "tract", [label == "A" for label in PLACES])
    assert made.hierarchy.codes("tract").tolist() == marked.hierarchy.codes("tract").tolist()


def test_branch_at_the_top_level_puts_all_inside_parts_together():
    nation = Hierarchy.from_paths(
        [("n", "s", "a", "a1"), ("n", "s", "a", "a2"), ("n", "s", "b", "b1"), ("n", "s", "b", "b2")]
    )
    made = branch(nation, 1, [True, False, True, False])
    assert made.hierarchy.codes(1).tolist() == ["s:in", "s:out"]
    assert made.hierarchy.codes(-1).tolist() == ["a1", "b1", "a2", "b2"]
    assert distances(made.hierarchy, ["k", "k", None, None]) == {"k": 1}


@pytest.mark.parametrize(
    ("level", "inside", "words"),
    [
        (0, [True] * 10, "root holds all"),
        ("block", [True] * 10, "Leaves cannot be split"),
        (1, [False] * 10, "has none"),
        (1, [True] * 9, "one truth value"),
        (1, [1] * 10, "one truth value"),
        ("parish", [True] * 10, "No level"),
        (1, {"11", "99"}, "'99' is not a leaf"),
        (1, {3, 10}, "one truth value"),
        (1, set(), "has none"),
    ],
)
def test_branch_refuses(level, inside, words):
    with pytest.raises(StructureError, match=words):
        branch(COUNTY, level, inside)


# -- regroup --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("cut", "sizes"), [("fill", [4, 4, 2]), ("even", [3, 3, 4])])
def test_ten_by_four(cut, sizes):
    tract = Hierarchy.from_paths([("r", "t", "g", f"{i:02d}") for i in range(10)])
    made = regroup_leaves(tract, [None] * 10, fanout_cutoff=1, cut=cut)  # int(sqrt(10)) + 1 = 4
    assert [len(group) for group in groups_of(made)] == sizes


def test_leaves_of_one_combination_come_together_in_order():
    tract = Hierarchy.from_paths([("r", "t", f"g{i % 2}", f"{i}") for i in range(6)])
    leaves = tract.codes(-1).tolist()  # 0 2 4 1 3 5
    place = dict(zip("024135", ["A", None, "A", "A", None, None], strict=True))
    zone = dict(zip("024135", ["z", "z", None, "z", "z", "z"], strict=True))
    several = [[place[i] for i in leaves], [zone[i] for i in leaves]]
    assert groups_of(regroup_leaves(tract, several)) == [["0", "1"], ["2", "3", "5"], ["4"]]
    made = regroup_leaves(
        tract, {"place": [place[i] for i in leaves], "zone": [zone[i] for i in leaves]}
    )
    assert groups_of(made) == [["0", "1"], ["2", "3", "5"], ["4"]]
    assert made.hierarchy.codes(-2).tolist() == ["t.1", "t.2", "t.3"]


@given(st.data())
@settings(max_examples=60)
def test_groups_are_small_pure_and_few(data):
    tree = data.draw(hierarchies(max_children=6))
    if tree.n_levels < 3:
        return
    labels, cutoff = labels_for(tree, data.draw), data.draw(st.integers(0, 3))
    for cut in ("fill", "even"):
        made = regroup_leaves(tree, labels, cutoff, cut)
        new, kinds = made.hierarchy, [labels[i] for i in made.leaf_order]
        up, start = new.n_levels - 3, new.child_start[-1]
        counts = np.diff(new.child_start[up + 1][new.child_start[up]])
        for group in range(new.sizes[-2]):
            parent = new.parents(new.n_levels - 2)[group]
            members = kinds[start[group] : start[group + 1]]
            assert len(set(members)) == 1
            assert len(members) <= max(int(counts[parent] ** 0.5) + cutoff, 1)
        runs = {}
        for leaf, kind in enumerate(kinds):
            parent = int(new.parents(new.n_levels - 2)[new.parents(new.n_levels - 1)[leaf]])
            runs[parent, kind] = runs.get((parent, kind), 0) + 1
        limit = {p: max(int(counts[p] ** 0.5) + cutoff, 1) for p in range(counts.size)}
        assert new.sizes[-2] == sum(-(-n // limit[p]) for (p, _), n in runs.items())


@pytest.mark.parametrize(
    ("tree", "options", "words"),
    [
        (Hierarchy.from_paths([("r", "a"), ("r", "b")]), {}, "between the root and the leaves"),
        (Hierarchy.from_paths([("r",)]), {}, "between the root and the leaves"),
        (COUNTY, {"fanout_cutoff": -1}, "whole number of at least 0"),
        (COUNTY, {"fanout_cutoff": True}, "whole number of at least 0"),
        (COUNTY, {"fanout_cutoff": 1.5}, "whole number of at least 0"),
        (COUNTY, {"cut": "half"}, "fill or even"),
    ],
)
def test_regroup_refuses(tree, options, words):
    with pytest.raises(StructureError, match=words):
        regroup_leaves(tree, [None] * tree.sizes[-1], **options)


# -- groups of a level ----------------------------------------------------------------------------


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_groups_match_the_greedy_search_written_out(data):
    tree = data.draw(hierarchies(max_levels=4, max_children=3))
    labels = labels_for(tree, data.draw)
    if tree.n_levels < 3 or tree.sizes[-1] > 14 or not any(labels):
        return
    level, cutoff = data.draw(st.integers(1, tree.n_levels - 2)), data.draw(st.integers(0, 2))
    made = group_level(tree, level, labels, cutoff)
    n_children = np.diff(tree.child_start[level - 1])
    limits = [max(int(n**0.5) + cutoff, 1) for n in n_children]
    slow = slow_groups(tree, level, labels, limits)
    groups = np.split(made.hierarchy.codes(level + 1), made.hierarchy.child_start[level][1:-1])
    codes = tree.codes(level)
    wanted = {frozenset(codes[[i for i, g in enumerate(slow) if g == k]].tolist()) for k in slow}
    assert {frozenset(group.tolist()) for group in groups} == wanted


def test_a_place_of_two_tracts_becomes_a_group():
    county = Hierarchy.from_paths([("c", t, f"{t}{i}") for t in "123456" for i in range(3)])
    labels = ["A" if leaf[0] in "12" else None for leaf in county.codes(-1).tolist()]
    assert distances(county, labels) == {"A": 2}
    made = group_level(county, 1, labels, fanout_cutoff=1)
    assert made.hierarchy.level_names[1] == "level_1_group"
    assert distances(made.hierarchy, [labels[i] for i in made.leaf_order]) == {"A": 1}


def test_group_refuses():
    with pytest.raises(StructureError, match="root"):
        group_level(COUNTY, "county", PLACES)
    with pytest.raises(StructureError, match="already"):
        group_level(COUNTY, "tract", PLACES, name="group")
    with pytest.raises(StructureError, match="there are none"):
        group_level(COUNTY, "tract", {})


# -- bypass ---------------------------------------------------------------------------------------


def test_the_toy_county():
    regrouped = regroup_leaves(COUNTY, PLACES)
    labels = [PLACES[i] for i in regrouped.leaf_order]
    grouped = group_level(regrouped.hierarchy, "tract", labels)
    assert grouped.hierarchy.sizes == (1, 1, 3, 4, 10)
    shares = [F(1, 10), F(0), F(1, 5), F(3, 10), F(2, 5)]
    made = bypass(grouped.hierarchy, shares, "discrete_gaussian")
    assert made.shares == [
        [F(1, 10)],
        [F(0)],
        [F(1, 5), F(9, 10), F(1, 2)],
        [F(3, 10), F(3, 10), F(0), F(0)],
        [F(2, 5)] * 5 + [F(0)] + [F(2, 5)] * 4,
    ]


@pytest.mark.parametrize("mechanism", ["discrete_laplace", "discrete_gaussian"])
@pytest.mark.parametrize("n_children", [1, 2, 3, 4])
def test_table_for_equal_shares(n_children, mechanism):
    tree = Hierarchy.from_paths(
        [("r", "p", f"{i}") for i in range(n_children)] + [("r", "q", leaf) for leaf in "vwxyz"]
    )
    made = bypass(tree, [F(1, 3)] * 3, mechanism, keep_levels=1)
    gone = n_children <= (3 if mechanism == "discrete_laplace" else 1)
    assert made.shares[1].count(F(2, 3)) == (n_children if gone else 0)
    assert made.shares[2].count(F(0)) == (n_children if gone else 0)


def test_unequal_children_follow_the_sum():
    """A level below is lifted in one branch only, so the shares below the root differ."""
    deep = Hierarchy.from_paths([("r", "a", "a1"), *(("r", "b", f"b{i}") for i in range(9))])
    made = bypass(deep, [F(1, 2), F(1, 4), F(1, 4)], "discrete_laplace")
    # a is lifted to 1/2, b keeps 1/4: (1/2)/(1 + 1/2) + (1/2)/(1/2 + 1/2) = 1/3 + 1/2 <= 1.
    assert made.shares == [[F(0)], [F(1), F(3, 4)], [F(0)] + [F(1, 4)] * 9]


def dense_variances(tree, shares):
    """Variances of all sums of leaves' estimates: the covariance of the leaves, Laplace noise."""
    rows = np.vstack(tree.sum_up(np.eye(tree.sizes[-1])))
    weights = np.concatenate([np.array([float(s) for s in level]) for level in shares])
    return np.linalg.inv((rows * weights[:, np.newaxis] ** 2).T @ rows)


@given(st.data())
@settings(max_examples=100)
def test_pure_rule_makes_nothing_worse_and_leaves_nothing(data):
    tree = data.draw(hierarchies(max_levels=4, max_children=4))
    if tree.n_levels < 2:
        return
    weights = [data.draw(st.integers(1, 4)) for _ in range(tree.n_levels)]
    shares = [F(w, sum(weights)) for w in weights]
    made = bypass(tree, shares, "discrete_laplace")
    before = dense_variances(tree, [[s] * n for s, n in zip(shares, tree.sizes, strict=True)])
    after = dense_variances(made.hierarchy, made.shares)
    order = np.argsort(made.leaf_order)
    gap = before - after[np.ix_(order, order)]
    assert np.linalg.eigvalsh(gap).min() > -1e-9  # so no variance of any sum is larger
    new = made.hierarchy
    for level, level_shares in enumerate(made.shares[:-1]):
        start = new.child_start[level]
        for node, p in enumerate(level_shares):
            below = made.shares[level + 1][start[node] : start[node + 1]]
            if p and len(below) > 1:
                assert sum(p / (2 * g + p) for g in below) > 1
            if len(below) == 1:
                assert below[0] == 0
    again = bypass(new, made.shares, "discrete_laplace")
    assert again.shares == made.shares
    assert again.hierarchy.sizes == new.sizes


@given(st.data())
@settings(max_examples=60)
def test_zcdp_rule_changes_no_variance(data):
    tree = data.draw(hierarchies(max_levels=4, max_children=3))
    shares = [F(1, tree.n_levels)] * tree.n_levels
    made = bypass(tree, shares, "discrete_gaussian")

    def covariance(hierarchy, by_node):
        rows = np.vstack(hierarchy.sum_up(np.eye(hierarchy.sizes[-1])))
        precision = np.concatenate([np.array([float(s) for s in level]) for level in by_node])
        return np.linalg.inv((rows * precision[:, np.newaxis]).T @ rows)

    before = covariance(tree, [[s] * n for s, n in zip(shares, tree.sizes, strict=True)])
    np.testing.assert_allclose(covariance(made.hierarchy, made.shares), before, atol=1e-9)


@pytest.mark.parametrize(
    ("shares", "mechanism", "words"),
    [
        ([F(1, 2)] * 4, "discrete_laplace", "sum to 2"),
        ([F(1, 4)] * 3, "discrete_laplace", "3 lists"),
        ([F(1, 4)] * 4, "uniform", "not for 'uniform'"),
        ([0.25] * 4, "discrete_laplace", "must be fractions"),
        ([F(3, 4), F(-1, 4), F(1, 4), F(1, 4)], "discrete_laplace", "at least 0"),
        ([F(1, 4), [F(1, 4)] * 2, F(1, 4), F(1, 4)], "discrete_laplace", "one share, or 3"),
        ([F(1, 2), F(1, 4), F(1, 4), F(0)], "discrete_gaussian", "not measured"),
    ],
)
def test_bypass_refuses(shares, mechanism, words):
    with pytest.raises(StructureError, match=words):
        bypass(COUNTY, shares, mechanism)
