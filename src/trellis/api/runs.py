"""A measured run as a user holds it."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

from trellis.api.inputs import Number
from trellis.api.releases import Release
from trellis.api.statements import PrivacyStatement
from trellis.model.plans.plan import Plan as ModelPlan
from trellis.spec import Spec as SpecOfAnyKind
from trellis.workflow.progress import Progress, Silent
from trellis.workflow.public.finishing import finish
from trellis.workflow.public.reestimating import asked_penalty, reestimate
from trellis.workflow.public.run_folder import RunFolder


class Run:
    """A run folder whose noise has been spent; from here on, nothing confidential is needed.

    `Run(path)` opens one, on this machine or on another that never held a record.

    >>> run = spec.measure("runs/measured")
    >>> run.is_finished
    False
    >>> run.estimate().levels
    ('country', 'region', 'town')
    >>> tr.Run("runs/measured").is_finished
    True
    """

    def __init__(self, path: str | Path) -> None:
        self._folder = RunFolder(Path(path))
        self._folder.require_started()

    @classmethod
    def measured(
        cls,
        spec: SpecOfAnyKind,
        out: str | Path | None = None,
        *,
        planned: ModelPlan | None = None,
        new_edition: bool = False,
        same_records: bool = False,
        progress: Progress | None = None,
    ) -> Run:
        """The confidential half: charge the ledger, draw noise, write measurements."""
        from trellis.workflow.confidential.measuring import Confirmed
        from trellis.workflow.running import measure_run

        folder = _folder(spec, out)
        confirmed = Confirmed(new_edition, same_records)
        measure_run(folder, spec, progress or Silent(), _frames(spec), confirmed, planned)
        return cls(folder.path)

    @classmethod
    def completed(
        cls,
        spec: SpecOfAnyKind,
        out: str | Path | None = None,
        *,
        new_edition: bool = False,
        same_records: bool = False,
        progress: Progress | None = None,
    ) -> Release:
        """Both halves: measurements, then estimates and tables."""
        from trellis.workflow.confidential.measuring import Confirmed
        from trellis.workflow.running import complete_run

        folder = _folder(spec, out)
        confirmed = Confirmed(new_edition, same_records)
        complete_run(folder, spec, progress or Silent(), _frames(spec), confirmed)
        return Release(folder.path)

    @property
    def path(self) -> Path:
        """The run folder."""
        return self._folder.path

    @property
    def plan(self) -> ModelPlan:
        """What was planned, with its cost: `plan.privacy`."""
        return self._folder.plan()

    def account(self, delta: Number | Sequence[Number] | None = None) -> PrivacyStatement:
        """The exact epsilon at one delta or several, who is protected, and what attacks can do."""
        return PrivacyStatement.at(self.plan, delta)

    @property
    def is_finished(self) -> bool:
        """Whether the tables are written."""
        return self._folder.is_finished

    def estimate(
        self,
        method: str | None = None,
        out: str | Path | None = None,
        *,
        penalty: int | float | str | Fraction | None = None,
        progress: Progress | None = None,
    ) -> Release:
        """Estimates and tables from the measurements alone; it costs nothing.

        Another `method` goes into a folder of its own, `out`. `penalty` is the price of a flow that
        is not zero, for sparse methods of flows.

        >>> run = spec.measure()
        >>> real = run.estimate("gls", out="runs/towns-gls")
        >>> real.plan.method.name
        'gls'
        """
        price = asked_penalty(method, out, penalty)
        if method is not None and out is not None:
            target = reestimate(self._folder, method, Path(out), progress or Silent(), price)
            return Release(target.path)
        with self._folder.held():
            finish(self._folder, progress or Silent())
        return Release(self.path)

    def __repr__(self) -> str:
        return f"Run({self.plan.release!r}, {str(self.path)!r})"


def _folder(spec: SpecOfAnyKind, out: str | Path | None) -> RunFolder:
    return RunFolder(Path(out) if out is not None else spec.default_run_folder)


def _frames(spec: Any) -> Any:
    from trellis.workflow.frames import NO_FRAMES

    return getattr(spec, "frames", NO_FRAMES)
