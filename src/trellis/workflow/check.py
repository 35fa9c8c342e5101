"""Finds everything that a run would refuse, without Numba and without writing a byte."""

from __future__ import annotations

from typing import Any

from trellis.model.agreement import agreed_cost
from trellis.model.plan import Plan
from trellis.privacy.ledger import Ledger
from trellis.workflow.accuracy_warnings import accuracy_warnings
from trellis.workflow.confidential_half import Confirmed, fingerprints, read_counts, terms_of
from trellis.workflow.config import Spec
from trellis.workflow.prepare import foreseen, prepare
from trellis.workflow.progress import Progress, Silent
from trellis.workflow.sources import resolve_source


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

    Accuracy that is of no use is no fault: `progress` is told.
    """
    prepared = prepare(spec, hierarchy, data, areas, destinations)
    source = resolve_source(spec, spec.data.source, data, "data.source")
    read_counts(prepared, source, register)
    ledger = Ledger(spec.ledger_path)
    terms = terms_of(spec, Confirmed(new_edition, same_records))
    keys = ledger.known_key(spec.dataset), ledger.known_records_key()
    prints = [None if key is None else fingerprints(source, key)[0] for key in keys]
    ledger.check(spec.dataset, "", agreed_cost(prepared.plan), terms, *prints)
    plan = foreseen(prepared)
    for text in accuracy_warnings(prepared, plan):
        (progress or Silent()).advise(text)
    return plan
