"""plan.json is what spec.yaml asks for, key by key."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isclose
from typing import Any

from trellis.verify.files.run_files import RunFiles
from trellis.verify.files.safe_files import Unreadable
from trellis.verify.files.trees import read_tree, tree_digest
from trellis.verify.plan.keys import KEYS, unknown_keys
from trellis.verify.plan.kinds.counts import counts
from trellis.verify.plan.kinds.flows import flow_levels, flows
from trellis.verify.plan.kinds.group_sizes import group_sizes
from trellis.verify.plan.kinds.histograms import histograms
from trellis.verify.plan.noise import Asked, with_noise
from trellis.verify.plan.reading import fraction, level_names
from trellis.verify.plan.spines import spine_keys

Derive = Callable[[RunFiles, list[str]], tuple[dict[str, Any], list[Asked]]]

DERIVED: dict[str, Derive] = {
    "counts": counts,
    "histograms": histograms,
    "group_sizes": group_sizes,
    "flows": flows,
}
"""What each kind asks for."""

FIRST_FORMAT = 3
"""Plans of earlier formats belong to specs with other keys."""


def planned(run: RunFiles) -> Iterator[str]:
    """The plan is what spec.yaml asks for: queries, noise, prices, protection, tree."""
    kind = run.spec["kind"]
    if run.plan.get("format", 1) < FIRST_FORMAT:
        run.leave_out("an older format: the plan was not derived from spec.yaml")
        return
    if kind not in DERIVED:
        yield f"releases of kind {kind!r} are not known here, so nothing vouches for their price"
        return
    yield from unknown_keys(run.spec, KEYS[kind])
    expected = _derive(run, kind)
    for key in sorted(set(expected) | set(run.plan)):
        if key in ("expected_standard_errors", "effects"):
            continue  # see `plan.forecast`
        if key not in expected:
            yield f"plan.json has the unknown key {key}"
        elif not _same(expected[key], run.plan.get(key)):
            yield f"plan.json does not follow from spec.yaml in {key}"


def _derive(run: RunFiles, kind: str) -> dict[str, Any]:
    spec = run.spec
    files = ["hierarchy.parquet"] + ["destinations.parquet"] * ("destinations" in spec)
    trees = [read_tree(run, name) for name in files]
    names = level_names(spec["hierarchy"]) or [level.name for level in trees[0]]
    levels = [
        {"level": name, "areas": level.shown.size, "nodes": len(level)}
        for name, level in zip(names, trees[0], strict=True)
    ]
    if kind == "flows":
        levels = flow_levels(run)
    stated, asked = DERIVED[kind](run, [level["level"] for level in levels])
    header = {
        "format": run.plan["format"],
        "release": spec["release"],
        "kind": kind,
        "dataset": spec["dataset"],
        "levels": levels,
        "budget": _budget(run),
        "method": spec["estimate"]["method"],
        "confidence": str(fraction(spec["output"]["confidence"])),
        "hierarchy_sha256": "+".join(map(tree_digest, trees)),
    }
    plan = {**header, **stated, **spine_keys(run)}
    queries = with_noise({**run.plan, **plan}, asked)
    if {q["noise"]["law"] for q in queries if q["noise"]} != {spec["privacy"]["mechanism"]}:
        raise Unreadable("spec.yaml states a budget that its mechanism does not have")
    return {**plan, "queries": queries}


def _budget(run: RunFiles) -> dict[str, str]:
    """As stated; where targets decide, the rho (or pure epsilon) that plan.json has."""
    stated = run.spec["privacy"].get("budget", {})
    if run.spec.get("accuracy") and set(stated) <= {"delta"}:
        pure = run.spec["privacy"]["mechanism"] == "discrete_laplace"
        measure = "epsilon" if pure else "rho"
        stated = {measure: run.plan["budget"][measure]}
    return {name: str(fraction(value)) for name, value in stated.items()}


def _same(expected: Any, found: Any) -> bool:
    """Equal in all but the last digits of floating-point numbers; True is not 1."""
    if isinstance(expected, dict) and isinstance(found, dict):
        return expected.keys() == found.keys() and all(
            _same(value, found[key]) for key, value in expected.items()
        )
    if isinstance(expected, list) and isinstance(found, list):
        return len(expected) == len(found) and all(map(_same, expected, found))
    if isinstance(expected, float) and isinstance(found, float):
        return isclose(expected, found, rel_tol=1e-9)
    return type(expected) is type(found) and expected == found
