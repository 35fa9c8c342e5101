"""What `trellis plan` does besides the plan: areas as CSV, a picture, suggested settings."""

from __future__ import annotations

import csv
from io import StringIO
from pathlib import Path

from trellis.cli.show.spine import show_suggestion
from trellis.cli.terminal import Terminal
from trellis.errors import SpecError
from trellis.evaluate.spine_pictures import effect_chart
from trellis.model.plans.plan import Plan
from trellis.planning.spine.effects import entity_effects
from trellis.storage.atomic import write_text
from trellis.storage.spreadsheets import safe_text
from trellis.workflow.outlook.suggest import search_of
from trellis.workflow.preparing.prepared import Prepared
from trellis.workflow.preparing.spines import steps_of

_COLUMNS = [
    "category", "area", "distance_before", "distance_after", "std_error_before", "std_error_after"
]  # fmt: skip


def write_areas(terminal: Terminal, prepared: Prepared, path: Path) -> None:
    """One row per area of interest."""
    interests = prepared.interests
    if not interests.categories or interests.conventional is None:
        raise SpecError("--areas: the spec has no areas of interest.")
    text = StringIO()
    writer = csv.writer(text)
    writer.writerow(_COLUMNS)
    for effects in entity_effects(
        prepared.plan, prepared.hierarchy, interests.spine, interests.categories,
        interests.conventional,
    ):  # fmt: skip
        if effects.is_level:
            continue
        name, codes = effects.category.name, effects.category.codes.tolist()
        numbers = (effects.distance_before, effects.distance_after, effects.error_before,
                   effects.error_after)  # fmt: skip
        for code, *row in zip(codes, *(n.tolist() for n in numbers), strict=True):
            writer.writerow([safe_text(name), safe_text(code), *row])
    write_text(path, text.getvalue())
    terminal.say(f"Wrote {path}.")


def draw(terminal: Terminal, plan: Plan, path: Path) -> None:
    if plan.forecast.effects is None:
        raise SpecError("--picture: the spec has neither areas of interest nor a spine.")
    write_text(path, effect_chart(plan.forecast.effects) + "\n")
    terminal.say(f"Wrote {path}.")


def suggest_settings(terminal: Terminal, prepared: Prepared) -> None:
    search = search_of(prepared)
    with terminal.stage("search"):
        candidates = search.run(steps_of(prepared.spec.spine))
    show_suggestion(terminal, list(search.weights), candidates)
