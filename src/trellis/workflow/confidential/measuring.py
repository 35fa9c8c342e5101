"""Everything that touches the records: tabulate, charge, measure.

The steps and what survives a crash after each:

    tabulate, check the ledger       nothing written, nothing spent
    start the run folder             a folder without a charge; charged on resume
    charge                           charged, no noise drawn; drawn on resume
    claim, draw, write               a partial folder; destroyed unread on resume, drawn again
    settle                           a complete partial folder; given its name on resume
    publish                          measured
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import Any

import pyarrow as pa

from trellis.confidential.fingerprint import fingerprint_file, fingerprint_stream
from trellis.errors import InputError, LedgerError, PrivacyError, SpecError, TrellisError
from trellis.ingest.reader import Source
from trellis.measure.charged_noise import ChargedNoise
from trellis.model.plans.agreement import agreed_cost
from trellis.privacy.ledger import Claim, Ledger, Terms
from trellis.spec import Spec
from trellis.spec.public_files import REGISTER
from trellis.storage.atomic import (
    make_private,
    partial_folder,
    publish,
    remove_partials,
    reporting_os_errors,
    sync_tree,
)
from trellis.workflow.confidential.same_counts import SAME_COUNTS, prior_has_counts_of
from trellis.workflow.frames import Frames
from trellis.workflow.kinds import confidential_kind
from trellis.workflow.preparing.prepared import Prepared
from trellis.workflow.preparing.sources import is_frame_of_records, resolve_source
from trellis.workflow.progress import Progress
from trellis.workflow.public.run_folder import RunFolder, RunIdentity


def measure_into(
    folder: RunFolder,
    prepared: Prepared,
    frames: Frames,
    *,
    confirmed: Confirmed,
    progress: Progress,
) -> None:
    """Bring a run folder to the state `measured`, spending at most once."""
    spec, plan = prepared.spec, prepared.plan
    cost = agreed_cost(plan)
    ledger = Ledger(spec.ledger_path)
    known = folder.identity() if folder.is_started else None
    if known is not None and _was_settled(folder, known, ledger):
        return

    source = records_of(spec, frames)
    before = _state(source)
    with progress.stage("tabulate"):
        counts = tabulate(prepared, source, frames.register)
    if prior_has_counts_of(prepared, counts):
        progress.confirm(SAME_COUNTS)
    terms = terms_of(spec, confirmed)
    ledger.check(spec.dataset, "" if known is None else known.run_id, cost, terms)
    identity = known or RunIdentity.new(spec.public(), ledger.id())
    prints = fingerprints(source, ledger.key(spec.dataset), ledger.records_key())
    if _state(source) != before:
        raise InputError("The records were changed while they were read. Start again.")
    ledger.check(spec.dataset, identity.run_id, cost, terms, *prints)
    if known is None:
        folder.start(identity, spec.public(), plan, prepared.facts)
    try:
        ledger.charge(spec.dataset, identity.run_id, plan.release, cost, terms, *prints)
    except PrivacyError:
        if known is None:
            shutil.rmtree(folder.path)
        raise
    with progress.stage("measure"):
        _draw(folder, prepared, counts, identity, ledger)


def _state(source: Source) -> tuple[int, ...]:
    """What changes when a file is written or replaced; a missing one is the reader's to report."""
    if not isinstance(source, Path) or not source.is_file():
        return ()
    stat = source.stat()
    return stat.st_ino, stat.st_size, stat.st_mtime_ns


def records_of(spec: Spec, frames: Frames) -> Source:
    """The confidential records; a register that is the same frame is refused."""
    if is_frame_of_records(frames.register, frames.records, "group_register"):
        raise SpecError(REGISTER)
    return resolve_source(spec, spec.data.source, frames.records, "data.source")


def tabulate(prepared: Prepared, source: Source, register: Any = None) -> Any:
    """The true table that is to be measured, as the kind of release has it."""
    return confidential_kind(prepared.plan.kind).tabulate(prepared, source, register)


@dataclass(frozen=True, slots=True)
class Confirmed:
    """What the operator has confirmed to be intended."""

    new_edition: bool = False
    """The input has changed."""
    same_records: bool = False
    """The same input is in the ledger under another data set name."""


