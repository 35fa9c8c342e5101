"""Privacy contract of histograms of which only used rows are measured.

What is measured is a part of the complete tables, each row once: by force, no neighbour moves it
further than was charged. And which part is decided by noisy numbers alone: whatever the records,
the same noisy numbers above lead to the same rows below.
"""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from contracts.neighbours import stated_cost, worst_cost
from histogram_release_worlds import SCHEMA, TREE, histogram_plan
from kinds.histograms import GAUSSIAN, LAPLACE, HistogramCase, tabulated
from seeded_bits import SeededBits
from trellis.confidential.histograms import TrueHistograms
from trellis.measure import histograms as measuring
from trellis.measure.charged_noise import ChargedNoise
from trellis.model.tables.measured_rows import EveryRow
from trellis.model.tables.queries import parse_query
from trellis.model.tables.sparse_counts import SparseCounts
from trellis.privacy.ledger import Claim
from trellis.privacy.neighbours import Neighbours
from trellis.storage.histogram_estimates import write_counts
from trellis.storage.histograms import counts_file, measured_rows
from trellis.workflow.confidential import histogram_descent
from trellis.workflow.confidential.histogram_descent import measure_used_histograms
from trellis.workflow.confidential.measuring import folder_digest

WORLDS = [
    HistogramCase(neighbours, m, (), budget)
    for neighbours, m, budget in product(Neighbours, (1, 2), (GAUSSIAN, LAPLACE))
]
SHARES_LEFT = (0.3, 0.7, 1.0)


def used_plan(world):
    return histogram_plan(
        neighbours=world.neighbours, max_contribution=world.m, budget=world.budget,
        method="topdown", measurements="used",
    )  # fmt: skip


def decide(folder, share, seed=0):
    """Counts of the inner levels, as noise might leave them."""
    rng = np.random.default_rng(seed)
    for level, size in zip(TREE.level_names[:-1], TREE.sizes, strict=False):
        left = (rng.random((size, SCHEMA.n_cells)) < share).astype(np.int64)
        write_counts(counts_file(folder, level), SparseCounts.from_dense(left))


def true_rows(folder, plan, content):
    """True answers in the rows that are measured when only this unit's records are in the data."""
    levels = dict(zip(TREE.level_names, tabulated(content).by_level(TREE), strict=True))
    out = []
    for planned in plan.queries:
        query, cells = parse_query(plan.schema, planned.query), levels[planned.level]
        rows = measured_rows(folder, plan, TREE, planned)
        if isinstance(rows, EveryRow):
            out.append(cells.marginal(query.cell_of, query.n_cells))
        else:
            area, cell = rows.located(0, rows.n_rows)
            out.append(cells.marginal_rows(query.cell_of, query.n_cells, area, cell))
    return out


def worst_of_used_rows(folder, world, plan):
    known = {}

    def measured(content):
        if content not in known:
            known[content] = true_rows(folder, plan, content)
        return known[content]

    return worst_cost(plan, world.pairs(), measured)


@pytest.mark.parametrize("world", WORLDS, ids=str)
def test_no_neighbour_moves_used_rows_further_than_charged(tmp_path, world):
    plan = used_plan(world)
    worst = []
    for share in SHARES_LEFT:
        decide(tmp_path / str(share), share)
        worst.append(worst_of_used_rows(tmp_path / str(share), world, plan))
    assert 0 < max(worst) <= stated_cost(plan)
    # With everybody left, all of it; but towns with siblings are in one state, whose total, like
    # the nation's, no replacement among them moves.
    free = sum((q.share for q in plan.queries if q.query == "total"), Fraction(0))
    moving = 1 - free if world.neighbours is Neighbours.REPLACE else 1
    assert worst[-1] == stated_cost(plan) * moving


def test_mutation_a_row_that_is_measured_twice_is_caught(tmp_path, monkeypatch):
    world = HistogramCase(Neighbours.REPLACE, 1, (), GAUSSIAN)
    decide(tmp_path, 1.0)
    once = SparseCounts.marginal_rows

    def twice(self, *rows):
        return np.repeat(once(self, *rows), 2)

    monkeypatch.setattr(SparseCounts, "marginal_rows", twice)
    with pytest.raises(AssertionError):
        worst_of_used_rows(tmp_path, world, used_plan(world))


# -- what is measured is decided by noisy numbers alone -------------------------------------------


def blind(planned, number):
    """Noisy numbers that do not depend on the records."""
    chance = np.random.default_rng([number, *planned.label.encode()])
    return chance.integers(-3, 6, number)


@pytest.fixture
def same_noisy_numbers(monkeypatch):
    def answer(planned, query, cells, first, last, bits):
        return blind(planned, (last - first) * query.n_cells).reshape(last - first, -1)

    def rows(planned, query, cells, area, cell, bits):
        return blind(planned, area.size)

    monkeypatch.setattr(measuring, "noisy_answer", answer)
    monkeypatch.setattr(measuring, "noisy_rows", rows)


def measured_in(folder, seed):
    rng = np.random.default_rng(seed)
    leaves = rng.integers(0, 9, (TREE.sizes[-1], SCHEMA.n_cells))
    counts = TrueHistograms(SparseCounts.from_dense(leaves))
    plan = histogram_plan(neighbours=Neighbours.ADD_REMOVE, method="topdown", measurements="used")
    claim = Claim("run", "token", plan.privacy)
    measure_used_histograms(
        folder, plan, TREE, counts, None, ChargedNoise(plan, claim, SeededBits(0)), 7, workers=1
    )
    return folder_digest(folder)


@pytest.mark.usefixtures("same_noisy_numbers")
def test_the_same_noisy_numbers_lead_to_the_same_rows(tmp_path):
    assert len({measured_in(tmp_path / str(seed), seed) for seed in range(4)}) == 1
    towns = tmp_path / "0" / "level=town" / "query=detailed"
    assert towns.is_dir()


@pytest.mark.usefixtures("same_noisy_numbers")
def test_mutation_rows_that_true_counts_decide_on_are_caught(tmp_path, monkeypatch):
    """Levels are kept as the truth has them."""
    real = histogram_descent.true_levels

    def peeking(*given):
        levels = real(*given)
        monkeypatch.setattr(histogram_descent, "_fitted_levels", lambda *_args: iter(levels))
        return levels

    monkeypatch.setattr(histogram_descent, "true_levels", peeking)
    assert len({measured_in(tmp_path / str(seed), seed) for seed in range(4)}) > 1
