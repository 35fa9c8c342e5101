"""One contract for all links that fit a family: sums kept, bounds kept, status honest.

A new link earns its place by joining `LINKS` or `ROOT_LINKS`. Every link is tried on top of those
before it, and on top of a crude one in place of least squares.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf

import numpy as np
import pytest

import histogram_worlds as worlds
from oracles.histogram_family import dense_optimum
from trellis.errors import Infeasible
from trellis.estimate.histograms.evidence import EvidenceInMemory
from trellis.estimate.histograms.family.bounds import FamilyBound
from trellis.estimate.histograms.family.edit_rules import KeepRules, KeepRulesOfRoot
from trellis.estimate.histograms.family.feasible_below import HoldBelow
from trellis.estimate.histograms.family.fixed_marginals import FixMarginals
from trellis.estimate.histograms.family.least_squares import LeastSquares
from trellis.estimate.histograms.family.problem import FamilyProblem
from trellis.estimate.histograms.family.repair import Repair, RepairRoot
from trellis.estimate.histograms.family.rounding import Round, RoundRoot
from trellis.estimate.histograms.family.solution import FamilySolution, SolveStatus
from trellis.estimate.histograms.level_bounds import level_bounds
from trellis.estimate.histograms.objectives import OwnMeasurements
from trellis.model.tables.constraints import Constraints, LinearConstraint, Sense
from trellis.model.tables.queries import parse_query
from trellis.numerics.feasibility.feasible_below import FeasibleBelow

TREE, SCHEMA = worlds.TREE, worlds.SCHEMA
TOLERANCE = 1e-6
PASSES = ("ends", "two")
FAMILIES = ((1, 0), (2, 2), (3, 3))
"""Level of the children, and number of their parent."""

TWO = parse_query(SCHEMA, "two").cell_of
RULES = [(TWO == 0, TWO == 1)]


@dataclass(frozen=True, eq=False)
class Scene:
    """A family of which the truth keeps all bounds, on its own level and below it."""

    problem: FamilyProblem
    below: FeasibleBelow
    level: int
    evidence: EvidenceInMemory


class EvenSplit:
    """Children that all hold the same. It keeps sums, and claims nothing else."""

    def solve(self, problem):
        n = problem.n_children
        parent = np.full(problem.active.size, 7.3) if problem.is_root else problem.totals / n
        real = np.repeat(parent[:, np.newaxis], n, axis=1)
        return FamilySolution(problem.active, real, SolveStatus.STALLED, inf, keeps_bounds=False)


FIRST = {"least squares": lambda: LeastSquares(TOLERANCE), "even split": EvenSplit}
LINKS = {
    "round": lambda inner, scene: Round(inner, 5),
    "repair": lambda inner, scene: Repair(inner),
    "rules": lambda inner, scene: KeepRules(inner, RULES),
    "below": lambda inner, scene: HoldBelow(inner, scene.below, scene.level),
    "marginals": lambda inner, scene: FixMarginals(inner, PASSES, 5),
}
ROOT_LINKS = {
    "round": lambda inner, scene: RoundRoot(inner, 5),
    "repair": lambda inner, scene: RepairRoot(inner),
    "rules": lambda inner, scene: KeepRulesOfRoot(inner, RULES),
    "below": lambda inner, scene: HoldBelow(inner, scene.below, 0),
}
UNREPAIRED = ("first", "round")
"""Links that may miss bounds, if they say so."""


def chain(links, last, first, scene):
    """All links up to the last one."""
    solver = FIRST[first]()
    for name, link in links.items():
        if last == "first":
            break
        solver = link(solver, scene)
        if name == last:
            break
    return solver


def constraints_on(truth, rng):
    """Exact totals of blocks, what they hold at most of three kinds, and bounds on counties."""
    three = parse_query(SCHEMA, "three")
    county = parse_query(SCHEMA, "b").answer(truth[2])
    most = three.answer(truth[3]) + rng.integers(0, 2, (TREE.sizes[3], 3))
    linear = (
        LinearConstraint("t", "block", "total", Sense.EQUAL, truth[3].sum(axis=1, keepdims=True)),
        LinearConstraint("m", "block", "three", Sense.AT_MOST, most),
        LinearConstraint("c", "county", "b", Sense.AT_LEAST, np.maximum(county - 1, 0)),
    )
    return Constraints(linear, np.zeros(SCHEMA.n_cells, dtype=bool))


def scene_of(seed, level, parent, bounded):
    rng = np.random.default_rng(seed)
    variance = float(rng.choice([1.0, 30.0, 400.0]))
    measured = [{"detailed": variance, "total": variance / 10, "ends": variance}] * TREE.n_levels
    truth, evidence = worlds.evidence(TREE, measured, rng, float(rng.choice([0.5, 4.0])))
    constraints = constraints_on(truth, rng) if bounded else None
    bounds, below = level_bounds(evidence, constraints)
    names = dict.fromkeys([*measured[0], *bounds[level].queries, *PASSES])
    queries = {name: parse_query(SCHEMA, name) for name in names}
    queries[below.kinds.name] = below.kinds
    kept = [*bounds[level].queries, *PASSES, below.kinds.name]
    objective = OwnMeasurements(evidence, level, queries, kept)
    nodes, cells, above = range(1), np.arange(SCHEMA.n_cells), None
    if level:
        start = TREE.child_start[level - 1]
        nodes = range(int(start[parent]), int(start[parent + 1]))
        cells = np.flatnonzero(truth[level - 1][parent])
        above = truth[level - 1][parent][cells]
    problem = FamilyProblem(
        objective, nodes, cells, above, queries, [queries[n] for n in measured[0]],
        tuple(bounds[level].family(nodes.start, nodes.stop)),
    )  # fmt: skip
    return Scene(problem if level else problem.without_blocked(), below, level, evidence)


def assert_contract(problem, found):
    """What every link promises."""
    slack = 1e-9 * (1 + found.real.max(initial=0)) if found.whole is None else 0
    assert found.sum_residual(problem) <= slack
    assert found.counts.min(initial=0) >= 0
    if found.keeps_bounds:
        assert found.bound_violation(problem) <= (TOLERANCE if found.whole is None else 0)
    assert (found.distance <= TOLERANCE) == (found.status is SolveStatus.SOLVED)
    if found.whole is not None:
        assert found.whole.dtype == np.int64


@pytest.mark.parametrize("bounded", [False, True], ids=["free", "bounded"])
@pytest.mark.parametrize(("level", "parent"), FAMILIES)
@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize("last", ["first", *LINKS])
def test_every_link_keeps_the_contract(last, first, level, parent, bounded):
    for seed in range(6):
        scene = scene_of(seed, level, parent, bounded)
        found = chain(LINKS, last, first, scene).solve(scene.problem)
        assert_contract(scene.problem, found)
        assert found.keeps_bounds or last in UNREPAIRED


@pytest.mark.parametrize("bounded", [False, True], ids=["free", "bounded"])
@pytest.mark.parametrize("first", FIRST)
@pytest.mark.parametrize("last", ["first", *ROOT_LINKS])
def test_every_link_of_the_root_keeps_the_contract(last, first, bounded):
    for seed in range(6):
        scene = scene_of(seed, 0, 0, bounded)
        found = chain(ROOT_LINKS, last, first, scene).solve(scene.problem)
        assert_contract(scene.problem, found)
        assert found.keeps_bounds or last in UNREPAIRED


def can_be_shared_out(scene, found):
    kinds = np.zeros((scene.problem.n_children, scene.below.kinds.n_cells), dtype=np.int64)
    np.add.at(kinds.T, scene.below.kinds.cell_of[found.cells], found.counts)
    nodes = scene.problem.nodes
    return all(scene.below.can_hold(scene.level, node, kinds[i]) for i, node in enumerate(nodes))


def test_what_children_hold_can_be_shared_out_below():
    scenes = [scene_of(seed, level, 0, bounded=True) for seed in range(12) for level in (0, 1)]
    before = after = 0
    for scene in scenes:
        links = LINKS if scene.level else ROOT_LINKS
        without, held = (
            chain(links, last, "least squares", scene).solve(scene.problem)
            for last in ("rules", "below")
        )
        before += can_be_shared_out(scene, without)
        after += can_be_shared_out(scene, held)
    assert before < after == len(scenes)


@pytest.mark.parametrize("last", [name for name in LINKS if name != "marginals"])
@pytest.mark.parametrize("tolerance", [1e-6, 0.3, 3.0])
def test_no_real_counts_are_farther_from_the_best_than_they_say(last, tolerance):
    scene = scene_of(3, 2, 2, bounded=False)
    problem, nodes = scene.problem, scene.problem.nodes
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(FIRST, "coarse", lambda: LeastSquares(tolerance))
        found = chain(LINKS, last, "coarse", scene).solve(problem)
    measured = scene.evidence.measured[2]
    values = {n: scene.evidence.read(2, n, nodes.start, nodes.stop) for n in measured}
    parent = np.zeros(SCHEMA.n_cells, dtype=np.int64)
    parent[problem.active] = problem.parent
    shape = {n: v.shape for n, v in values.items()}
    variances = {n: np.full(shape[n], v) for n, v in measured.items()}
    best = dense_optimum(SCHEMA, parent, list(measured), values, variances)
    best = best.reshape(len(nodes), -1)[:, problem.active].T
    assert np.sqrt(np.mean((found.real - best) ** 2)) <= found.distance + 1e-6
    assert found.distance <= tolerance


# -- the contract notices -------------------------------------------------------------------------


class Tampered:
    """A link that moves units of its first cell: where from, and where to."""

    def __init__(self, inner, giver, taker):
        self.inner, self.giver, self.taker = inner, giver, taker

    def solve(self, problem):
        found = self.inner.solve(problem)
        for child, units in ((self.giver, -1), (self.taker, 1)):
            if child is not None:
                found.whole[int(np.argmax(found.whole[:, self.giver or 0])), child] += units
        return found


@pytest.mark.parametrize(("giver", "taker"), [(0, None), (None, 1)])
def test_a_link_that_loses_someone_is_found_out(giver, taker):
    scene = scene_of(1, 3, 3, bounded=False)
    found = Tampered(chain(LINKS, "repair", "least squares", scene), giver, taker).solve(
        scene.problem
    )
    assert found.sum_residual(scene.problem) == 1
    with pytest.raises(AssertionError):
        assert_contract(scene.problem, found)


def test_a_link_that_breaks_a_bound_is_found_out():
    scene = scene_of(1, 3, 3, bounded=True)
    repaired = chain(LINKS, "repair", "least squares", scene)
    assert_contract(scene.problem, repaired.solve(scene.problem))
    found = Tampered(repaired, 0, 1).solve(scene.problem)  # whose totals are exact
    assert found.sum_residual(scene.problem) == 0
    assert found.bound_violation(scene.problem) >= 1
    with pytest.raises(AssertionError):
        assert_contract(scene.problem, found)


def test_what_stands_where_nothing_may_be_is_measured():
    scene = scene_of(2, 3, 3, bounded=False)
    found = chain(LINKS, "repair", "least squares", scene).solve(scene.problem)
    everywhere = np.ones(SCHEMA.n_cells, dtype=bool)
    strict = replace(scene.problem, impossible=everywhere)
    assert found.bound_violation(strict) == found.counts.max() > 0
    with pytest.raises(Infeasible, match="none of its children may hold"):
        LeastSquares().solve(strict)


def test_groups_of_children_are_measured_together():
    scene = scene_of(2, 3, 3, bounded=False)
    problem, n = scene.problem, scene.problem.n_children
    found = chain(LINKS, "repair", "least squares", scene).solve(problem)
    pair = found.children[:2].sum()
    group = np.array([0, 0, *[-1] * (n - 2)])
    bound = FamilyBound("total", np.array([[pair + 3.0]]), np.array([[inf]]), group)
    assert found.bound_violation(problem.with_bounds([bound])) == 3