NOT_CONFIRMED = Confirmed()


def terms_of(spec: Spec, confirmed: Confirmed) -> Terms:
    limit = spec.ledger.limit
    return Terms(
        limit=None if limit is None else limit.value(),
        limit_unit=None if limit is None else limit.unit,
        unit_bounds=spec.ledger.units,
        part_of=spec.ledger.part_of,
        caps=spec.caps_contributions,
        new_edition=confirmed.new_edition,
        same_records=confirmed.same_records,
    )


def fingerprints(source: Source, *keys: bytes) -> tuple[str, ...]:
    """Keyed fingerprints of a file, or of a frame's Arrow form."""
    if isinstance(source, Path):
        return fingerprint_file(source, *keys)
    sink = BytesIO()
    table = source.replace_schema_metadata(None).combine_chunks()  # metadata changes with pandas
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    sink.seek(0)
    return fingerprint_stream(sink, *keys)


def records_have_changed(folder: RunFolder, spec: Spec, records: Any) -> bool:
    """Whether the records differ from those that a run was charged for.

    Only its operator may learn that. Records or a ledger that cannot be read say nothing: a run
    that is measured needs neither.
    """
    with suppress(TrellisError):
        ledger, run_id = Ledger(spec.ledger_path), folder.identity().run_id
        entry, key = ledger.entry(run_id), ledger.known_key(spec.dataset)
        if entry is not None and entry.edition and key is not None:
            source = resolve_source(spec, spec.data.source, records, "data.source")
            [print_] = fingerprints(source, key)
            return ledger.edition(spec.dataset, print_) != entry.edition
    return False


def _was_settled(folder: RunFolder, identity: RunIdentity, ledger: Ledger) -> bool:
    """Finish what a crash between `settle` and `publish` left; True if measured now."""
    if folder.is_measured:
        return True
    if not ledger.is_named(identity.ledger_id):
        raise LedgerError(
            f"The run in {folder.path} was begun with another ledger. Name that one in the spec, "
            "or start in a new run folder."
        )
    entry = ledger.entry(identity.run_id)
    if entry is None or entry.token is None or not entry.is_settled:
        return False
    partial = partial_folder(folder.measurements, entry.token)
    if not partial.is_dir() or folder_digest(partial) != entry.digest:
        remove_partials(folder.measurements)
        raise LedgerError(
            "The noise of this run has been drawn, but its measurements are not here. Put them "
            "back, or start in a new run folder, which is charged again."
        )
    with reporting_os_errors(folder.measurements):
        publish(partial, folder.measurements)
    return True


def _draw(
    folder: RunFolder,
    prepared: Prepared,
    counts: Any,
    identity: RunIdentity,
    ledger: Ledger,
) -> None:
    """Draw the noise that was charged, write it, and only then give it its name."""
    claim = ledger.claim(identity.run_id)
    # Only now: before the claim, another process might settle what is removed here.
    remove_partials(folder.measurements)
    partial = partial_folder(folder.measurements, claim.token)
    try:
        with reporting_os_errors(folder.measurements):
            make_private(partial)
            _write_noisy(partial, prepared, counts, claim, identity.tie_seed)
            sync_tree(partial)
            digest = folder_digest(partial)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    try:
        ledger.settle(claim, digest)
    except LedgerError:  # an interrupt here may come after the entry was made: keep the files then
        shutil.rmtree(partial, ignore_errors=True)
        raise
    with reporting_os_errors(folder.measurements):
        publish(partial, folder.measurements)


def _write_noisy(
    partial: Path, prepared: Prepared, counts: Any, claim: Claim, tie_seed: int
) -> None:
    """Measure as the kind of release asks for, with the noise that the claim paid for."""
    noise = ChargedNoise(prepared.plan, claim)
    confidential_kind(prepared.plan.kind).measure(partial, prepared, counts, noise, tie_seed)


def folder_digest(folder: Path) -> str:
    """SHA-256 over the names and contents of all files."""
    digest = sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        digest.update(f"{path.relative_to(folder).as_posix()}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()
