"""What to expect of every single area of interest, without the spine and with it."""

from __future__ import annotations

import pyarrow as pa

from trellis.errors import SpecError
from trellis.planning.spine.effects import EntityEffects, entity_effects
from trellis.workflow.preparing.prepared import Prepared


def area_errors(prepared: Prepared) -> pa.Table:
    """One row per area: its distance from the spine and its expected standard error."""
    interests = prepared.interests
    if not interests.categories or interests.conventional is None:
        raise SpecError("--areas: the spec has no areas of interest.")
    effects = entity_effects(
        prepared.plan, prepared.hierarchy, interests.spine, interests.categories,
        interests.conventional,
    )  # fmt: skip
    return pa.concat_tables(_rows(category) for category in effects if not category.is_level)


def _rows(effects: EntityEffects) -> pa.Table:
    category = effects.category
    return pa.table(
        {
            "category": pa.array([category.name] * category.size, pa.string()),
            "area": pa.array(category.codes.tolist(), pa.string()),
            "distance_before": effects.distance_before,
            "distance_after": effects.distance_after,
            "std_error_before": effects.error_before,
            "std_error_after": effects.error_after,
        }
    )
