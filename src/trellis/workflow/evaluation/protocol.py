"""How a release of one kind is compared with the truth."""

from __future__ import annotations

from typing import Any, Protocol

from trellis.confidential.metrics import LevelErrors
from trellis.workflow.preparing.prepared import Prepared
from trellis.workflow.public.run_folder import RunFolder


class Comparison(Protocol):
    """Errors of every published table, root first. The result is confidential."""

    def __call__(
        self, folder: RunFolder, prepared: Prepared, counts: Any
    ) -> tuple[LevelErrors, ...]: ...
