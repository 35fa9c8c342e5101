"""The errors that plans of flows and of histograms foresee: simple ones, or none."""

from __future__ import annotations

from collections.abc import Iterator
from math import isclose, sqrt
from typing import Any

from trellis.verify.files.run_files import RunFiles
from trellis.verify.plan.price import noise_variance


def own_noise(run: RunFiles) -> Iterator[str]:
    """The errors that the plan foresees are those of each level's own noise."""
    lines = [
        _line(level, 0.0 if q["noise"] is None else sqrt(noise_variance(q["noise"])))
        for level, q in zip(run.plan["levels"], run.plan["queries"], strict=True)
    ]
    if "effects" in run.plan or not same_lines(run.plan["expected_standard_errors"], lines):
        yield "plan.json foresees other standard errors than its noise has"


def nothing_foreseen(run: RunFiles) -> Iterator[str]:
    """The plan foresees no errors by level: there are too many tables."""
    if run.plan["expected_standard_errors"] is not None or "effects" in run.plan:
        yield "plan.json foresees errors by level, which plans of histograms do not"


def _line(level: dict[str, Any], error: float) -> dict[str, Any]:
    return {"level": level["level"], "areas": level["nodes"], "least": error, "median": error,
            "most": error}  # fmt: skip


def same_lines(stated: list[dict[str, Any]] | None, expected: list[dict[str, Any]]) -> bool:
    """Equal, in numbers up to rounding: of roots of 0, parts of the largest."""
    if stated is None or len(stated) != len(expected):
        return False
    numbers = [value for line in expected for value in line.values() if isinstance(value, float)]
    slack = 1e-4 * max(numbers)
    return all(
        line.keys() == other.keys() and all(_alike(line[key], other[key], slack) for key in line)
        for line, other in zip(stated, expected, strict=True)
    )


def _alike(one: Any, other: Any, slack: float) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return isclose(one, other, rel_tol=1e-6, abs_tol=slack)
    return type(one) is type(other) and one == other
