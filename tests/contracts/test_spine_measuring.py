"""Privacy contract on spines: only what was priced is measured, on the tree that was planned."""

from dataclasses import replace

import pytest

from kinds.counts import BYPASSED, TREE, on_blocks
from trellis.confidential.counts import TrueCounts
from trellis.errors import StructureError
from trellis.measure.charged_noise import ChargedNoise
from trellis.measure.counts import measure_counts
from trellis.model.plans.answers import answers
from trellis.privacy.bits import OsRandom
from trellis.privacy.ledger import Claim


def test_noise_of_one_level_differs_and_paths_are_priced():
    plan = BYPASSED.made().plan
    assert len(plan.privacy.paths) > 1
    assert len({q.noise for q in plan.queries if q.level == "town" and q.noise}) > 1


def test_a_plan_with_a_spine_is_measured_on_it_only():
    on_spine = BYPASSED.made()
    truth = TrueCounts(on_blocks((), 1))
    with pytest.raises(StructureError, match="there is none"):
        answers(on_spine.plan, TREE, truth.leaves)
    with pytest.raises(StructureError, match="does not measure it"):
        answers(on_spine.conventional, TREE, truth.leaves, on_spine.spine)
    other = replace(BYPASSED, spine="regroup").made()
    claim = Claim("run", "token", on_spine.plan.privacy)
    with pytest.raises(StructureError, match=r"not the one|does not list"):
        measure_counts(
            on_spine.plan, TREE, truth, ChargedNoise(on_spine.plan, claim, OsRandom()), other.spine
        )


def test_unmeasured_nodes_answer_nothing():
    """What has no share is not looked at: there is no array for it, not even of zeros."""
    plan = BYPASSED.made()
    found = answers(plan.plan, TREE, on_blocks(((0, 0),), 1), plan.spine)
    spine = plan.plan.spine
    n_shares = sum(
        n for shares, nodes in zip(spine.shares, spine.nodes, strict=True)
        for share, n in zip(shares, nodes, strict=True) if share
    )  # fmt: skip
    noisy = [a for a, q in zip(found, plan.plan.queries, strict=True) if q.noise is not None]
    assert sum(a.shape[0] for a in noisy) == n_shares < sum(spine.sizes)
