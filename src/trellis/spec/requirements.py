"""What a spec requires of the records: each requirement narrows the changes that are protected.

Records that break one are refused. So a release proves that they keep it, and tells them with
certainty from a neighbour that does not. The clauses made here become part of the protection that
is planned, charged and stated; with `binds: output`, `top_code: true` and `above: cap` there are
none, because then nothing about the records decides whether a release happens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trellis.model.plans.size_mechanisms import GROUP_SIZES
from trellis.model.trees.flows import FLOWS
from trellis.spec.flows import has_exact_number

if TYPE_CHECKING:
    from trellis.spec.spec import Spec


def required_of_records(spec: Spec) -> tuple[str, ...]:
    """What the records must keep, or nothing is released."""
    if spec.kind == FLOWS:
        return _of_trips(spec)
    if spec.kind == GROUP_SIZES:
        return _of_groups(spec)
    bounds = [c.name for c in spec.constraints or () if c.binds_records]
    zeros = spec.structural_zeros
    return (
        *(["the structural zeros"] if zeros is not None and zeros.binds_records else []),
        *(f"the bounds of constraint {name!r}" for name in bounds),
    )


def _of_trips(spec: Spec) -> tuple[str, ...]:
    if spec.data.unit is None or spec.trips.above == "cap":
        return ()
    unit, number = spec.privacy.unit, spec.privacy.max_contribution
    how_many = "exactly" if has_exact_number(spec) else "at most"
    distinct = f"different pairs of areas for all trips of a {unit}"
    return (
        f"{how_many} {number} trip(s) of each {unit}",
        *([distinct] if spec.trips.distinct else []),
    )


def _of_groups(spec: Spec) -> tuple[str, ...]:
    assert spec.sizes is not None
    size = f"a size of at most {spec.sizes.cap} of each group"
    quantity = f"a quantity of at most {spec.data.max_quantity} in each record"
    return (
        *([] if spec.sizes.top_code else [size]),
        *([] if spec.data.quantity is None else [quantity]),
    )


def unsaid_bindings(spec: Spec) -> list[str]:
    """A line for each rule that binds the records because the spec leaves `binds` out."""
    named = [f"constraint {c.name!r}" for c in spec.constraints or () if c.binds is None]
    zeros = spec.structural_zeros
    if zeros is not None and zeros.binds is None:
        named.append("structural_zeros")
    return [
        f"{rule} binds the records, because it does not say otherwise: records that break it are "
        "refused, and only changes that keep it are protected. Write binds: records to keep this, "
        "or binds: output to bind the published counts alone."
        for rule in named
    ]
