"""Group sizes: what spec.yaml asks for."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

from trellis.verify.files.run_files import RunFiles
from trellis.verify.files.safe_files import Unreadable
from trellis.verify.plan.kinds.counts import protection
from trellis.verify.plan.noise import Asked
from trellis.verify.plan.reading import Shares, Spec, fraction, shares_over


def group_sizes(run: RunFiles, levels: list[str]) -> tuple[dict[str, Any], list[Asked]]:
    """What plan.json must say, and what is asked."""
    spec, cap = run.spec, run.spec["sizes"]["cap"]
    if spec["unprotected"]["groups"] is not True:
        raise Unreadable("spec.yaml does not say that the numbers of groups are not protected")
    shares = shares_over(spec["privacy"]["shares"], levels)
    query = "cumulative" if spec["estimate"]["method"].startswith("cumulative") else "histogram"
    most = min(spec["data"]["max_quantity"], cap)  # past the cap a quantity makes no difference
    stated = {
        "schema": {"size": [str(size) for size in range(cap + 1)]},
        "unprotected_totals": levels,
        "protection": protection(spec, required=list(_required(spec))),
        "weights": [str(weight) for weight in _weights(spec, levels, shares)],
    }
    totals = [Asked(level, "total") for level in levels]
    return stated, totals + [
        Asked(level, query, share, query, "max_quantity", most) for level, share in shares.items()
    ]


def _required(spec: Spec) -> Iterator[str]:
    if not spec["sizes"]["top_code"]:
        yield f"a size of at most {spec['sizes']['cap']} of each group"
    if "quantity" in spec["data"]:
        yield f"a quantity of at most {spec['data']['max_quantity']} in each record"


def _weights(spec: Spec, levels: list[str], shares: Shares) -> list[Fraction]:
    """As stated, or by the precision of the noise: shares, squared for Laplace noise."""
    if "weights" in spec["estimate"]:
        stated = spec["estimate"]["weights"]
        return [fraction(stated.get(level, 0)) for level in levels]
    power = 2 if spec["privacy"]["mechanism"] == "discrete_laplace" else 1
    most = max(shares.values())
    return [(shares.get(level, Fraction(0)) / most) ** power for level in levels]
