"""Everything after measuring, from the run folder alone: estimate, release, report, list.

This package cannot import true counts; a contract of the import linter proves it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

from trellis.errors import RunFolderError
from trellis.evaluate.public_run import PublicRun
from trellis.evaluate.report import report_page
from trellis.release.documents.deployment_record import deployment_yaml
from trellis.release.documents.manifest import manifest
from trellis.release.documents.privacy_record import privacy_record
from trellis.storage.atomic import new_folder, read_json, remove_partials, write_json, write_text
from trellis.verify.files.inventory import refuse_strange
from trellis.workflow.kinds import public_kind
from trellis.workflow.progress import Progress
from trellis.workflow.public.privacy_answers import find_privacy_answers
from trellis.workflow.public.protocol import MeasuredRun
from trellis.workflow.public.run_folder import RunFolder


def finish(folder: RunFolder, progress: Progress) -> None:
    """Bring a measured run folder to the state `finished`; what is there is kept."""
    if folder.is_finished:
        return
    require_measured(folder)
    refuse_strange(folder.path)
    run = measured_run(folder)
    find_privacy_answers(run.plan, progress)  # found already, unless another process measured
    seconds: dict[str, float] = {}
    _estimate_and_release(run, seconds, progress)
    if not folder.report.is_dir():
        with progress.stage("report"), new_folder(folder.report) as partial:
            (partial / "index.html").write_text(_page(run, _today()), encoding="utf-8")
    made = (folder.measurements, folder.estimates, folder.release, folder.report)
    for path in (*made, folder.privacy, folder.deployment, folder.manifest):
        remove_partials(path)
    write_json(folder.privacy, privacy_record(run.plan))
    write_text(folder.deployment, deployment_yaml(run.plan, _today(), version("trellis-dp")))
    listed = manifest(folder.path, folder.files(), run.plan.release, run.identity.run_id, seconds)
    write_json(folder.manifest, listed)


def require_measured(folder: RunFolder) -> None:
    folder.require_started()
    if not folder.is_measured:
        raise RunFolderError(
            f"{folder.path} holds no measurements. Run trellis run or trellis measure first."
        )


def measured_run(folder: RunFolder) -> MeasuredRun[Any]:
    """A run folder with its plan and public facts."""
    plan = folder.plan()
    facts = public_kind(plan.kind).facts(folder, plan)
    return MeasuredRun(folder, plan, facts, folder.identity())


def _estimate_and_release(
    run: MeasuredRun[Any], seconds: dict[str, float], progress: Progress
) -> None:
    """Estimates and tables that are not there yet."""
    kind, folder = public_kind(run.plan.kind), run.folder
    if folder.estimates.is_dir():
        estimates = kind.estimates(run)
    else:
        with progress.stage("estimate"), _timed(seconds, "estimate"):
            remove_partials(folder.estimates)
            with new_folder(folder.estimates) as partial:
                estimates = kind.estimate(run, partial)
    if not folder.release.is_dir():
        with progress.stage("release"), _timed(seconds, "release"):
            remove_partials(folder.release)
            with new_folder(folder.release) as partial:
                kind.release(run, estimates, partial)


def _page(run: MeasuredRun[Any], date: str) -> str:
    shown = PublicRun(run.folder.path, run.plan, run.hierarchy, run.identity.run_id, date)
    return report_page(shown, public_kind(run.plan.kind).sections)


def remake_report(folder: RunFolder) -> Path:
    """Write the report of a finished run again, and its hash into the manifest."""
    folder.require_started()
    if not folder.is_finished:
        raise RunFolderError(f"{folder.path} is not finished. Finish the run first.")
    refuse_strange(folder.path)
    listed, path = read_json(folder.manifest), folder.report / "index.html"
    try:
        page = _page(measured_run(folder), str(listed["created"])[: len("2000-01-01")])
        name = path.relative_to(folder.path).as_posix()
        listed["sha256"][name] = sha256(page.encode()).hexdigest()
    except (KeyError, TypeError):
        raise RunFolderError(f"{folder.manifest} is damaged.") from None
    write_text(path, page)
    write_json(folder.manifest, listed)
    return path


def _today() -> str:
    return datetime.now(UTC).date().isoformat()


@contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    begin = perf_counter()
    yield
    seconds[stage] = perf_counter() - begin
