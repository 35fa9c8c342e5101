"""What the ledger and a run folder say of each other after a release: entered again, withdrawn."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from trellis.errors import RunFolderError
from trellis.privacy.ledger import Cost, Ledger
from trellis.storage.atomic import read_json, write_json
from trellis.wording import withdrawal as words
from trellis.workflow.confidential.measuring import folder_digest
from trellis.workflow.public.finishing import remake_report
from trellis.workflow.public.run_folder import RunFolder


def enter_run(ledger: Ledger, folder: RunFolder) -> bool:
    """Enter the charge of a run folder into a ledger that has lost it; False if it is there."""
    folder.require_started()
    plan, run_id = folder.plan(), folder.identity().run_id
    caps = folder.public_spec().caps_contributions
    digest = folder_digest(folder.measurements) if folder.is_measured else None
    return ledger.enter(plan.dataset, run_id, Cost(plan.release, plan.privacy, caps), digest)


def withdraw_run(
    ledger: Ledger,
    dataset: str,
    folder: RunFolder,
    reason: str | None = None,
    by: RunFolder | None = None,
) -> str:
    """Record that a release is withdrawn, in the ledger and in its folder; its charge stays.

    The ledger comes first. If something breaks off after it, the same call makes up for it.
    """
    for run in filter(None, (folder, by)):
        run.require_started()
    with folder.held():
        identity = folder.identity()
        other = None if by is None else by.identity().run_id
        said = ledger.withdraw(dataset, identity.run_id, reason, other)
        notice = _notice(ledger, said.made, said.reason, said.superseded_by)
        write_json(
            folder.withdrawn,
            {
                "run_id": identity.run_id,
                "withdrawn": said.made,
                "reason": said.reason,
                "superseded_by": said.superseded_by,
                "notice": notice,
            },
        )
        if folder.is_finished:
            _list_in_manifest(folder, folder.withdrawn)
            remake_report(folder)
    return notice


def _notice(ledger: Ledger, made: str, reason: str | None, by: str | None) -> str:
    newer = None if by is None else ledger.entry(by)
    instead = ""
    if newer is not None:
        instead = words.INSTEAD.format(release=newer.release, run_id=newer.run_id)
    why = "" if reason is None else words.WHY.format(reason=reason.rstrip("."))
    return words.NOTICE.format(day=made[:10], why=why, instead=instead)


def _list_in_manifest(folder: RunFolder, path: Path) -> None:
    listed = read_json(folder.manifest)
    try:
        name = path.relative_to(folder.path).as_posix()
        listed["sha256"][name] = sha256(path.read_bytes()).hexdigest()
    except (KeyError, TypeError):
        raise RunFolderError(f"{folder.manifest} is damaged.") from None
    write_json(folder.manifest, listed)
