"""Finds everything that a run would refuse, without Numba and without writing a byte."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from trellis.errors import TrellisError
from trellis.ingest.records.columns import check_columns
from trellis.model.plans.agreement import agreed_cost
from trellis.privacy.ledger import Ledger
from trellis.spec import Spec
from trellis.workflow.confidential.measuring import (
    NOT_CONFIRMED,
    Confirmed,
    fingerprints,
    records_of,
    tabulate,
    terms_of,
)
from trellis.workflow.confidential.same_counts import SAME_COUNTS, prior_has_counts_of
from trellis.workflow.frames import NO_FRAMES, Frames
from trellis.workflow.outlook.accuracy_warnings import accuracy_warnings
from trellis.workflow.preparing.prepare import prepare, with_forecast
from trellis.workflow.preparing.prepared import Prepared
from trellis.workflow.progress import Progress, Silent


class _Faults:
    """Collects what is wrong, so that one fault does not hide another."""

    def __init__(self) -> None:
        self._errors: list[TrellisError] = []

    @contextmanager
    def kept(self) -> Iterator[None]:
        try:
            yield
        except TrellisError as error:
            self._errors.append(error)

    def report(self) -> None:
        """Raise all of them, as an error like the first."""
        if self._errors:
            faults = dict.fromkeys(fault for error in self._errors for fault in error.faults)
            raise type(self._errors[0])(*faults)


def check(
    spec: Spec,
    frames: Frames = NO_FRAMES,
    confirmed: Confirmed = NOT_CONFIRMED,
    progress: Progress | None = None,
) -> Prepared:
    """Read and validate all that a run reads; nothing is spent.

    The error that it raises holds every fault that could be found. What rests on something faulty
    is left out: records cannot be counted in areas that are not well formed. Accuracy that is of
    no use, and a prior with the counts of the records, are not faults: `progress` is told.
    """
    faults = _Faults()
    prepared = source = counts = None
    with faults.kept():
        prepared = prepare(spec, frames)
    with faults.kept():
        source = records_of(spec, frames)
        check_columns(source, *spec.columns(), rows_too=prepared is None)
        if prepared is not None:
            counts = tabulate(prepared, source, frames.register)
    if prepared is not None:
        with faults.kept():
            ledger = Ledger(spec.ledger_path)
            keys = ledger.known_key(spec.dataset), ledger.known_records_key()
            # Records with a fault will change, and are not compared with earlier ones.
            whole = source if counts is not None else None
            prints = [
                fingerprints(whole, key)[0] if key is not None and whole is not None else None
                for key in keys
            ]
            terms = terms_of(spec, confirmed)
            ledger.check(spec.dataset, "", agreed_cost(prepared.plan), terms, *prints)
    faults.report()
    assert prepared is not None
    if prior_has_counts_of(prepared, counts):
        Silent().confirm(SAME_COUNTS) if progress is None else progress.advise(SAME_COUNTS)
    prepared = with_forecast(prepared)
    for text in accuracy_warnings(prepared, prepared.plan):
        (progress or Silent()).advise(text)
    return prepared
