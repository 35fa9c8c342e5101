"""What a user calls in Python; the command line calls the same."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from trellis.errors import RunFolderError
from trellis.execution.progress import part
from trellis.model.plans.plan import Plan
from trellis.spec import Spec
from trellis.workflow.confidential.measuring import Confirmed, measure_into, records_have_changed
from trellis.workflow.outlook.accuracy_warnings import accuracy_warnings
from trellis.workflow.preparing.prepare import foreseen, prepare
from trellis.workflow.progress import Progress, Silent
from trellis.workflow.public.finishing import Release, finish
from trellis.workflow.public.privacy_answers import find_privacy_answers
from trellis.workflow.public.run_folder import RunFolder, spec_hash

RECORDS_CHANGED = (
    "The records have changed since this release was measured, and it stays as it is. To release "
    "them as they are now, give the release a new name in the spec, and add --new-edition."
)


def plan(spec: Spec, *, hierarchy: Any = None, areas: Any = None, destinations: Any = None) -> Plan:
    """The plan with its guarantee and the expected errors; no counts are touched."""
    return foreseen(prepare(spec, hierarchy, interests=areas, destinations=destinations))


def measure(
    spec: Spec,
    out: str | Path | None = None,
    *,
    data: Any = None,
    hierarchy: Any = None,
    register: Any = None,
    destinations: Any = None,
    areas: Any = None,
    new_edition: bool = False,
    same_records: bool = False,
    progress: Progress | None = None,
) -> RunFolder:
    """The confidential half: charge the ledger, draw noise, write measurements."""
    folder = RunFolder(Path(out) if out is not None else spec.default_run_folder)
    frames = _Frames(data, hierarchy, register, areas, destinations)
    with folder.held():
        confirmed = Confirmed(new_edition, same_records)
        _measure(folder, spec, frames, confirmed, progress or Silent())
    return folder


@dataclass(frozen=True, slots=True)
class _Frames:
    """What is handed over in memory, in place of the spec's files."""

    data: Any
    hierarchy: Any
    register: Any
    areas: Any
    destinations: Any


def _measure(
    folder: RunFolder, spec: Spec, frames: _Frames, confirmed: Confirmed, progress: Progress
) -> None:
    if folder.is_started:
        if folder.identity().spec_sha256 != spec_hash(spec.public()):
            raise RunFolderError(
                f"{folder.path} holds a run of another spec. Choose another folder with --out."
            )
        if folder.is_measured:
            if records_have_changed(folder, spec, frames.data):
                progress.advise(RECORDS_CHANGED)
            return
    with progress.stage("plan"):
        given = frames.hierarchy, frames.data, frames.areas, frames.destinations
        with part(0.0, 0.8):
            prepared = prepare(spec, *given)
        if folder.is_started:
            _check_same_plan(folder, prepared.plan)
        expected = foreseen(prepared)
        warnings = accuracy_warnings(prepared, expected)
    for text in warnings:
        progress.advise(text)
    find_privacy_answers(expected, progress)
    measure_into(
        folder,
        replace(prepared, plan=expected),
        frames.data,
        frames.register,
        confirmed=confirmed,
        progress=progress,
    )


def run(
    spec: Spec,
    out: str | Path | None = None,
    *,
    data: Any = None,
    hierarchy: Any = None,
    register: Any = None,
    destinations: Any = None,
    areas: Any = None,
    new_edition: bool = False,
    same_records: bool = False,
    progress: Progress | None = None,
) -> Release:
    """A complete release. Started again, it resumes after the last finished stage.

    `data`, `hierarchy`, `register` (of groups) and `destinations` (of flows) take Arrow, Polars or
    pandas frames in place of the spec's files, `areas` a mapping of frames by category.
    `new_edition` confirms that the records have changed, `same_records` that the same records are
    in the ledger under another data set name.
    """
    folder = RunFolder(Path(out) if out is not None else spec.default_run_folder)
    progress = progress or Silent()
    frames = _Frames(data, hierarchy, register, areas, destinations)
    with folder.held():
        _measure(folder, spec, frames, Confirmed(new_edition, same_records), progress)
        return finish(folder, progress)


def _check_same_plan(folder: RunFolder, plan: Plan) -> None:
    """Beside the spec, the plan depends on the areas, the order of cells and this program."""
    if replace(folder.plan(), expected_errors=None, effects=None) != plan:
        raise RunFolderError(
            f"The hierarchy or the plan has changed since the run in {folder.path} began. "
            "Restore it, or choose another folder with --out."
        )
