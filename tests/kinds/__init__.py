"""A `World` for each kind of release: what the contract tests are parametrised over.

A kind that the package has and that has no world fails here, so that no test is collected.
"""

from __future__ import annotations

from collections.abc import Collection

from kinds import counts, flows, group_sizes, histograms, means
from kinds.world import World
from trellis.workflow.kinds import KINDS

WORLDS: dict[str, World] = {
    made.kind: made for made in (counts.WORLD, histograms.WORLD, group_sizes.WORLD, flows.WORLD)
}
WITH_TOYS: dict[str, World] = WORLDS | {means.WORLD.kind: means.WORLD}
"""And the fifth kind, which the package does not have."""


def require_worlds(kinds: Collection[str], worlds: Collection[str]) -> None:
    if missing := sorted(set(kinds) - set(worlds)):
        raise LookupError(
            f"No world for kind {', '.join(missing)}: enter one in tests/kinds/, so that the "
            "contracts of privacy are tested on it."
        )


require_worlds(KINDS, WORLDS)
