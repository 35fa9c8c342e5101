"""Steps of a run by name, wherever they are called, so that tests can make one fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fifth_kind import confidential as means
from trellis.workflow.confidential import measuring
from trellis.workflow.confidential.kinds import counts, flows, group_sizes, histograms
from trellis.workflow.public import finishing
from trellis.workflow.public.kinds import counts as public_counts
from trellis.workflow.public.kinds import tables

CONFIDENTIAL = (measuring, counts, flows, group_sizes, histograms, means)
PUBLIC = (finishing, public_counts, tables)


def replace_step(patch: pytest.MonkeyPatch, name: str, by: Callable[..., Any]) -> None:
    """Put another function in the place of a step; there must be such a step."""
    homes = [module for module in (*CONFIDENTIAL, *PUBLIC) if hasattr(module, name)]
    assert homes, f"no step {name!r}"
    for module in homes:
        patch.setattr(module, name, by)


def step(name: str) -> Callable[..., Any]:
    """The real one."""
    return next(getattr(m, name) for m in (*CONFIDENTIAL, *PUBLIC) if hasattr(m, name))
