"""A release from start to end: plan, measure, finish. Started again, it resumes."""

from __future__ import annotations

from trellis.errors import RunFolderError, SpecError
from trellis.execution.progress import part
from trellis.model.plans.plan import Plan
from trellis.spec import Spec
from trellis.workflow.confidential.measuring import (
    NOT_CONFIRMED,
    Confirmed,
    measure_into,
    records_have_changed,
)
from trellis.workflow.frames import NO_FRAMES, Frames
from trellis.workflow.outlook.accuracy_warnings import accuracy_warnings
from trellis.workflow.preparing.prepare import prepare, with_forecast
from trellis.workflow.progress import Progress
from trellis.workflow.public.finishing import finish
from trellis.workflow.public.privacy_answers import find_privacy_answers
from trellis.workflow.public.run_folder import RunFolder

RECORDS_CHANGED = (
    "The records have changed since this release was measured; it stays as it is. To release "
    "them as they are now, give the release a new name in the spec, and add --new-edition."
)


def measure_run(
    folder: RunFolder,
    spec: Spec,
    progress: Progress,
    frames: Frames = NO_FRAMES,
    confirmed: Confirmed = NOT_CONFIRMED,
    planned: Plan | None = None,
) -> None:
    """The confidential half: charge the ledger, draw noise, write measurements.

    A plan that was looked at before must still be the plan.
    """
    with folder.held():
        _measure(folder, spec, frames, confirmed, progress, planned)


def complete_run(
    folder: RunFolder,
    spec: Spec,
    progress: Progress,
    frames: Frames = NO_FRAMES,
    confirmed: Confirmed = NOT_CONFIRMED,
) -> None:
    """Both halves, in one hold of the folder."""
    with folder.held():
        _measure(folder, spec, frames, confirmed, progress)
        finish(folder, progress)


def _measure(
    folder: RunFolder,
    spec: Spec,
    frames: Frames,
    confirmed: Confirmed,
    progress: Progress,
    planned: Plan | None = None,
) -> None:
    if folder.is_started:
        if not folder.is_of(spec):
            raise RunFolderError(
                f"{folder.path} holds a run of another spec. Choose another folder with --out."
            )
        if folder.is_measured:
            if records_have_changed(folder, spec, frames.records):
                progress.advise(RECORDS_CHANGED)
            return
    with progress.stage("plan"):
        with part(0.0, 0.8):
            prepared = prepare(spec, frames)
        if folder.is_started:
            _check_same_plan(folder, prepared.plan)
        if planned is not None and planned != prepared.plan:
            raise SpecError("The public files have changed since the plan was made. Plan again.")
        prepared = with_forecast(prepared)
        warnings = accuracy_warnings(prepared, prepared.plan)
    for text in warnings:
        progress.advise(text)
    find_privacy_answers(prepared.plan, progress)
    measure_into(folder, prepared, frames, confirmed=confirmed, progress=progress)


def _check_same_plan(folder: RunFolder, plan: Plan) -> None:
    """Besides the spec, the plan depends on the areas, the order of cells and this program."""
    if folder.plan() != plan:
        raise RunFolderError(
            f"The hierarchy or the plan has changed since the run in {folder.path} began. "
            "Restore it, or choose another folder with --out."
        )
