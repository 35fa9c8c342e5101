"""The kinds of release: where the parts of each are. The one place of the workflow that lists them.

Parts are named, not imported, so that each is loaded only where it is needed, and so that the
public half of a kind never loads the confidential one.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from trellis.errors import SpecError

if TYPE_CHECKING:
    from trellis.workflow.confidential.protocol import ConfidentialKind
    from trellis.workflow.evaluation.protocol import Comparison
    from trellis.workflow.outlook.protocol import OutlookKind
    from trellis.workflow.preparing.protocol import PreparingKind
    from trellis.workflow.public.protocol import PublicKind


@dataclass(frozen=True, slots=True)
class Kind:
    """Modules with the parts of a kind; `outlook` is None where nothing can be computed ahead."""

    preparing: str
    public: str
    confidential: str
    comparison: str
    outlook: str | None = None


def _parts(name: str, outlook: str | None = None) -> Kind:
    return Kind(
        preparing=f"trellis.workflow.preparing.kinds.{name}",
        public=f"trellis.workflow.public.kinds.{name}",
        confidential=f"trellis.workflow.confidential.kinds.{name}",
        comparison=f"trellis.workflow.evaluation.{name}",
        outlook=outlook,
    )


KINDS: dict[str, Kind] = {
    "counts": _parts("counts", "trellis.workflow.outlook.kinds.counts"),
    "histograms": _parts("histograms", "trellis.workflow.outlook.kinds.histograms"),
    "group_sizes": _parts("group_sizes"),
    "flows": _parts("flows"),
}


def preparing_kind(kind: str) -> PreparingKind[Any]:
    return import_module(KINDS[kind].preparing).PREPARING


def public_kind(kind: str) -> PublicKind[Any, Any]:
    return import_module(KINDS[kind].public).PUBLIC


def confidential_kind(kind: str) -> ConfidentialKind[Any, Any]:
    return import_module(KINDS[kind].confidential).CONFIDENTIAL


def comparison(kind: str) -> Comparison:
    return import_module(KINDS[kind].comparison).compare


def outlook_kind(kind: str, wanted: str) -> OutlookKind[Any]:
    """What can be computed ahead; `wanted` names it where it cannot."""
    place = KINDS[kind].outlook
    if place is None:
        able = " and ".join(name for name, parts in KINDS.items() if parts.outlook is not None)
        raise SpecError(f"{wanted} is not supported for kind: {kind} yet, only for {able}.")
    return import_module(place).OUTLOOK
