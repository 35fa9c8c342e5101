"""Privacy contract on spines: the worst neighbour, found by force, costs what was charged."""

from dataclasses import replace
from fractions import Fraction as F
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from contracts.neighbours import worst_cost
from trellis.confidential.counts import TrueCounts
from trellis.errors import StructureError
from trellis.measure.charged_noise import ChargedNoise
from trellis.measure.counts import measure_counts
from trellis.model import Hierarchy, Schema
from trellis.model.plans.answers import answers
from trellis.model.plans.shares import Shares
from trellis.model.trees.areas import Category
from trellis.planning.kinds.counts import CountsRequest
from trellis.planning.spine.counts import plan_counts_on_spine
from trellis.planning.spine.steps import Branch, Bypass, GroupLevel, RegroupLeaves
from trellis.privacy.bits import OsRandom
from trellis.privacy.budget import Budget
from trellis.privacy.ledger import Claim
from trellis.privacy.neighbours import Neighbours
from trellis.storage.spines import spine_digest

TREE = Hierarchy.from_paths(
    [("r", "a", "a1", "p"), ("r", "a", "a1", "q"), ("r", "a", "a2", "s"), ("r", "b", "b1", "t"),
     ("r", "b", "b2", "u"), ("r", "b", "b2", "v"), ("r", "b", "b2", "w"), ("r", "b", "b2", "x")],
    ["nation", "state", "town", "block"],
)  # fmt: skip
PLACES = {"place": Category.of([None, "A", "A", None, "B", "B", None, None], "place")}
SPINES = {
    "regroup": (RegroupLeaves(("place",), 0), Bypass()),
    "group": (GroupLevel("town", ("place",), 1), Bypass()),
    "branch": (Branch("state", ("place",)), Bypass()),
    "bypass": (Bypass(),),
    "no bypass": (RegroupLeaves(("place",), 0),),
}
BUDGETS = {"rho": Budget(rho=F(1)), "epsilon": Budget(epsilon=F(1))}


def made(steps, neighbours, m, n_cells, budget):
    request = CountsRequest(
        "tiny", "tiny", "person", neighbours, m, budget, Shares(), (), "gls_topdown", F(9, 10)
    )
    schema = Schema({"cell": [f"c{i}" for i in range(n_cells)]})
    return plan_counts_on_spine(request, TREE, schema, "digest", steps, PLACES, spine_digest)


def pairs(neighbours, m, n_cells):
    places = list(product(range(8), range(n_cells)))
    contents = [c for size in range(m + 1) for c in combinations_with_replacement(places, size)]
    if neighbours is Neighbours.ADD_REMOVE:
        return [(content, ()) for content in contents]
    return [(a, b) for a, b in combinations_with_replacement(contents, 2) if len(a) == len(b)]


def counts(content, n_cells):
    leaves = np.zeros((8, n_cells), dtype=np.int64)
    for leaf, cell in content:
        leaves[leaf, cell] += 1
    return TrueCounts(leaves)


def worst_on_spine(plan, spine, neighbours, m, n_cells):
    found: dict = {}

    def measured(content):
        if content not in found:
            found[content] = answers(plan, TREE, counts(content, n_cells).leaves, spine)
        return found[content]

    return worst_cost(plan, pairs(neighbours, m, n_cells), measured)


@pytest.mark.parametrize("name", SPINES)
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("neighbours", Neighbours)
@pytest.mark.parametrize(("m", "n_cells"), [(1, 1), (1, 2), (2, 1)])
def test_the_worst_neighbour_costs_what_was_charged(name, budget, neighbours, m, n_cells):
    plan = made(SPINES[name], neighbours, m, n_cells, BUDGETS[budget])
    guarantee = plan.plan.privacy
    charged = guarantee.rho if budget == "rho" else guarantee.pure_epsilon
    assert charged == 1
    assert worst_on_spine(plan.plan, plan.spine, neighbours, m, n_cells) == charged


def test_noise_of_one_level_differs_and_paths_are_priced():
    plan = made(SPINES["bypass"], Neighbours.REPLACE, 1, 1, BUDGETS["rho"]).plan
    assert len(plan.privacy.paths) > 1
    assert len({q.noise for q in plan.queries if q.level == "town" and q.noise}) > 1


def test_mutation_doubling_a_share_is_caught():
    """A node whose share went up and that keeps its own as well costs more than the budget."""
    plan = made(SPINES["bypass"], Neighbours.REPLACE, 1, 1, BUDGETS["rho"])
    queries = tuple(
        replace(q, noise=type(q.noise)(q.noise.parameter / 2)) if q.noise else q
        for q in plan.plan.queries
    )
    changed = replace(plan.plan, queries=queries)
    assert worst_on_spine(changed, plan.spine, Neighbours.REPLACE, 1, 1) == 2


def test_a_plan_with_a_spine_is_measured_on_it_only():
    on_spine = made(SPINES["bypass"], Neighbours.REPLACE, 1, 1, BUDGETS["rho"])
    truth = counts((), 1)
    with pytest.raises(StructureError, match="there is none"):
        answers(on_spine.plan, TREE, truth.leaves)
    with pytest.raises(StructureError, match="does not measure it"):
        answers(on_spine.conventional, TREE, truth.leaves, on_spine.spine)
    other = made(SPINES["regroup"], Neighbours.REPLACE, 1, 1, BUDGETS["rho"])
    claim = Claim("run", "token", on_spine.plan.privacy)
    with pytest.raises(StructureError, match=r"not the one|does not list"):
        measure_counts(
            on_spine.plan, TREE, truth, ChargedNoise(on_spine.plan, claim, OsRandom()), other.spine
        )


def test_unmeasured_nodes_answer_nothing():
    """What has no share is not looked at: there is no array for it, not even of zeros."""
    plan = made(SPINES["bypass"], Neighbours.REPLACE, 1, 1, BUDGETS["rho"])
    found = answers(plan.plan, TREE, counts(((0, 0),), 1).leaves, plan.spine)
    spine = plan.plan.spine
    n_shares = sum(
        n for shares, nodes in zip(spine.shares, spine.nodes, strict=True)
        for share, n in zip(shares, nodes, strict=True) if share
    )  # fmt: skip
    noisy = [a for a, q in zip(found, plan.plan.queries, strict=True) if q.noise is not None]
    assert sum(a.shape[0] for a in noisy) == n_shares < sum(spine.sizes)
