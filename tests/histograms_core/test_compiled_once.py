"""Kernels are compiled for one layout of their arguments: each further one takes half a minute."""

import numpy as np

import histogram_worlds as worlds
from trellis.estimate.histograms.estimators import estimate_gls_topdown, estimate_topdown
from trellis.model.tables.constraints import Constraints, LinearConstraint, Sense
from trellis.numerics.histograms.algebra import operators
from trellis.numerics.histograms.least_squares import accelerated
from trellis.numerics.histograms.rules import enforce
from trellis.numerics.histograms.whole_numbers import repair, rounding, swaps


def test_one_signature_each():
    measured = [{"detailed": 1.0, "total": 0.0}] + [{"detailed": 4.0, "three": 2.0}] * 3
    truth, evidence = worlds.evidence(worlds.TREE, measured, np.random.default_rng(1))
    rule = LinearConstraint(
        "rule", "county", "total", Sense.EQUAL, truth[2].sum(axis=1, keepdims=True)
    )
    constraints = Constraints((rule,), np.zeros(worlds.SCHEMA.n_cells, dtype=bool))
    cell = np.eye(worlds.SCHEMA.n_cells, dtype=bool)
    rules = [(cell[0], cell[1]), (cell[1], cell[2])]
    for estimate in (estimate_topdown, estimate_gls_topdown):
        estimate(evidence, 0, edit_rules=rules)
        estimate(evidence, 0, constraints=constraints, edit_rules=rules, passes=("three",))
    estimate_gls_topdown(evidence, 0, marginals=[("block", "three"), ("nation", "total")])
    for kernel in (
        accelerated.minimise_from,
        operators.apply_written,
        swaps.swap_units,
        rounding.round_cells,
        repair.repair,
        enforce.enforce,
    ):
        assert len(kernel.signatures) == 1, (kernel.__name__, kernel.signatures)
