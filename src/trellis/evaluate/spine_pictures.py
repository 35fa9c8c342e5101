"""What a spine does to areas and levels, as a picture and a section of the report."""

from __future__ import annotations

from collections.abc import Sequence

from trellis.evaluate.charts import before_after_chart
from trellis.evaluate.html import link, paragraph, picture, section
from trellis.evaluate.public_run import AREAS, PublicRun
from trellis.model.trees.areas import Effect
from trellis.wording import html as shell
from trellis.wording import report as words


def effect_chart(effects: Sequence[Effect]) -> str:
    """The mean expected standard error of areas and levels, without and with the spine."""
    ordered = sorted(effects, key=lambda effect: effect.is_level)
    rows = [
        (
            words.EFFECT_OF_LEVEL.format(level=e.name) if e.is_level else e.name,
            e.error_before,
            e.error_after,
        )
        for e in ordered
    ]
    return before_after_chart(words.EFFECTS, rows)


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
        text = words.INTEREST.format(number=area.entities)
        parts.append(shell.INTEREST.format(links=" ".join(files), text=text))
    if plan.spine is not None:
        steps = "; ".join(plan.spine.steps).capitalize()
        parts += [paragraph(words.SPINE.format(steps=steps))]
        parts += [picture(effect_chart(plan.forecast.effects))]
    return section(words.INTERESTS, *parts)
