"""What `trellis plan` does besides the plan: areas as CSV, a picture, suggested settings."""

from __future__ import annotations

from pathlib import Path

from trellis.cli.show.spine import show_suggestion
from trellis.cli.terminal import Terminal
from trellis.model.plans.plan import Plan
from trellis.storage.atomic import write_text
from trellis.storage.spreadsheets import csv_text
from trellis.workflow.outlook.area_errors import area_errors
from trellis.workflow.outlook.pictures import spine_picture
from trellis.workflow.outlook.suggest import search_of
from trellis.workflow.preparing.prepared import Prepared
from trellis.workflow.preparing.spines import steps_of


def write_areas(terminal: Terminal, prepared: Prepared, path: Path) -> None:
    """One row per area of interest."""
    write_text(path, csv_text(area_errors(prepared)))
    terminal.say(f"Wrote {path}.")


def draw(terminal: Terminal, plan: Plan, path: Path) -> None:
    write_text(path, spine_picture(plan))
    terminal.say(f"Wrote {path}.")


def suggest_settings(terminal: Terminal, prepared: Prepared) -> None:
    search = search_of(prepared)
    with terminal.stage("search"):
        candidates = search.run(steps_of(prepared.spec.spine))
    show_suggestion(terminal, list(search.weights), candidates)
