"""The page on the architecture tells what is so: files, layers, and who sees true counts."""

import re
import runpy

import grimp
import pytest

from docs.test_tutorial import REPOSITORY

PAGE = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8")
PACKAGE = REPOSITORY / "src" / "trellis"
PICTURES = REPOSITORY / "docs" / "pictures"
PATHS = sorted(set(re.findall(r"`((?:\w+/)+(?:\w+\.py)?)`", PAGE)))
GRAPH = grimp.build_graph("trellis", exclude_type_checking_imports=True)
DRAWING = runpy.run_path(str(PICTURES / "architecture.py"))


@pytest.mark.parametrize("path", PATHS)
def test_what_the_page_names_is_there(path):
    made_by_runs = ("measurements/",)
    assert (PACKAGE / path).exists() or (REPOSITORY / path).exists() or path in made_by_runs


def test_paths_are_found():
    assert len(PATHS) > 50
    assert "ingest/records/counts.py" in PATHS


def test_picture_is_up_to_date():
    """`make docs`, or docs/pictures/architecture.py, draws it."""
    assert (PICTURES / "architecture.svg").read_text(encoding="utf-8") == DRAWING["picture"]()


def test_picture_has_every_package():
    drawn = {name for row in DRAWING["layers"]() for name in row}
    there = {p.name.removesuffix(".py") for p in PACKAGE.iterdir() if p.suffix in ("", ".py")}
    assert drawn == there - {"__init__", "__pycache__"}


def test_true_counts_live_where_the_page_says():
    """Besides the rooms themselves, only these start what happens there."""
    rooms = [f"trellis.{name}" for name in DRAWING["rooms_of_truth"]()]
    starts = (
        "trellis.api.", "trellis.cli.commands.", "trellis.workflow.running",
        "trellis.workflow.ledger_runs",
    )  # fmt: skip
    inside = {m for m in GRAPH.modules if any(m == r or m.startswith(f"{r}.") for r in rooms)}
    assert len(inside) > 20
    for module in inside:
        for importer in GRAPH.find_modules_that_directly_import(module) - inside:
            assert importer.startswith(starts), f"{importer} imports {module}"


def test_true_counts_are_held_in_no_other_room():
    """What starts a release from outside never has the counts themselves."""
    rooms = ("trellis.confidential", "trellis.measure", "trellis.ingest.records",
             "trellis.workflow.confidential", "trellis.workflow.evaluation")  # fmt: skip
    for name in ("counts", "histograms", "flows"):
        for importer in GRAPH.find_modules_that_directly_import(f"trellis.confidential.{name}"):
            assert importer.startswith(rooms)
