"""What a spine does to areas and levels, as a picture and a section of the report."""

from __future__ import annotations

from collections.abc import Sequence

from trellis.evaluate.charts import before_after_chart
from trellis.evaluate.html import link, paragraph, picture, section
from trellis.evaluate.public_run import AREAS, PublicRun
from trellis.model.trees.areas import Effect


def effect_chart(effects: Sequence[Effect]) -> str:
    """The mean expected standard error of areas and levels, without and with the spine."""
    ordered = sorted(effects, key=lambda effect: effect.is_level)
    rows = [
        (f"{e.name} (level)" if e.is_level else e.name, e.error_before, e.error_after)
        for e in ordered
    ]
    return before_after_chart("Mean expected standard error of a count, in records", rows)


def areas_of_interest(run: PublicRun) -> str:
    """Tables of areas, and what the spine does; nothing for a release without them."""
    plan = run.plan
    if plan.forecast.effects is None:
        return ""
    parts = []
    for area in plan.interests:
        files = [
            link(place, place.rpartition("/")[2]) for place in run.links(f"{AREAS}/{area.name}")
        ]
        parts.append(f"<p>{' '.join(files)}: {area.entities:,} areas.</p>")
    if plan.spine is not None:
        said = (
            "Noise was spent on an internal tree, the spine, and estimates were carried back to "
            "the published levels and areas as sums of their leaves. Before: without the spine. "
        )
        parts += [paragraph(said + "; ".join(plan.spine.steps).capitalize() + ".")]
        parts += [picture(effect_chart(plan.forecast.effects))]
    return section("Areas of interest", *parts)
