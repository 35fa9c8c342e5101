"""The same release without its spine, for comparison: noise on the tree as it is published."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from trellis.privacy.accounting import calibrate
from trellis.verify.counts.families import Families
from trellis.verify.counts.measured_tree import LEAST_VARIANCE, MeasuredTree
from trellis.verify.files.run_files import RunFiles
from trellis.verify.plan.price import moves, noise_variance
from trellis.verify.plan.reading import is_searched, shares_over


def conventional_tree(run: RunFiles) -> MeasuredTree | None:
    """Without values; None where shares were searched for: plans keep those of the spine alone."""
    stated = run.spec["privacy"]["shares"]
    if is_searched(stated) or run.spec.get("accuracy"):
        return None
    exact = run.plan["unprotected_totals"]
    query = next(q["query"] for q in run.plan["queries"] if q["noise"] is not None)
    names = [level.name for level in run.levels]
    measurable = [name for name in names if not (query == "total" and name in exact)]
    if stated != "uniform":
        listed = stated.get("weights", stated)
        kept = {name: share for name, share in listed.items() if name in names}
        stated = {"weights": kept}
    noise = _variances(run, shares_over(stated, measurable))
    variance = [
        np.full(len(level), 0.0 if query == "total" and level.name in exact
                else noise.get(level.name, np.inf))
        for level in run.levels
    ]  # fmt: skip
    values = [np.zeros((len(level), run.n_cells)) for level in run.levels]
    known = query == "detailed" and names[0] in exact
    return MeasuredTree(names, Families.of(run.levels), values, variance, 0 if known else None)


def _variances(run: RunFiles, shares: dict[str, Fraction]) -> dict[str, float]:
    budget = {name: Fraction(value) for name, value in run.plan["budget"].items()}
    moved = moves(run.plan, {"query": "total"})
    l1 = sum(distance * cells for distance, cells in moved.items())
    l2 = sum(distance**2 * cells for distance, cells in moved.items())
    if "delta" in budget:
        kept = run.plan["protection"]
        found = calibrate(budget["epsilon"], budget["delta"], [list(shares.values())],
                          kept["neighbours"], kept["max_contribution"])  # fmt: skip
        parameters = {name: found.mechanism(share).parameter for name, share in shares.items()}
    elif "rho" in budget:
        parameters = {name: l2 / (2 * budget["rho"] * share) for name, share in shares.items()}
    else:
        parameters = {name: l1 / (budget["epsilon"] * share) for name, share in shares.items()}
    law = run.spec["privacy"]["mechanism"]
    return {
        name: max(noise_variance({"law": law, "parameter": str(value)}), LEAST_VARIANCE)
        for name, value in parameters.items()
    }
