"""Public files of a spec that must not be the confidential one.

Files are compared by what they are, never by what they hold: if the content of the records decided
on a refusal, a release would prove that they differ from the public file.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from trellis.errors import SpecError
from trellis.spec.sections.planning import OptimalSharesSpec, PriorSpec

if TYPE_CHECKING:
    from trellis.spec.release import Spec


def confidential_source_faults(spec: Spec) -> Iterator[str]:
    """Public facts that would be read off the records."""
    for key, layout in spec.hierarchies.items():
        if spec.comes_with_records(layout.file) and not layout.public:
            yield undeclared_areas(key)
    shares = spec.privacy.shares
    if isinstance(shares, OptimalSharesSpec) and shares.optimal.prior is not None:
        yield from prior_faults(spec, shares.optimal.prior)


REGISTER = (
    "The register of groups comes from the confidential records, so a group would vanish from it "
    "when its only member leaves: name a public file in group_register.source."
)


def undeclared_areas(key: str) -> str:
    return (
        f"The {key} comes from the confidential file: if the list of areas is public, "
        f"say so with {key}: {{public: true}}; otherwise name a public file."
    )


def undeclared_interests(name: str) -> str:
    return (
        f"areas.{name} comes from the confidential file: if it is public which area "
        f"belongs to which {name}, say so with public: true; otherwise name a public file."
    )


def refuse_confidential(spec: Spec, prior: PriorSpec) -> None:
    """The same for a prior that is not in the spec."""
    if faults := tuple(prior_faults(spec, prior)):
        raise SpecError(*faults)


def prior_faults(spec: Spec, prior: PriorSpec) -> Iterator[str]:
    """Neither the prior nor its crosswalk may be the confidential file."""
    files = [prior.source] if prior.crosswalk is None else [prior.source, prior.crosswalk.source]
    if any(map(spec.comes_with_records, files)):
        yield (
            "The prior is the confidential file. Shares computed from confidential counts "
            "would themselves reveal something about them, outside any budget: name an earlier "
            "release, a public forecast or made-up counts, or leave the prior out."
        )
