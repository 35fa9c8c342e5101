"""Finds everything that a run would refuse, without Numba and without writing a byte."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from trellis.errors import TrellisError
from trellis.ingest.records.columns import check_columns
from trellis.model.agreement import agreed_cost
from trellis.model.plan import Plan
from trellis.privacy.ledger import Ledger
from trellis.workflow.accuracy_warnings import accuracy_warnings
from trellis.workflow.confidential_half import (
    Confirmed,
    fingerprints,
    read_counts,
    records_of,
    terms_of,
)
from trellis.workflow.config import Spec
from trellis.workflow.prepare import foreseen, prepare
from trellis.workflow.progress import Progress, Silent
from trellis.workflow.same_counts import SAME_COUNTS, prior_has_counts_of


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
    *,
    data: Any = None,
    hierarchy: Any = None,
    register: Any = None,
    areas: Any = None,
    destinations: Any = None,
    new_edition: bool = False,
    same_records: bool = False,
    progress: Progress | None = None,
) -> Plan:
    """Read and validate all that a run reads; nothing is spent.

    The error that it raises holds every fault that could be found. What rests on something faulty
    is left out: records cannot be counted in areas that are not well formed. Accuracy that is of
    no use, and a prior with the counts of the records, are no faults: `progress` is told.
    """
    faults = _Faults()
    prepared = source = counts = None
    with faults.kept():
        prepared = prepare(spec, hierarchy, data, areas, destinations)
    with faults.kept():
        source = records_of(spec, data, register)
        check_columns(source, *_columns(spec), rows_too=prepared is None)
        if prepared is not None:
            counts = read_counts(prepared, source, register)
    if prepared is not None:
        with faults.kept():
            ledger = Ledger(spec.ledger_path)
            terms = terms_of(spec, Confirmed(new_edition, same_records))
            keys = ledger.known_key(spec.dataset), ledger.known_records_key()
            # Records with a fault will change, and are not compared with earlier ones.
            whole = source if counts is not None else None
            prints = [
                fingerprints(whole, key)[0] if key is not None and whole is not None else None
                for key in keys
            ]
            ledger.check(spec.dataset, "", agreed_cost(prepared.plan), terms, *prints)
    faults.report()
    assert prepared is not None
    assert counts is not None
    if prior_has_counts_of(prepared, counts):
        Silent().confirm(SAME_COUNTS) if progress is None else progress.advise(SAME_COUNTS)
    plan = foreseen(prepared)
    for text in accuracy_warnings(prepared, plan):
        (progress or Silent()).advise(text)
    return plan


def _columns(spec: Spec) -> tuple[list[str], list[str]]:
    """Columns of the records: of codes and categories, and of whole numbers."""
    data = spec.data
    texts = [data.area, data.group, data.origin, data.destination, data.unit]
    texts += list(spec.attributes or {})
    if spec.declared_attributes is not None and data.cells is None:
        texts += [(data.attributes or {}).get(name, name) for name in spec.declared_attributes]
    numbers = [data.count, data.quantity, data.size, data.groups]
    numbers += [column for form in data.cell_forms.values() for column in form]
    return [c for c in texts if c is not None], [c for c in numbers if c is not None]
