"""One self-contained page about a release, from its public files: a list of sections.

A section is a function from the run to HTML; one that has nothing to say gives an empty text. A
kind of release with more to show adds a section.
"""

from __future__ import annotations

from collections.abc import Callable
from html import escape

from trellis.evaluate import sections
from trellis.evaluate.area_tree import SCRIPT, area_tree
from trellis.evaluate.flow_pictures import flows_between_areas, how_accurate_flows_are
from trellis.evaluate.histogram_section import (
    how_to_read_a_histogram_margin,
    published_tables,
    what_is_counted,
    what_the_counts_keep,
)
from trellis.evaluate.html import page
from trellis.evaluate.public_run import PublicRun
from trellis.evaluate.spine_pictures import areas_of_interest
from trellis.execution.progress import in_parts
from trellis.wording import html as shell

Sections = tuple[Callable[[PublicRun], str], ...]
"""A report from its head to its foot."""

SECTIONS: Sections = (
    sections.what_is_released,
    sections.what_is_protected,
    sections.what_is_not_protected,
    sections.what_an_attacker_can_learn,
    sections.how_private_it_is,
    sections.where_the_budget_went,
    sections.how_accurate_it_is,
    areas_of_interest,
    sections.how_to_read_a_margin,
    area_tree,
    sections.how_to_cite,
)
HISTOGRAM_SECTIONS: Sections = (
    sections.what_is_released,
    what_is_counted,
    sections.what_is_protected,
    sections.what_is_not_protected,
    sections.what_an_attacker_can_learn,
    sections.how_private_it_is,
    sections.where_the_budget_went,
    published_tables,
    how_to_read_a_histogram_margin,
    area_tree,
    what_the_counts_keep,
    sections.how_to_cite,
)

FLOW_SECTIONS: Sections = (
    sections.what_is_released,
    flows_between_areas,
    sections.what_is_protected,
    sections.what_is_not_protected,
    sections.what_an_attacker_can_learn,
    sections.how_private_it_is,
    sections.where_the_budget_went,
    how_accurate_flows_are,
    sections.how_to_cite,
)


def report_page(run: PublicRun, sections: Sections = SECTIONS) -> str:
    """The whole page; it is the same whenever it is made from the same files."""
    made = {make: make(run) for make in in_parts(sections)}
    body = [shell.TITLE.format(title=escape(run.plan.release)), *filter(None, made.values())]
    return page(run.plan.release, body, SCRIPT if made.get(area_tree) else "", run.notice)
