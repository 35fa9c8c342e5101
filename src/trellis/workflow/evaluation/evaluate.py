"""Compares a release with the truth. The result is confidential and never goes near a run folder.

Only the command `evaluate` may import this module; a contract of the import linter proves it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from trellis.confidential.metrics import LevelErrors
from trellis.errors import RunFolderError, SpecError
from trellis.ingest.frames import as_table
from trellis.ingest.reader import Source
from trellis.spec import Spec
from trellis.verify.files.inventory import refuse_strange
from trellis.workflow.confidential.measuring import tabulate
from trellis.workflow.evaluation.files import Units, write_evaluation
from trellis.workflow.kinds import comparison
from trellis.workflow.preparing.prepared import Prepared
from trellis.workflow.preparing.sources import resolve_source
from trellis.workflow.progress import Progress, Silent
from trellis.workflow.public.finishing import measured_run
from trellis.workflow.public.run_folder import RunFolder

_MARKS = ("run.json", "manifest.json", "privacy.json")
"""What shows that a folder is a run folder, or a copy of one."""

_READING = (
    "kind", "data", "hierarchy", "group_register", "sizes", "destinations", "trips", "schema",
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
    """Errors next to the names of what they belong to, not one step below."""
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
        raise RunFolderError(f"{folder.path} is not finished. Finish the run first.")
    refuse_strange(folder.path)
    prepared, source = _read_sources(folder, truth, register)
    with progress.stage("tabulate"):
        counts = tabulate(prepared, source, register)
    with progress.stage("compare"):
        levels = comparison(prepared.plan.kind)(folder, prepared, counts)
    plan = prepared.plan
    units = Units(plan.design.counted_in, plan.design.counted_for, plan.confidence)
    found = Evaluation(plan.release, folder.identity().run_id, units, levels)
    write_evaluation(out, found.as_json(), levels, units)
    return found


def _refuse_run_folders(out: Path) -> None:
    """Everything in a run folder may be published; this must not be."""
    place = out.resolve()
    for folder in (place, *place.parents):
        if any((folder / mark).exists() for mark in _MARKS):
            raise RunFolderError(
                f"{out} lies in the run folder {folder}, and everything there may be published. "
                "Name a confidential place with --confidential-out."
            )


def _read_sources(folder: RunFolder, truth: Any, register: Any) -> tuple[Prepared, Source]:
    """The run folder says how the records are read; `truth` says where they are."""
    run = measured_run(folder)
    prepared = Prepared(_public_spec(folder), run.plan, run.facts)
    if not isinstance(truth, str | Path):
        return prepared, as_table(truth)
    path = Path(truth)
    if path.suffix.lower() in (".yaml", ".yml"):
        named = Spec.load(path)
        ours, theirs = prepared.spec.public(), named.public()
        if any(ours.get(key) != theirs.get(key) for key in _READING):
            raise SpecError(f"{path} reads the records in a different way from the release.")
        source = resolve_source(named, named.data.source, None, "data.source")
        return Prepared(named, run.plan, run.facts), source
    if prepared.spec.needs_register and register is None:
        raise SpecError(
            "Group sizes are read with their register: give the release's spec as the truth."
        )
    return prepared, path


def _public_spec(folder: RunFolder) -> Spec:
    try:
        return folder.public_spec()
    except SpecError:
        raise RunFolderError(f"{folder.spec} is missing or damaged.") from None
