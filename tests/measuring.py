"""The halves of a run as single calls, for tests that look at what they leave behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trellis.api.releases import Release
from trellis.spec import Spec
from trellis.workflow.confidential.measuring import Confirmed
from trellis.workflow.frames import Frames
from trellis.workflow.progress import Silent
from trellis.workflow.public import reestimating
from trellis.workflow.public.run_folder import RunFolder
from trellis.workflow.running import measure_run


def measure(
    spec: Spec,
    out: Path | None = None,
    *,
    data: Any = None,
    new_edition: bool = False,
    progress: Any = None,
    **frames: Any,
) -> RunFolder:
    folder = RunFolder(out or spec.default_run_folder)
    given = Frames(data, **frames)
    measure_run(folder, spec, progress or Silent(), given, Confirmed(new_edition))
    return folder


def reestimate(folder: RunFolder, method: str, out: Path, *rest: Any) -> Release:
    """Another method, as the release that it leads to."""
    return Release(reestimating.reestimate(folder, method, out, *rest).path)
