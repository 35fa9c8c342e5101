"""A release against the truth, for its owner."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trellis.api.releases import Release
from trellis.workflow.evaluation.evaluate import Evaluation
from trellis.workflow.evaluation.evaluate import evaluate_run as compare_run
from trellis.workflow.progress import Progress


def evaluate_run(
    release: Release | str | Path,
    truth: Any,
    confidential_out: str | Path,
    *,
    register: Any = None,
    progress: Progress | None = None,
) -> Evaluation:
    """Compare a release with the records it was made from, and write the result.

    `truth` is a file of records as the release had them, the release's spec (a YAML file, which
    names them), or a frame. The result is confidential: it must not be published.

    >>> release = spec.run()
    >>> found = tr.evaluate_run(release, people, "evaluation")
    >>> [line.level for line in found.levels]
    ['country', 'region', 'town']
    """
    path = release.path if isinstance(release, Release) else release
    return compare_run(path, truth, confidential_out, register=register, progress=progress)
