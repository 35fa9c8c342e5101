"""Compares a release with the truth. The result is confidential and never goes near a run folder.

Only the command `evaluate` may import this module; a contract of the import linter proves it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from trellis.confidential.counts import TrueCounts
from trellis.confidential.flows import TrueFlows
from trellis.confidential.histograms import TrueHistograms
from trellis.confidential.metrics import COUNTS, TOTALS, LevelErrors, level_errors
from trellis.errors import RunFolderError, SpecError
from trellis.ingest.frames import as_table
from trellis.ingest.reader import Source
from trellis.model.areas import OUTSIDE
from trellis.model.codes import Codes
from trellis.model.counted import counted_for, counted_in
from trellis.model.plan import TOTAL
from trellis.storage.measurements import measurement_file
from trellis.storage.parquet import read_table
from trellis.verify.inventory import refuse_strange
from trellis.workflow.compared_tables import read_published, require_same_totals
from trellis.workflow.confidential_half import read_counts
from trellis.workflow.config import Spec
from trellis.workflow.evaluation_files import Units, write_evaluation
from trellis.workflow.flow_evaluation import compare_flows
from trellis.workflow.histogram_evaluation import compare_histograms
from trellis.workflow.prepare import Prepared
from trellis.workflow.progress import Progress, Silent
from trellis.workflow.run_folder import RunFolder
from trellis.workflow.sources import resolve_source

_MARKS = ("run.json", "manifest.json", "privacy.json")
"""What shows that a folder is a run folder, or a copy of one."""

_READING = (
    "kind", "data", "hierarchy", "group_register", "sizes", "destinations", "trips", "attributes",
    "schema",
)  # fmt: skip
"""The keys of a spec that say how records are read."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Errors by level, root first."""

    release: str
    run_id: str
    units: Units
    levels: tuple[LevelErrors, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "confidential": True,
            "notice": "Made from the confidential records. Do not publish.",
            "release": self.release,
            "run_id": self.run_id,
            "confidence": str(self.units.confidence),
            "counts_of": self.units.counts,
            "levels": [_flat(asdict(level)) for level in self.levels],
        }


def _flat(content: dict[str, Any]) -> dict[str, Any]:
    """Errors beside the names of what they belong to, not one step below."""
    parts = {k: list(map(_flat, content[k])) for k in ("by_size", "by_group") if k in content}
    return {k: v for k, v in content.items() if k != "errors"} | content["errors"] | parts


def evaluate_run(
    run: str | Path,
    truth: Any,
    confidential_out: str | Path,
    *,
    register: Any = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Compare the tables of a finished run with `truth`, and write what was found.

    `truth` is a file of records as the release had them, the release's spec (a YAML file, which
    names them), or a frame. Group sizes need their register too: name the spec, or pass a frame.
    """
    out, folder, progress = Path(confidential_out), RunFolder(Path(run)), progress or Silent()
    _refuse_run_folders(out)
    folder.require_started()
    if not folder.is_finished:
        raise RunFolderError(f"{folder.path} is not finished. Run the same command again.")
    refuse_strange(folder.path)
    prepared, source = _read_sources(folder, truth, register)
    with progress.stage("tabulate"):
        counts = read_counts(prepared, source, register)
    with progress.stage("compare"):
        if isinstance(counts, TrueFlows):
            levels = compare_flows(folder, prepared, counts)
        elif isinstance(counts, TrueHistograms):
            levels = compare_histograms(folder, prepared, counts)
        else:
            _require_same_totals(folder, prepared, counts)
            levels = _compare(folder, prepared, counts)
    plan = prepared.plan
    units = Units(counted_in(plan.kind), counted_for(plan.kind), plan.confidence)
    found = Evaluation(plan.release, folder.identity().run_id, units, levels)
    write_evaluation(out, found.as_json(), levels, units)
    return found


def _refuse_run_folders(out: Path) -> None:
    """Everything in a run folder may be published; this may not."""
    place = out.resolve()
    for folder in (place, *place.parents):
        if any((folder / mark).exists() for mark in _MARKS):
            raise RunFolderError(
                f"{out} lies in the run folder {folder}, and everything there may be published. "
                "Name a confidential place with --confidential-out."
            )


def _read_sources(folder: RunFolder, truth: Any, register: Any) -> tuple[Prepared, Source]:
    """How the records are read stands in the run folder; where they are, in `truth`."""
    spec, hierarchy, plan = _public_spec(folder), folder.hierarchy(), folder.plan()
    if not isinstance(truth, str | Path):
        return Prepared(spec, hierarchy, plan, destinations=folder.destinations()), as_table(truth)
    path = Path(truth)
    if path.suffix.lower() in (".yaml", ".yml"):
        named = Spec.load(path)
        ours, theirs = spec.public(), named.public()
        if any(ours.get(key) != theirs.get(key) for key in _READING):
            raise SpecError(f"{path} reads the records in another way than the release did.")
        source = resolve_source(named, named.data.source, None, "data.source")
        return Prepared(named, hierarchy, plan, destinations=folder.destinations()), source
    if spec.group_register is not None and register is None:
        raise SpecError(
            "Group sizes are read with their register: give the release's spec as --truth."
        )
    return Prepared(spec, hierarchy, plan, destinations=folder.destinations()), path


def _public_spec(folder: RunFolder) -> Spec:
    try:
        return Spec.parse(yaml.safe_load(folder.spec.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError, yaml.YAMLError, SpecError):
        raise RunFolderError(f"{folder.spec} is missing or damaged.") from None


def _require_same_totals(folder: RunFolder, prepared: Prepared, counts: TrueCounts) -> None:
    plan, totals = prepared.plan, prepared.hierarchy.sum_up(counts.leaves.sum(axis=1))
    for query in plan.queries:
        # On a spine only the root is sure to be an area of the hierarchy.
        comparable = plan.spine is None or query.level == plan.levels[0]
        if query.noise is None and query.query == TOTAL and comparable:
            exact = read_table(measurement_file(folder.measurements, query), ["value"])["value"]
            require_same_totals(exact.to_numpy(), totals[prepared.hierarchy.index(query.level)])


def _compare(folder: RunFolder, prepared: Prepared, counts: TrueCounts) -> tuple[LevelErrors, ...]:
    """Levels root first, then categories of areas of interest."""
    plan, tree = prepared.plan, prepared.hierarchy
    found = []
    for level, truth in enumerate(tree.sum_up(counts.leaves)):
        shown = ~tree.passes_through[level]
        path = folder.release / f"{plan.levels[level]}.parquet"
        found += _table_errors(path, plan.levels[level], tree.codes(level)[shown], truth[shown])
    for category in folder.interests(plan).categories:
        inside = category.member != OUTSIDE
        truth = np.zeros((category.size, plan.schema.n_cells), dtype=np.int64)
        np.add.at(truth, category.member[inside], counts.leaves[inside])
        path = folder.release / "areas" / f"{category.name}.parquet"
        found += _table_errors(path, category.name, category.codes, truth)
    return tuple(found)


def _table_errors(path: Path, name: str, codes: Codes, truth: NDArray) -> list[LevelErrors]:
    """Errors of a released table whose rows are these areas x cells, and of their totals."""
    n_cells = truth.shape[1]
    count, ends = read_published(path, codes, n_cells)
    found = [level_errors(name, COUNTS, truth, count, ends)]
    if n_cells > 1:
        totals = (numbers.sum(axis=1, keepdims=True) for numbers in (truth, count))
        found.append(level_errors(name, TOTALS, *totals))
    return found
